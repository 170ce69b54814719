"""Whole streams in which one event has the tool calls or the refusal, and another event has the finish reason."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from finish_harness import APIS, as_object, read
from finish_payloads import CASES, ERROR
from finish_streams import STREAMS, Stream
from hypothesis import given
from hypothesis import strategies as st

from stopscan.finish import ApiName, Finish, Reading


def chat(finish_reason: str | None = None, index: int = 0, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish_reason}]}


def block(**fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": fields}


def gemini(finish: str | None = None, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": finish}]}


def ollama(done: bool, **message: Any) -> dict[str, Any]:
    return {"message": {"content": "", **message}, "done": done, **({"done_reason": "stop"} if done else {})}


TOOLS = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]
CALL = {"type": "response.output_item.done", "item": {"type": "function_call", "name": "f"}}
REFUSED = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
COMPLETED = {"type": "response.completed", "response": {"status": "completed", "output": []}}

APART: dict[str, tuple[str, list[dict[str, Any]], Finish]] = {
    "gemini call": (
        "gemini",
        [gemini(None, {"functionCall": {"name": "f"}}), gemini(None, {"text": ""}), gemini("STOP", {"text": ""})],
        Finish("tool_calls", raw="STOP"),
    ),
    "gemini call, then the limit": (
        "gemini",
        [gemini(None, {"functionCall": {"name": "f"}}), gemini("MAX_TOKENS")],
        Finish("length", raw="MAX_TOKENS"),
    ),
    "ollama call": ("ollama", [ollama(False, tool_calls=TOOLS), ollama(True)], Finish("tool_calls", raw="stop")),
    "chat call": ("openai", [chat(tool_calls=TOOLS), chat(), chat("stop")], Finish("tool_calls", raw="stop")),
    "chat call, and the EOS token's id": (
        "openai",
        [chat(tool_calls=TOOLS), {"choices": [{"index": 0, "finish_reason": "stop", "stop_reason": 151645}]}],
        Finish("tool_calls", raw="stop"),
    ),
    "chat call, and a stop of the user's": (
        "openai",
        [chat(tool_calls=TOOLS), {"choices": [{"index": 0, "finish_reason": "stop", "matched_stop": "END"}]}],
        Finish("stop_sequence", "END", raw="stop"),
    ),
    "chat function_call": (
        "openai", [chat(function_call={"name": "f"}), chat("stop")], Finish("tool_calls", raw="stop")
    ),
    "chat refusal": ("openai", [chat(refusal="No"), chat(refusal="."), chat("stop")], Finish("refusal", raw="stop")),
    "chat refusal, then a call": (
        "openai", [chat(refusal="No"), chat(tool_calls=TOOLS), chat("stop")], Finish("tool_calls", raw="stop")
    ),
    "responses refusal in small events alone": (
        "responses",
        [{"type": "response.refusal.delta", "delta": "No."}, COMPLETED],
        Finish("refusal", raw="refusal"),
    ),
    "responses refusal in a part alone": (
        "responses",
        [{"type": "response.content_part.done", "part": {"type": "refusal", "refusal": "No."}}, COMPLETED],
        Finish("refusal", raw="refusal"),
    ),
    "chat without calls": ("openai", [chat(tool_calls=[], refusal=None), chat("stop")], Finish("eos", raw="stop")),
    "chat that fails after a call": ("openai", [chat(tool_calls=TOOLS), ERROR], Finish("abort")),
    "anthropic call": (
        "anthropic",
        [block(type="tool_use", name="f"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}],
        Finish("tool_calls", raw="end_turn"),
    ),
    "anthropic hosted tool": (
        "anthropic",
        [block(type="server_tool_use", name="f"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}],
        Finish("eos", raw="end_turn"),
    ),
    "bedrock call": (
        "bedrock",
        [{"contentBlockStart": {"start": {"toolUse": {"name": "f"}}}}, {"messageStop": {"stopReason": "end_turn"}}],
        Finish("tool_calls", raw="end_turn"),
    ),
    "responses call": ("responses", [CALL, COMPLETED], Finish("tool_calls", raw="function_call")),
    "responses refusal": (
        "responses",
        [{"type": "response.output_item.done", "item": REFUSED}, COMPLETED],
        Finish("refusal", raw="refusal"),
    ),
}  # fmt: skip


def readings(api: Any, events: list[Any]) -> list[Finish | None]:
    reading = Reading(api)
    return [reading.feed(event) for event in events]


@pytest.mark.parametrize(("api", "events", "finish"), APART.values(), ids=APART)
def test_what_came_before_decides(api: str, events: list[dict[str, Any]], finish: Finish) -> None:
    expected = [None] * (len(events) - 1) + [finish]
    assert readings(api, events) == expected
    assert readings(api, list(map(as_object, events))) == expected


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_one_event_stream_is_read_alike(stream: Stream) -> None:
    assert readings(stream.api, stream.events) == [read(stream.api, event) for event in stream.events]


def test_every_payload_by_itself_is_read_alike() -> None:
    for api, cases in CASES.items():
        for payload, _ in cases:
            assert readings(api, [payload]) == [read(api, payload)]


def test_the_names_of_apis_are_those_of_the_readers() -> None:
    assert set(get_args(ApiName)) == set(APIS)


@pytest.mark.parametrize("name", ["chat", "from_openai", "", None, ["openai"]], ids=repr)
def test_another_name_is_an_error_that_lists_them(name: Any) -> None:
    with pytest.raises(ValueError, match=r"^unknown api .*; the apis are anthropic, openai, responses, .*, tgi$"):
        Reading(name)


def test_wrong_event_is_an_error_and_stream_goes_on() -> None:
    reading = Reading("openai")
    reading.feed(chat(tool_calls=TOOLS))
    with pytest.raises(TypeError, match="OpenAI finish_reason is read from a dict or an object, not str"):
        reading.feed(json.dumps(chat("stop")))
    assert reading.feed(chat("stop")) == Finish("tool_calls", raw="stop")


@given(order=st.permutations([0, 0, 1, 1]))
def test_of_several_choices_the_first_counts(order: list[int]) -> None:
    """If an answer has several choices, the finish of choice 0 is reported, in whatever order the chunks come. Here
    choice 0 calls a tool, and choice 1 does not."""
    steps = {0: iter([chat(tool_calls=TOOLS), chat("stop")]), 1: iter([chat(index=1), chat("length", 1)])}
    reports = [report for report in readings("openai", [next(steps[index]) for index in order]) if report]
    assert reports[-1] == Finish("tool_calls", raw="stop")


def test_a_call_of_another_choice_is_not_this_ones() -> None:
    chunks = [chat(index=1, tool_calls=TOOLS), chat("stop", 0), chat("stop", 1)]
    assert readings("openai", chunks) == [None, Finish("eos", raw="stop"), None]
    # Here `feed` gets the choices themselves, not the chunks that contain them.
    reading = Reading("openai")
    assert [reading.feed(chunk["choices"][0]) for chunk in (chunks[0], chunks[2])][-1] == Finish(
        "tool_calls", raw="stop"
    )


def test_litellm_2195_last_stop_of_chunks_counts() -> None:
    chunks = [gemini("STOP", {"text": "a"}), gemini("STOP", {"functionCall": {"name": "f"}}), gemini("STOP")]
    assert [finish and finish.reason for finish in readings("gemini", chunks)] == ["eos", "tool_calls", "tool_calls"]


def test_a_call_in_a_wrapper_is_remembered() -> None:
    chunks = [{"response": gemini(None, {"functionCall": {"name": "f"}})}, {"response": gemini("STOP")}]
    assert readings("gemini", chunks) == [None, Finish("tool_calls", raw="STOP")]


@pytest.mark.parametrize("word", [10**5000, type("Broken", (), {"__str__": lambda self: 1 / 0})()], ids=type)
def test_a_word_that_has_no_string_is_unknown(word: object) -> None:
    """If ``str`` raises an error for a finish word, the reason must be "unknown". Before a fix, the error reached the
    client's loop, so the client lost the answer."""
    assert readings("openai", [chat(word)]) == [Finish("unknown", raw=type(word).__name__)]


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_end_tells_a_broken_stream_from_a_whole_one(stream: Stream) -> None:
    """If a stream is cut before the event with the finish reason, `end` reports "abort". If it is cut after this event,
    `end` reports the reason of the event."""
    at = next(number for number, report in enumerate(stream.reports) if report is not None)
    for length in range(len(stream.events) + 1):
        reading = Reading(stream.api)  # type: ignore[arg-type]
        for event in stream.events[:length]:
            reading.feed(event)
        finish = reading.end()
        assert (finish.reason, finish.matched_stop) == (("abort", None) if length <= at else stream.report)
        assert reading.end() == finish


@pytest.mark.parametrize("api", APIS)
def test_done_alone_ends_without_a_reason(api: Any) -> None:
    reading = Reading(api)
    assert reading.feed("[DONE]") is None
    assert reading.end() == Finish("unknown")


def test_message_stop_alone_ends_without_a_reason() -> None:
    reading = Reading("anthropic")
    assert reading.feed({"type": "message_stop"}) is None
    assert reading.end() == Finish("unknown")


def test_done_after_a_reason_changes_nothing() -> None:
    reading = Reading("openai")
    reading.feed(chat("length"))
    reading.feed("[DONE]")
    assert reading.end() == Finish("length", raw="length")


def test_calls_and_done_are_tool_calls() -> None:
    reading = Reading("openai")
    reading.feed(chat(tool_calls=TOOLS))
    reading.feed("[DONE]")
    assert reading.end() == Finish("tool_calls")


def test_calls_alone_broke_off() -> None:
    reading = Reading("openai")
    reading.feed(chat(tool_calls=TOOLS))
    assert reading.end() == Finish("abort")


def test_a_call_after_the_reason_counts_at_the_end() -> None:
    reading = Reading("gemini")
    reading.feed(gemini("STOP", {"text": "a"}))
    reading.feed(gemini(None, {"functionCall": {"name": "f"}}))
    assert reading.end() == Finish("tool_calls", raw="STOP")


def test_end_of_one_choice_is_not_that_of_another() -> None:
    reading = Reading("openai")
    assert reading.feed(chat("stop", 1)) == Finish("eos", raw="stop")
    reading.feed(chat(index=0))
    assert reading.end() == Finish("abort")


def test_feed_after_end_raises() -> None:
    reading = Reading("openai")
    reading.feed(chat("stop"))
    reading.end()
    for event in (chat("length"), "[DONE]", None):
        with pytest.raises(ValueError, match=r"^feed after end: a Reading reads one stream$"):
            reading.feed(event)
    assert reading.end() == Finish("eos", raw="stop")
