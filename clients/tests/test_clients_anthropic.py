"""What only Anthropic's streams have: blocks that begin and end, and a `message_delta` that names the stop."""

from __future__ import annotations

from typing import Any

import wire
from events import text_of

from stopscan_clients import scan_events


def kinds(events: Any) -> list[str]:
    return [event["type"] for event in events]


def test_anthropic_the_start_of_a_block_may_have_text() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "one E"}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ND"}}
    out = list(scan_events([wire.anthropic_start(), start, delta], "END"))
    assert out[1]["content_block"] == {"type": "text", "text": "one "}
    assert kinds(out[2:]) == ["content_block_delta", "content_block_stop", "message_delta", "message_stop"]
    assert out[-2]["usage"] == {"input_tokens": 3, "output_tokens": 1}, "what `message_start` said"
    out = list(scan_events([start, {"type": "content_block_stop", "index": 0}], "END"))
    assert out[1] == {**delta, "delta": {"type": "text_delta", "text": "E"}}


def test_anthropic_an_uncut_start_is_the_very_object() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "one"}}
    assert next(scan_events([start], "END")) is start


def test_anthropic_a_block_of_another_type_is_not_scanned() -> None:
    start, delta = {"type": "note", "text": "a END"}, {"type": "note_delta", "text": "b END"}
    events = [wire.anthropic_start(), *wire.anthropic_block(0, start, [delta]), *wire.anthropic_end()]
    assert [id(event) for event in scan_events(events, "END")] == [id(event) for event in events]


def test_anthropic_a_stop_spans_events_between_two_deltas() -> None:
    """A ping between two deltas does not divide the text. The beginning of another block does."""
    first, two = (
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        for text in ("one EN", "D")
    )
    other = [{"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t"}}]
    other += [{"type": "content_block_stop", "index": 1}]
    stream = scan_events([first, {"type": "ping"}, two], "END")
    assert [text_of("anthropic", event) for event in stream][:2] == ["one ", None]
    assert stream.matches[0].offset == 4
    stream = scan_events([first, *other, two], "END")
    assert [text_of("anthropic", event) for event in stream] == ["one ", "EN", None, None, "D"]
    both = [first, {**two, "index": 1, "delta": {"type": "text_delta", "text": "E"}}]
    for end in ([], wire.anthropic_end()):
        out = list(scan_events([*both, *end], "END"))
        assert "".join(text_of("anthropic", event) or "" for event in out) == "one ENE"


def test_anthropic_a_message_may_end_before_its_block() -> None:
    events = [e for e in wire.anthropic(["one E"]) if e["type"] != "content_block_stop"]
    out = list(scan_events(events, "END"))
    assert [text_of("anthropic", e) for e in out if e["type"] == "content_block_delta"] == ["one ", "E"]
    assert kinds(out[-3:]) == ["content_block_delta", "message_delta", "message_stop"]


def test_anthropic_drain_closes_a_block_without_an_end() -> None:
    events = [e for e in wire.anthropic(["one END"]) if e["type"] != "content_block_stop"]
    out = list(scan_events(events, "END", drain=True))
    assert kinds(out[-3:]) == ["content_block_stop", "message_delta", "message_stop"]
    assert out[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert out[-2]["usage"] == {"input_tokens": 3, "output_tokens": wire.TOKENS}


def test_anthropic_drain_gives_no_events_of_other_blocks() -> None:
    start, text, end = wire.anthropic_text(0, ["one END"])
    other = wire.anthropic_text(1, ["two"])
    last, stop = wire.anthropic_end()
    for events in ([start, text, end, *other, last, stop], [start, text, *other, end, last, stop]):
        out = list(scan_events(events, "END", drain=True))
        assert kinds(out) == ["content_block_start", "content_block_delta", *kinds([end, last, stop])]
        assert out[2] == end
        assert out[4] == stop
    late = list(scan_events([start, text, last, end, stop], "END", drain=True))
    assert kinds(late[2:]) == kinds([end, last, stop])


def test_anthropic_drain_gives_a_single_message_delta() -> None:
    """The API may send several `message_delta`. After a stop, the reader gets only one."""
    *events, last, stop = wire.anthropic(["one END"])
    out = list(scan_events([*events, last, last, stop], "END", drain=True))
    assert [event["delta"]["stop_reason"] for event in out if event["type"] == "message_delta"] == ["stop_sequence"]
    assert kinds(out[-3:]) == kinds([events[-1], last, stop])
