"""`truncate_response` must cut a whole response where a stream with the same text would be cut."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import wire
from events import field
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference
from wholes import PATHS, WHOLES

from stopscan import StopSet, finish
from stopscan_clients import scan_events, truncate_response

CALL = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}


@pytest.mark.parametrize("api", WHOLES)
def test_answers_of_every_api(api: str) -> None:
    response = WHOLES[api]("one END two")
    before = copy.deepcopy(response)
    cut = truncate_response(response, ["never", "END"])
    assert field(cut, *PATHS[api]) == "one "
    reader = {"chat": "openai", "completions": "openai", "generate": "ollama"}.get(api, api)
    if f"from_{reader}" in finish.__all__:
        assert getattr(finish, f"from_{reader}")(cut).reason in ("stop_sequence", "eos")
    assert response == before, "the response itself is not changed"
    assert truncate_response(response, "never") is response
    assert truncate_response(response, None) is response
    assert field(truncate_response(response, "END", include_stop=True), *PATHS[api]) == "one END"
    assert field(truncate_response(response, StopSet(visible=["END"])), *PATHS[api]) == "one END"


@pytest.mark.parametrize("api", WHOLES)
@settings(max_examples=40)
@given(text=st.text("abE", max_size=12), stop=st.lists(st.text("abE", min_size=1, max_size=4), max_size=3))
def test_any_text(api: str, text: str, stop: list[str]) -> None:
    whole = WHOLES[api](text)
    oracle = Reference(stop)
    expected = oracle.feed(text) + oracle.flush()
    cut = truncate_response(whole, stop)
    assert (field(cut, *PATHS[api]) or "") == expected
    assert (cut is whole) == (oracle.match is None)


def test_the_usage_counts_the_tokens_behind_the_stop() -> None:
    assert truncate_response(WHOLES["chat"]("one END"), "END")["usage"]["completion_tokens"] == wire.TOKENS
    assert truncate_response(WHOLES["anthropic"]("one END"), "END")["usage"]["output_tokens"] == wire.TOKENS


def test_chat_calls_after_the_stop_go_and_reasoning_stays() -> None:
    whole = wire.chat_whole("one END", tool_calls=[CALL], reasoning_content="END", refusal=None)
    whole["choices"][0]["finish_reason"] = "tool_calls"
    message = truncate_response(whole, "END")["choices"][0]
    assert message["message"] == {
        "role": "assistant",
        "content": "one ",
        "refusal": None,
        "reasoning_content": "END",
    }
    assert (message["finish_reason"], message["matched_stop"]) == ("stop", "END")
    assert truncate_response(wire.chat_whole("one", tool_calls=[CALL]), "END")["choices"][0]["message"]["tool_calls"]


def test_chat_an_answer_without_a_reason_names_the_stop() -> None:
    whole = wire.chat_whole("one END")
    whole["choices"][0]["finish_reason"] = None
    assert truncate_response(whole, "END")["choices"][0]["finish_reason"] == "stop"


NO_REASON: dict[str, Any] = {
    "chat": {"choices": [{"index": 0, "message": {"content": "one END"}, "finish_reason": "null"}]},
    "completions": {"choices": [{"index": 0, "text": "one END", "finish_reason": None}]},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "one END"}]}}]},
    "gemini-call": {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}, {"text": "one END"}]}}]},
    "ollama": {"message": {"content": "one END"}, "done": False},
    "generate": {"response": "one END", "done": False},
}


@pytest.mark.parametrize("api", NO_REASON)
def test_an_answer_without_a_reason_keeps_its_text(api: str) -> None:
    whole = NO_REASON[api]
    assert truncate_response(whole, "ENDS") is whole
    assert "one END" not in repr(truncate_response(whole, StopSet(patterns=[r"END\b"])))


def test_ollama_the_logprobs() -> None:
    tokens = [{"token": token} for token in ("one ", "END", "!")]
    for text, cut in (("response", "one "), ("message", {"content": "one "})):
        whole = {text: "one END!" if text == "response" else {"content": "one END!"}, "done": True}
        cut_parts = {text: cut, "done": True, "done_reason": "stop"}
        assert truncate_response({**whole, "logprobs": tokens}, "END") == {**cut_parts, "logprobs": tokens[:1]}
        assert truncate_response(whole, "END") == cut_parts


def test_chat_every_choice_is_cut_for_itself() -> None:
    whole = wire.chat_whole("one END")
    whole["choices"] += [{**whole["choices"][0], "index": 1, "message": {"role": "assistant", "content": "two"}}]
    cut = truncate_response(whole, "END")
    assert [choice["message"]["content"] for choice in cut["choices"]] == ["one ", "two"]
    assert cut["choices"][1] is whole["choices"][1]


def test_chat_a_message_without_text() -> None:
    for content in (None, ""):
        whole = wire.chat_whole("", tool_calls=[CALL])
        whole["choices"][0]["message"]["content"] = content
        assert truncate_response(whole, "END") is whole


def test_parsed_fields_of_the_whole_text_go() -> None:
    whole = wire.chat_whole('{"x": 1} END', parsed={"x": 1})
    assert "parsed" not in truncate_response(whole, "END")["choices"][0]["message"]
    whole = wire.responses_whole([wire.output_message([wire.output_text('{"x": 1} END', parsed={"x": 1})])])
    assert truncate_response(whole, "END")["output"][0]["content"][0] == wire.output_text('{"x": 1} ')


def test_anthropic_blocks() -> None:
    thinking = {"type": "thinking", "thinking": "END", "signature": "s"}
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"x": "END"}}
    texts = [{"type": "text", "text": text} for text in ("EN", "D END x")]
    whole = wire.anthropic_whole([thinking, texts[0], texts[1], use])
    cut = truncate_response(whole, "END")
    assert cut["content"] == [thinking, texts[0], {"type": "text", "text": "D "}]
    assert cut["content"][1] is texts[0]
    assert (cut["stop_reason"], cut["stop_sequence"]) == ("stop_sequence", "END")
    others = [thinking, use, {"type": "note", "text": "END"}]
    assert truncate_response(wire.anthropic_whole(others), "END")["content"] == others


def test_anthropic_parsed_fields_of_the_whole_text_go() -> None:
    block = {"type": "text", "text": '{"x": 1} END', "parsed_output": {"x": 1}}
    (cut,) = truncate_response(wire.anthropic_whole([block]), "END")["content"]
    assert cut == {"type": "text", "text": '{"x": 1} '}


def test_gemini_parts() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    parts = [{"text": "END", "thought": True}, {"text": "EN"}, {"text": "x"}, call, {"text": "D END"}, call]
    whole = wire.gemini_chunk([wire.candidate(*parts, finishReason="STOP")])
    cut = truncate_response(whole, "END")
    cut_parts = [field(part, "text") for part in field(cut, "candidates", 0, "content", "parts")]
    assert cut_parts == ["END", "EN", "x", None, "D "]
    assert field(truncate_response(whole, "ENx"), "candidates", 0, "content", "parts") == [parts[0]]


@pytest.mark.parametrize(
    "blocked",
    [
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"usageMetadata": {"promptTokenCount": 3}},
    ],
    ids=lambda blocked: next(iter(blocked)),
)
def test_gemini_a_prompt_that_was_blocked(blocked: Any) -> None:
    assert truncate_response(blocked, "END") is blocked
    assert next(scan_events([blocked], "END")) is blocked


def test_bedrock_blocks() -> None:
    reasoning = {"reasoningContent": {"reasoningText": {"text": "END"}}}
    use = {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}
    cut = truncate_response(wire.bedrock_whole([reasoning, {"text": "one END"}, use]), "END")
    assert cut["output"]["message"]["content"] == [reasoning, {"text": "one "}]
    assert cut["stopReason"] == "stop_sequence"
    empty = {"output": {"message": {"role": "assistant"}}, "stopReason": "end_turn"}
    assert truncate_response(empty, "END") is empty


def test_responses_items() -> None:
    reasoning = {"id": "rs", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "END"}]}
    call = {"id": "fc", "type": "function_call", "call_id": "c", "name": "f", "arguments": "END"}
    messages = [wire.output_message([wire.output_text(text), wire.output_text("END")]) for text in ("one", "two")]
    cut = truncate_response(wire.responses_whole([reasoning, messages[0], call, messages[1]]), "END")
    assert cut["output"] == [reasoning, wire.output_message([wire.output_text("one")])]
    alone = wire.responses_whole([reasoning, wire.output_message([wire.output_text("END")])])
    assert truncate_response(alone, "END")["output"] == [reasoning], "no item without text"


def test_responses_a_part_says_no_more_than_it_did() -> None:
    part = {"type": "output_text", "text": "one END"}
    cut = truncate_response({"output": [{"type": "message", "content": [part]}]}, "END")
    assert cut["output"] == [{"type": "message", "content": [{"type": "output_text", "text": "one "}]}]


def test_responses_a_limit_after_the_stop_does_not_count() -> None:
    whole = wire.responses_whole([wire.output_message([wire.output_text("one END two")], "incomplete")])
    whole |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    cut = truncate_response(whole, "END")
    assert (cut["status"], cut["incomplete_details"], cut["output"][0]["status"]) == ("completed", None, "completed")


def test_responses_parts_without_text_pass() -> None:
    """The stop X does not fire in a part whose text is missing or null, or in a refusal."""
    parts = [{"type": "output_text"}, {"type": "output_text", "text": None}, {"type": "refusal", "refusal": "X"}]
    for content in (parts, [], None):
        whole = wire.responses_whole([{"type": "message", "content": content}, {"type": "message"}])
        assert truncate_response(whole, "X") is whole
    whole = wire.responses_whole([{"type": "message", "content": [*parts, wire.output_text("one X")]}])
    assert truncate_response(whole, "X")["output"][0]["content"] == [*parts, wire.output_text("one ")]
    assert truncate_response({"output": []}, "X") == {"output": []}


def test_completions_a_choice_says_no_more_than_it_did() -> None:
    cut = truncate_response({"choices": [{"text": "one END"}]}, "END")
    assert cut == {"choices": [{"text": "one ", "finish_reason": "stop", "matched_stop": "END"}]}


def test_responses_a_citation_without_a_place_stays() -> None:
    cite = {"type": "file_path", "file_id": "f", "index": 0}
    whole = wire.responses_whole([wire.output_message([wire.output_text("one END") | {"annotations": [cite]}])])
    assert truncate_response(whole, "END")["output"][0]["content"][0]["annotations"] == [cite]


@pytest.mark.parametrize(
    "response",
    [
        *("one END", None, 7, {"delta": "END"}, SimpleNamespace(), [], {}, {"message": "Not Found"}),
        {"type": "ai", "content": [{"type": "text", "text": "END"}]},  # LangChain's message
        {"type": "message", "content": "END"},
    ],
)
def test_objects_and_unknown_answers_are_refused(response: Any) -> None:
    with pytest.raises(TypeError, match=r"not an answer of a known API|is not a dict"):
        truncate_response(response, "END")


def test_a_bad_stop_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        truncate_response(WHOLES["chat"]("one"), "")


def test_choices_without_an_index_have_separate_texts() -> None:
    """Choices without an ``index`` must have separate texts and matches. Before a fix, they shared one text: the second
    match replaced the first, and its offset also counted the text of the first choice."""
    texts = ["one END", "no", "two ENDED"]
    answer = {"choices": [{"message": {"content": text}} for text in texts]}
    kept = truncate_response(answer, "END")
    assert [choice["message"]["content"] for choice in kept["choices"]] == ["one ", "no", "two "]
    stream = scan_events([{"choices": [{"delta": {"content": text}} for text in texts]}], "END", choices=3)
    out = [choice["delta"].get("content") for event in stream for choice in event["choices"]]
    assert out == ["one ", "no", "two ", None, None]
    assert {choice: match.offset for choice, match in stream.matches.items()} == {0: 4, 2: 4}
