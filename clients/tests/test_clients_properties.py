"""Property tests of `machine.py`, which changes the events of a stream. They need no network. For any answer, a simple
oracle tells which text must have been sent after each event, and which events must stay unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from events import fed, machine_for, text_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import Reference
from wire import TOKENS, WIRES
from wire_mixed import MIXED

from stopscan import StopSet, finish
from stopscan_clients.machine import ScanOptions

APIS = ["chat", "responses", "anthropic", "gemini", "ollama", "bedrock"]
BLOCKS = ("responses", "anthropic", "bedrock")  # APIs whose answers have several texts, each with its own scanner

pieces = st.lists(st.text("abE", min_size=1, max_size=4), min_size=1, max_size=5)
parts = st.lists(st.tuples(st.sampled_from(["text", "text", "reasoning", "call"]), pieces), max_size=4)
stops = st.lists(st.text("abE", min_size=1, max_size=4), max_size=3)


class Oracle:
    """Computes which text must have been sent after each delta. At the end of a part of the answer, held text must have
    been sent too."""

    def __init__(self, api: str, stop: list[str], include_stop: bool) -> None:
        self.fresh = lambda: Reference(stop, include_stop=include_stop)
        self.blocks = api in BLOCKS
        self.scanner = self.fresh()
        self.out = ""

    @property
    def match(self) -> Any:
        return self.scanner.match

    def feed(self, delta: str) -> bool:
        """Adds the next delta. Returns whether the event that brings it must stay unchanged."""
        before = self.scanner.held
        safe = self.scanner.feed(delta)
        self.out += safe
        return safe == delta and not before and not self.match

    def close(self) -> None:
        self.out += self.scanner.flush()
        if self.blocks and not self.match:
            self.scanner = self.fresh()


def run(api: str, events: list[Any], stop: list[str], **options: Any) -> tuple[Any, list[Any]]:
    """Returns the machine and its outputs: one for each event and, if no stop ends the stream, one for its end."""
    machine = machine_for(events[0], ScanOptions(StopSet(stop), **options))
    out = []
    for event in events:
        if machine.ended and not options.get("drain"):
            break
        out.append(fed(machine, event))
    return machine, out if machine.ended and not options.get("drain") else [*out, [item for item, _ in machine.end()]]


def finishes(api: str, events: list[Any]) -> list[Any]:
    read = getattr(finish, f"from_{ {'chat': 'openai', 'completions': 'openai', 'generate': 'ollama'}.get(api, api) }")
    return [value for event in events if (value := read(event)) is not None]


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=40)
@example(parts=[("text", ["E", "E", "x"])], stop=["END"], include_stop=False)  # event 2 releases the "E" of event 1
@given(parts=parts, stop=stops, include_stop=st.booleans())
def test_any_answer(api: str, parts: Any, stop: list[str], include_stop: bool) -> None:
    events = MIXED[api](parts)
    machine, outs = run(api, events, stop, include_stop=include_stop)
    oracle = Oracle(api, stop, include_stop)
    texts = iter([delta for kind, deltas in parts if kind == "text" for delta in deltas])
    emitted, ending, same = "", False, []
    for event, out in zip(events, outs, strict=False):
        brought = text_of(api, event)
        if ending or (not brought and calls(api, event)):  # the machine keeps a closing event until the next event
            oracle.close()
        ending = False
        if brought and not oracle.match:
            assert brought == next(texts)
            if oracle.feed(brought):
                same.append(event)
        elif not brought and not oracle.match:
            ending = closes(api, event)
        emitted += "".join(text_of(api, item) or "" for item in out)
        assert emitted == oracle.out, "late, early, or lost"
    came = [item for out in outs for item in out]
    for event in same:
        assert any(item is event for item in came)
    if oracle.match is None:
        assert machine.matches == {}
        emitted += "".join(text_of(api, item) or "" for item in outs[-1] if len(outs) > len(events))
        assert emitted == "".join(delta for kind, deltas in parts if kind == "text" for delta in deltas)
    else:
        assert machine.matches[0].sequence == oracle.match.sequence
        assert machine.matches[0].offset == oracle.match.offset
        assert len(finishes(api, came)) == 1
        assert finishes(api, came)[0].matched_stop in (None, oracle.match.sequence)


def calls(api: str, event: Any) -> bool:
    if api == "chat":
        return bool(event["choices"][0]["delta"].get("tool_calls"))
    if api == "ollama":
        return bool(event["message"].get("tool_calls"))
    return api == "gemini" and "functionCall" in event["candidates"][0]["content"]["parts"][0]


def closes(api: str, event: Any) -> bool:
    if api == "chat":
        return bool(event["choices"][0]["finish_reason"])
    if api == "ollama":
        return bool(event["done"])
    if api == "gemini":
        return bool(event["candidates"][0].get("finishReason"))
    if api == "responses":
        return bool(event["type"] == "response.output_text.done")
    return event.get("type") == "content_block_stop" or "contentBlockStop" in event


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=40)
@given(parts=parts, stop=stops)
def test_nothing_but_text_is_changed_before_a_stop(api: str, parts: Any, stop: list[str]) -> None:
    events = MIXED[api](parts)
    machine, outs = run(api, events, stop)
    came = [event for out in outs for event in out if not text_of(api, event)]
    sent = [event for event in events[: len(outs)] if not text_of(api, event)]
    # If all text of an event is held, the machine sends a copy of the event without text. Do not compare these copies:
    # the API did not send them.
    kept = [event for event in came if any(event is item for item in sent)]
    assert [id(event) for event in kept] == [id(event) for event in sent[: len(kept)]]
    if not machine.matches:
        assert len(kept) == len(sent)


@pytest.mark.parametrize("api", sorted(WIRES))
@settings(max_examples=40)
@given(deltas=pieces, stop=stops)
def test_a_drained_stream_gives_its_own_closing_events(api: str, deltas: list[str], stop: list[str]) -> None:
    events = WIRES[api](deltas)
    _, outs = run(api, events, stop, drain=True)
    oracle = Reference(stop)
    text = oracle.feed("".join(deltas)) + oracle.flush()
    came = [event for out in outs for event in out]
    assert "".join(text_of(api, event) or "" for event in came) == text
    assert kinds(api, came[-1]) == kinds(api, events[-1])
    if oracle.match is not None:
        assert len(finishes(api, came)) == 1
        assert str(TOKENS) in str(came), "the usage"


def kinds(api: str, event: Any) -> Any:
    return event.get("type") or sorted(event)


@pytest.mark.parametrize("api", sorted(WIRES))
@settings(max_examples=40)
@given(deltas=pieces, stop=stops, cut=st.integers(0, 9))
def test_a_stream_that_ends_without_its_last_events(api: str, deltas: list[str], stop: list[str], cut: int) -> None:
    """If no stop fires, all the text comes out, including held text, and the machine adds no closing event."""
    events = WIRES[api](deltas)[: cut + 1]
    brought = "".join(text_of(api, event) or "" for event in events)
    _, outs = run(api, events, stop)
    oracle = Reference(stop)
    expected = oracle.feed(brought) + oracle.flush()
    came = [event for out in outs for event in out]
    assert "".join(text_of(api, event) or "" for event in came) == expected
    if oracle.match is None:
        assert finishes(api, came) == finishes(api, events)
