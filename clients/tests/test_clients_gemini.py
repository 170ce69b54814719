"""Tests what only Gemini's streams have: several parts in one event, among them thoughts and calls."""

from __future__ import annotations

from typing import Any

import wire
from events import field

from stopscan_clients import scan_events


def test_gemini_parts_of_an_event() -> None:
    """Text may go on in the next part. A call ends the text, and the text after the call is scanned as a new text."""
    call = {"functionCall": {"name": "f", "args": {}}}
    thought = {"text": "END", "thought": True}
    event = wire.gemini_chunk([wire.candidate(thought, {"text": "a EN"}, {"text": "x"}, call, {"text": "b END"})])
    stream = scan_events([event], "END")
    first, last = stream
    parts = field(first, "candidates", 0, "content", "parts")
    assert [field(part, "text") for part in parts] == ["END", "a EN", "x", None, "b "]
    assert field(last, "candidates", 0, "content", "parts") == []
    assert stream.matches[0].offset == 7
    for after in ([], [call]):
        split = wire.gemini_chunk([wire.candidate({"text": "a E"}, {"text": "ND b"}, *after)])
        stream = scan_events([split], "END")
        assert field(next(stream), "candidates", 0, "content", "parts") == [{"text": "a "}]
        assert stream.matches[0].offset == 2


def test_gemini_texts_around_a_call_are_scanned() -> None:
    def candidate(index: int, *parts: Any) -> dict[str, Any]:
        return {"index": index, "content": {"role": "model", "parts": [*parts]}}

    call = {"functionCall": {"name": "f", "args": {}}}
    first = wire.gemini_chunk([candidate(0, {"text": "one END"}), candidate(1, {"text": "a "})])
    second = wire.gemini_chunk([candidate(1, {"text": "b"}, call, {"text": "c END d"})])
    stream = scan_events([first, second], "END", choices=2)
    out = repr(list(stream))
    assert set(stream.matches) == {0, 1}
    assert "c " in out
    assert "END" not in out


def test_gemini_a_thought_does_not_join_texts_around_it() -> None:
    parts = [{"text": "EN"}, {"functionCall": {"name": "f"}}, {"text": "hm", "thought": True}, {"text": "D"}]
    stream = scan_events([wire.gemini_chunk([wire.candidate(*parts)])], "END")
    assert "D" in repr(list(stream))
    assert stream.matches == {}


def test_gemini_text_that_comes_by_itself_says_no_usage() -> None:
    call = wire.gemini_chunk([wire.candidate({"functionCall": {"name": "f"}})], 2)
    out = list(scan_events([wire.gemini_chunk([wire.candidate({"text": "one E"})], 1), call], "END"))
    assert [field(event, "usageMetadata", "candidatesTokenCount") for event in out] == [1, None, 2]
    assert "usageMetadata" not in out[1], "null is not absent: LiteLLM fails with it"
    assert out[1]["candidates"][0]["content"]["parts"] == [{"text": "E"}]


def test_gemini_drain_takes_a_last_event_of_many_parts() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    last = wire.gemini_chunk(
        [wire.candidate({"text": "x"}, call, {"text": "y"}, finishReason="MAX_TOKENS")], wire.TOKENS
    )
    out = list(scan_events([wire.gemini_chunk([wire.candidate({"text": "END"})]), last], "END", drain=True))
    assert out[1]["candidates"][0]["content"]["parts"] == []
    assert out[1]["candidates"][0]["finishReason"] == "STOP"
    assert out[1]["usageMetadata"] is last["usageMetadata"]


def test_gemini_a_last_event_of_many_parts_is_rewritten() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    last = wire.gemini_chunk([wire.candidate({"text": "x END"}, call, {"text": "y"}, finishReason="MAX_TOKENS")], 7)
    (out,) = scan_events([last], "END")
    assert out["candidates"] == [wire.candidate({"text": "x "}, finishReason="STOP")]
    assert out["usageMetadata"] is last["usageMetadata"]


def test_gemini_the_logprobs_of_an_event_of_many_parts() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    chosen = [{"token": token, "logProbability": -1.0} for token in ("a", " E", "ND", "b")]
    event = wire.gemini_chunk([wire.candidate({"text": "a"}, call, {"text": " END"}, {"text": "b"})])
    event["candidates"][0]["logprobsResult"] = {"chosenCandidates": chosen}
    first, _ = scan_events([event], "END")
    assert first["candidates"][0]["logprobsResult"] == {"chosenCandidates": chosen[:2]}
    assert next(scan_events([event], "never")) is event


def test_gemini_a_call_ends_the_text_of_earlier_events() -> None:
    call = {"functionCall": {"name": "f"}}
    parts: list[Any] = [[{"text": "EN"}], [call, {"text": "D EN"}], [{"text": "x"}, call, {"text": "D"}]]
    stream = scan_events([wire.gemini_chunk([wire.candidate(*some)]) for some in parts], "END")
    emitted = [event["candidates"][0]["content"]["parts"] for event in stream]
    assert emitted == [[{"text": ""}], [{"text": "EN"}], [call, {"text": "D "}], [{"text": "ENx"}, call, {"text": "D"}]]
    assert stream.matches == {}
    joined = wire.gemini_chunk([wire.candidate({"text": "a"}, call, call, {"text": "E"}, {"text": "ND"})])
    stream = scan_events([joined], "END")
    assert next(stream)["candidates"][0]["content"]["parts"] == [{"text": "a"}, call, call]
    assert stream.matches[0].offset == 1


def test_gemini_a_last_event_with_a_thought_and_text() -> None:
    thought = {"text": "END", "thought": True}
    event = wire.gemini_chunk([wire.candidate(thought, {"text": "one E"}, finishReason="STOP")])
    assert next(scan_events([event], "END")) is event


def test_gemini_a_made_event_has_the_role() -> None:
    call = {"parts": [{"functionCall": {"name": "f"}}]}
    for role, index in (({"role": "model"}, {"index": 1}), ({}, {}), ({"role": "user"}, {"index": 0})):
        contents = ({**role, "parts": [{"text": "E"}]}, call)
        events = [wire.gemini_chunk([{"content": content, **index}]) for content in contents]
        _, piece, _ = scan_events(events, "END")
        assert field(piece, "candidates", 0, "content") == {**role, "parts": [{"text": "E"}]}
        assert piece["candidates"][0].keys() == {"content", *index}


def test_gemini_drain_takes_a_last_event_without_content() -> None:
    last = {"candidates": [{"index": 0, "finishReason": "MAX_TOKENS"}], "usageMetadata": {"totalTokenCount": 9}}
    first = wire.gemini_chunk([wire.candidate({"text": "END"})])
    out = list(scan_events([first, last], "END", drain=True))
    assert len(out) == 2
    assert "STOP" in repr(out[-1])
    assert "9" in repr(out[-1])


def test_gemini_held_text_comes_before_a_call() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    event = wire.gemini_chunk([wire.candidate({"text": "EN"}, call, {"text": "D"})])
    assert list(scan_events([event], "END")) == [event], "two texts: no stop, and nothing is held at the call"
    out = list(
        scan_events(
            [wire.gemini_chunk([wire.candidate({"text": "EN"})]), wire.gemini_chunk([wire.candidate(call)])], "END"
        )
    )
    assert [field(e, "candidates", 0, "content", "parts", 0) for e in out] == [{"text": ""}, {"text": "EN"}, call]


def test_gemini_signatures_stay_with_their_parts() -> None:
    event = wire.gemini_chunk([wire.candidate({"text": "one END", "thoughtSignature": "c2ln"})])
    first, _ = scan_events([event], "END")
    assert first["candidates"][0]["content"]["parts"] == [{"text": "one ", "thoughtSignature": "c2ln"}]
