"""What each API sends besides the text: reasoning, calls, refusals and usage. Also peculiarities of some servers."""

from __future__ import annotations

from typing import Any

import pytest
import wire
from apis import BY_NAME
from events import text_of
from replay import Replay
from wire_mixed import MIXED, ollama_mixed

from stopscan_clients import scan_events, truncate_response
from stopscan_clients.paths import items

PARTS = [("reasoning", ["think END", "."]), ("text", ["one E", "N"]), ("call", ["{END}"])]


@pytest.mark.parametrize("api", sorted(MIXED))
def test_reasoning_and_calls_are_never_scanned(api: str) -> None:
    events = MIXED[api](PARTS)
    stream = scan_events(events, "END")
    out = list(stream)
    assert stream.matches == {}
    places = {mark: [n for n, event in enumerate(out) if mark in str(event)] for mark in ("think END", "{END}")}
    texts = [(n, text) for n, event in enumerate(out) if (text := text_of(api, event))]
    assert [text for _, text in texts] == ["one ", "EN"]
    assert max(places["think END"][:1]) < texts[0][0]
    assert texts[1][0] < min(places["{END}"])


@pytest.mark.parametrize("api", sorted(MIXED))
def test_a_stop_ends_the_answer_before_the_call(api: str) -> None:
    """A model that keeps generating after a stop makes up calls. These must not be sent: datarobot-genai#287."""
    events = MIXED[api]([("reasoning", ["so"]), ("text", ["one E", "ND"]), ("call", ["{}"]), ("text", ["two"])])
    for drain in (False, True):
        stream = scan_events(events, "END", drain=drain)
        out = list(stream)
        assert "".join(text_of(api, event) or "" for event in out) == "one "
        assert "get_weather" not in repr(out)
        assert len([event for event in out if BY_NAME[api].finish(event)]) == 1
        # After a stop, the usage comes only with `drain`, which reads the API's stream to its end. The chat stream of
        # this test has no usage.
        assert (str(wire.TOKENS) in repr(out)) == (drain and api != "chat")


LAST: dict[str, Any] = {
    "chat": lambda text: wire.chat_chunk([{**wire.chat_choice(content=text), "finish_reason": "length"}]),
    "completions": lambda text: wire.completions_chunk([wire.completions_choice(text, finish_reason="length")]),
    "gemini": lambda text: wire.gemini_chunk([wire.candidate({"text": text}, finishReason="MAX_TOKENS")]),
    "ollama": lambda text: wire.ollama_line(done=True, message={"role": "assistant", "content": text}),
    "generate": lambda text: wire.ollama_line(done=True, response=text),
}


@pytest.mark.parametrize("api", LAST)
def test_a_last_event_may_bring_text(api: str) -> None:
    """The event that ends an answer may also have text. This text is not held, even if a stop may begin in it. If a
    stop fires in this text, the event gets the finish reason of a stop."""
    alone = LAST[api]("one EN")
    assert [id(event) for event in scan_events([alone], "END")] == [id(alone)]
    begin = next(event for event in wire.WIRES[api](["one E"]) if text_of(api, event))
    assert [text_of(api, event) for event in scan_events([begin, LAST[api]("N")], "END")] == ["one ", "EN"]
    for drain in (False, True):
        stream = scan_events([begin, LAST[api]("ND two")], "END", drain=drain)
        out = list(stream)
        assert [text_of(api, event) or "" for event in out] == ["one ", ""]
        assert [bool(BY_NAME[api].finish(event)) for event in out] == [False, True]
        assert BY_NAME[api].finish(out[-1]).reason != "length"
        assert stream.matches[0].offset == 4


WITHOUT_TEXT: dict[str, list[Any]] = {
    "chat": [
        [],
        [{"index": 0, "delta": None}],
        [{"index": 0, "delta": {}}],
        [{"index": 0}],
        [wire.chat_choice(content="")],
    ],
    "completions": [[], [{"index": 0, "text": None}], [{"index": 0, "text": ""}], [{"index": 0}]],
    "gemini": [[], [{}], [{"content": None}], [{"content": {}}], [wire.candidate()], [wire.candidate({"text": ""})]],
}


@pytest.mark.parametrize("api", WITHOUT_TEXT)
def test_events_without_text_pass_between_two_with_some(api: str) -> None:
    field_of = "candidates" if api == "gemini" else "choices"
    head, two, *_ = [event for event in wire.WIRES[api](["one E", "ND"]) if text_of(api, event)]
    for choices in (*WITHOUT_TEXT[api], None):
        event = {**head, field_of: choices}
        stream = scan_events([head, event, two], "END")
        out = list(stream)
        assert out[1] is event, choices
        assert stream.matches[0].offset == 4


def test_ollama_lines_without_text_pass_between_two_with_some() -> None:
    for lines in (
        [{"message": {"content": text}} for text in ("one E", None, "", "ND")],
        [{"response": text} for text in ("one E", None, "", "ND")],
        [{"message": message} for message in ({"content": "one E"}, {}, {"role": "assistant"}, {"content": "ND"})],
    ):
        events = [wire.ollama_line(**line) for line in lines]
        stream = scan_events(events, "END")
        out = list(stream)
        assert [id(event) for event in out[1:3]] == [id(event) for event in events[1:3]]
        assert stream.matches[0].offset == 4


def test_ollama_a_call_ends_the_text_beside_it() -> None:
    calls = [{"function": {"name": "f", "arguments": {}}}]
    first, last = ({"message": {"content": text, "tool_calls": calls}} for text in ("one EN", "one END"))
    events = [wire.ollama_line(**line) for line in (first, {"message": {"content": "D"}})]
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]
    for drain in (False, True):
        cut, *_ = scan_events([wire.ollama_line(**last)], "END", drain=drain)
        assert cut["message"] == {"content": "one "}


def test_chat_a_call_releases_the_text_beside_it() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for called in ({"tool_calls": [call]}, {"function_call": call["function"]}):
        both = wire.chat_chunk([wire.chat_choice(content="one EN", **called)])
        assert [id(event) for event in scan_events([both], "END")] == [id(both)]
        cut, _ = scan_events([wire.chat_chunk([wire.chat_choice(content="one END", **called)])], "END")
        assert cut["choices"][0]["delta"] == {"content": "one "}


def test_chat_a_call_parts_two_texts() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    deltas: list[dict[str, Any]] = [{"content": "EN"}, {"tool_calls": [call]}, {"content": "D END"}]
    stream = scan_events([wire.chat_chunk([wire.chat_choice(**delta)]) for delta in deltas], "END")
    emitted = [event["choices"][0]["delta"].get("content") for event in stream]
    assert emitted == ["", "EN", None, "D ", None]
    assert stream.matches[0].offset == 4, "counted in all the text of the choice"


def test_chat_a_visible_stop_spans_no_call() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for called in ({"tool_calls": [call]}, {"function_call": {"name": "f"}}):
        for deltas in ([{"content": "EN"}, called, {"content": "D"}], [{"content": "EN", **called}, {"content": "D"}]):
            events = [wire.chat_chunk([wire.chat_choice(**delta)]) for delta in deltas]
            out = [id(event) for event in scan_events(events, "END", include_stop=True)]
            assert out == [id(event) for event in events]


def test_chat_refusals_are_not_scanned() -> None:
    events = [wire.chat_chunk([wire.chat_choice(refusal=word)]) for word in ("I END", " here")]
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]


def test_chat_a_last_chunk_with_text_and_reason(server: Replay) -> None:
    """If a stop fires in the last chunk, the finish reason in this chunk becomes "stop", and no other chunk follows."""
    last = wire.chat_chunk([{**wire.chat_choice(content="ND two"), "finish_reason": "length"}])
    events = [*wire.chat(["one E"], usage=False)[:-1], last]
    out = list(scan_events(events, "END"))
    assert out[-1]["choices"] == [
        {**wire.chat_choice(content=""), "finish_reason": "stop", "matched_stop": "END"},
    ]
    assert len(out) == len(events)
    held = [
        *wire.chat(["one"], usage=False)[:-1],
        wire.chat_chunk([{**wire.chat_choice(content=" E"), "finish_reason": "stop"}]),
    ]
    assert list(scan_events(held, "END"))[-1] is held[-1], "not held"


@pytest.mark.parametrize("word", ["", "null", "None"])
def test_chat_servers_that_always_say_a_reason(word: str) -> None:
    """Some servers (sglang#3912, KoboldCpp) write "", "null" or "None" as the finish reason of each chunk until the
    answer ends. This must not end the choice, and held text must stay held."""
    chunks = [wire.chat_chunk([{**wire.chat_choice(content=text), "finish_reason": word}]) for text in ("E", "ND")]
    stream = scan_events(chunks, "END")
    assert [event["choices"][0]["delta"].get("content") for event in stream] == ["", "", None]


def test_chat_the_stop_replaces_the_token_that_vllm_names() -> None:
    choice = {**wire.chat_choice(content="one END"), "finish_reason": "stop", "stop_reason": 151645}
    (event,) = scan_events([wire.chat_chunk([choice])], "END")
    assert "stop_reason" not in event["choices"][0]
    assert event["choices"][0]["matched_stop"] == "END"


def test_completions_a_last_chunk_with_text_and_reason() -> None:
    held = wire.completions_chunk([wire.completions_choice("one E", finish_reason="length")])
    assert [id(event) for event in scan_events([held], "END")] == [id(held)], "not held"
    last = wire.completions_chunk([{**wire.completions_choice("END", finish_reason="stop"), "stop_reason": 151645}])
    (event,) = scan_events([last], "END")
    (choice,) = event["choices"]
    assert (choice["text"], choice["matched_stop"], "stop_reason" in choice) == ("", "END", False)
    empty = {"index": 0, "text": None, "finish_reason": "stop"}
    assert list(scan_events([wire.completions_chunk([empty])], "END")) == [wire.completions_chunk([empty])]


def test_chat_an_old_function_call_ends_the_text() -> None:
    deltas: list[dict[str, Any]] = [{"content": "EN"}, {"function_call": {"name": "f"}}, {"content": "D"}]
    stream = scan_events([wire.chat_chunk([wire.chat_choice(**delta)]) for delta in deltas], "END")
    assert [event["choices"][0]["delta"].get("content") for event in stream] == ["", "EN", None, "D"]
    assert stream.matches == {}


def test_ollama_text_that_comes_by_itself_says_nothing_else() -> None:
    times = [f"{name}_duration" for name in ("total", "load", "prompt_eval", "eval")]
    others = dict.fromkeys([*times, "prompt_eval_count", "eval_count", "done_reason", "context", "thinking"], 5)
    for text, field_of in (
        ({"message": {"role": "assistant", "content": "E"}}, "message"),
        ({"response": "E"}, "response"),
    ):
        source = {**text, "message": {**text["message"], "thinking": "hm"}} if field_of == "message" else text
        _, piece, _ = scan_events([{**source, "done": False, **others}, {**text, field_of: None, "done": True}], "END")
        assert piece == {**text, "done": False}


def test_chat_usage_in_every_chunk_passes_until_the_stop() -> None:
    """If each chunk has a usage (as with vLLM's continuous_usage_stats), chunks with text keep it. The closing chunk,
    which is made at the stop, has none."""
    counts = [{"prompt_tokens": 3, "completion_tokens": n, "total_tokens": 3 + n} for n in (1, 2)]
    texts = ("one E", "ND")
    events = [wire.chat_chunk([wire.chat_choice(content=t)], usage=u) for t, u in zip(texts, counts, strict=True)]
    assert [event.get("usage") for event in scan_events(events, "END")] == [*counts, None]


def test_chat_drain_gives_openrouters_usage_behind_the_end() -> None:
    """With `drain`, chunks after the stop are dropped until the API's finish reason comes. Later chunks are sent on,
    because they may have the usage (speakeasy-api/gram#921)."""
    counts = [{"prompt_tokens": 3, "completion_tokens": n, "total_tokens": 3 + n} for n in (1, 2, 3)]
    choices = [wire.chat_choice(content="one END"), wire.chat_choice(content="more"), wire.chat_choice(0, "length")]
    events = [wire.chat_chunk([choice], usage=u) for choice, u in zip(choices, counts, strict=True)]
    events += [wire.chat_chunk([wire.chat_choice(content="")], **usage) for usage in ({}, {"usage": counts[-1]})]
    out = list(scan_events(events, "END", drain=True))
    assert [event["usage"] for event in out] == [counts[0], counts[2], counts[2]]
    assert out[-1] == {**events[-1], "choices": []}


def test_chat_mistral_content_in_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "END"}]}
    chunks = [[thought], [{"type": "text", "text": "one E"}, thought], [{"type": "text", "text": "ND"}]]
    stream = scan_events([wire.chat_chunk([wire.chat_choice(content=content)]) for content in chunks], "END")
    emitted = [event["choices"][0]["delta"].get("content") for event in stream]
    assert emitted == [[thought], [{"type": "text", "text": "one "}, thought], [], None]
    whole = wire.chat_whole([thought, {"type": "text", "text": "one "}, {"type": "text", "text": "END two"}])
    cut = truncate_response(whole, "END")["choices"][0]["message"]["content"]
    assert cut == [thought, {"type": "text", "text": "one "}]


def test_chat_mistral_parts_of_reasoning_pass() -> None:
    """Only parts of the kind "text" are scanned. A part of this kind may lack the field `text`, or the field may be
    null."""
    thought: list[Any] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "X"}]},
        {"type": "note", "text": "X"},
    ]
    empty: list[Any] = [{"type": "text"}, {"type": "text", "text": None}]
    events = [wire.chat_chunk([wire.chat_choice(content=content)]) for content in (thought, empty, "one", [])]
    assert [id(event) for event in scan_events(events, "X")] == [id(event) for event in events]


def test_ollama_thinking_passes_and_the_counts_stay() -> None:
    events = ollama_mixed([("reasoning", ["END"]), ("text", ["one END"])])
    out = list(scan_events(events, "END", drain=True))
    assert out[0] is events[0]
    assert out[-1] == {**events[-1], "done_reason": "stop"}


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_made_choice_is_like_the_others(api: str) -> None:
    choice = {"chat": lambda text: wire.chat_choice(content=text), "completions": wire.completions_choice}[api]
    begin, *_, end = [event for event in wire.WIRES[api](["one EN"]) if event["choices"]][-2:]
    _, piece, last = scan_events([begin, end], "END")
    assert piece == {**begin, "choices": [choice("EN")]}
    assert last is end


def test_chat_drain_takes_an_end_without_a_delta() -> None:
    last = wire.chat_chunk([{"index": 0, "delta": None, "finish_reason": "length"}])
    out = list(scan_events([wire.chat_chunk([wire.chat_choice(content="END")]), last], "END", drain=True))
    assert out[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop", "matched_stop": "END"}]


def test_bedrock_events_say_what_they_did_beside_the_text() -> None:
    events = wire.bedrock(["E", "ND"])
    events[4]["messageStop"]["additionalModelResponseFields"] = {"x": 1}
    last = {"messageStop": {"stopReason": "stop_sequence"}}
    assert list(scan_events(events, "END")) == [events[0], last], "no block without text"
    assert list(scan_events(events, "END", drain=True)) == [events[0], last, events[-1]]


def test_bedrock_an_unnamed_event_passes_before_a_stop() -> None:
    first, text, *rest = wire.bedrock(["one END"])
    out = list(scan_events([first, {}, text, {}, *rest], "END", drain=True))
    assert out[1] == {}
    assert len(out) == 3 + len(rest)


def test_bedrock_metadata_comes_when_the_stream_is_read_on() -> None:
    events = wire.bedrock(["one END", "more"])
    out = list(scan_events(events, "END", drain=True))
    assert [next(iter(event)) for event in out[-3:]] == ["contentBlockStop", "messageStop", "metadata"]
    assert out[-1] is events[-1]
    assert out[-2] == {"messageStop": {"stopReason": "stop_sequence"}}


def test_a_text_in_thousands_of_pieces_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [{"type": "text", "text": text} for text in [*["x"] * 6_000, " E"]]
    copied = [0]

    def counted(value: Any) -> list[Any]:
        copied.append(len(items(value)))
        return items(value)

    for module in ("paths", "machine"):  # counts the lists that `put` and `Machine._edited` copy
        monkeypatch.setattr(f"stopscan_clients.{module}.items", counted)
    event, held = scan_events([{"choices": [{"index": 0, "delta": {"content": pieces}}]}], "END")
    assert len(pieces) <= sum(copied) < 10 * len(pieces)
    emitted = event["choices"][0]["delta"]["content"]
    assert ("".join(piece["text"] for piece in emitted), len(emitted)) == ("x" * 6_000 + " ", len(pieces))
    assert held["choices"][0]["delta"]["content"] == "E"
    assert pieces[0]["text"] == "x", "the source's event stays as it was"
