"""Regular expressions as stops. Some of them match only at the end of the text. The API's closing event shows where the
text ends."""

from __future__ import annotations

from typing import Any

import pytest
import wire
from events import field, text_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_clients_properties import finishes, run
from wire import WIRES
from wire_mixed import MIXED

from stopscan import StopScanner, StopSet
from stopscan_clients import scan_events, truncate_response

PATTERNS = [r"E\b", r"ab\b", r"\bE", r"a+E", r"(?i)abe"]

pieces = st.lists(st.text("abE ", min_size=1, max_size=4), min_size=1, max_size=5)
stops = st.builds(
    lambda patterns, stop: StopSet(stop, patterns=patterns),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2),
    st.lists(st.text("abE", min_size=2, max_size=4), max_size=2),
)


@pytest.mark.parametrize("drain", [False, True], ids=["closed", "read on"])
@pytest.mark.parametrize("api", sorted(WIRES))
@settings(max_examples=40)
@given(deltas=pieces, stop=stops, include_stop=st.booleans())
def test_any_text(api: str, drain: bool, deltas: Any, stop: StopSet, include_stop: bool) -> None:
    events = WIRES[api](deltas)
    machine, outs = run(api, events, stop, include_stop=include_stop, drain=drain)
    text, match = stop.truncate("".join(deltas), include_stop=include_stop)
    came = [event for out in outs for event in out]
    assert "".join(text_of(api, event) or "" for event in came) == text
    assert machine.matches == ({} if match is None else {0: match})
    assert len(finishes(api, came)) == 1
    assert finishes(api, came)[0].matched_stop in (None, match and match.sequence)
    assert (str(wire.TOKENS) in repr(came)) or (match is not None and not drain)


ENDS = ("content_block_stop", "response.output_text.done", "contentBlockStop")  # end a text, give no finish reason


@pytest.mark.parametrize("api", sorted(WIRES))
@settings(max_examples=40)
@given(deltas=pieces, stop=stops, length=st.integers(1, 9), include_stop=st.booleans())
def test_a_stream_that_ends_without_its_last_events(
    api: str, deltas: Any, stop: StopSet, length: int, include_stop: bool
) -> None:
    """A pattern that needs the end of the text matches only if the API has sent an event that ends the text."""
    events = WIRES[api](deltas)[:length]
    brought = "".join(text_of(api, event) or "" for event in events)
    machine, outs = run(api, events, stop, include_stop=include_stop)
    scanner = StopScanner(stop, include_stop=include_stop)
    text = scanner.feed(brought)
    ends = finishes(api, events) or any(event.get("type") in ENDS or next(iter(event)) in ENDS for event in events)
    text += scanner.flush() if ends else scanner.bypass("")
    came = [event for out in outs for event in out]
    assert "".join(text_of(api, event) or "" for event in came) == text
    assert machine.matches == ({} if scanner.match is None else {0: scanner.match})


@pytest.mark.parametrize("api", sorted(MIXED))
def test_a_pattern_may_match_at_a_call(api: str) -> None:
    parts = [("text", ["one E", "ND"]), ("call", ["{}"]), ("text", ["two"])]
    for drain in (False, True):
        stream = scan_events(MIXED[api](parts), StopSet(patterns=[r"END\b"]), drain=drain)
        out = list(stream)
        assert "".join(text_of(api, event) or "" for event in out) == "one "
        assert stream.matches[0].pattern == r"END\b"
        assert "get_weather" not in repr(out)
        assert len(finishes(api, out)) == 1


def test_the_end_of_a_cut_stream_completes_no_pattern() -> None:
    """`$` must match only at the end of a complete stream. `E$` once also matched where a chat stream broke off
    before its finish reason and `[DONE]`."""
    for stops in (StopSet("xENDy", patterns=[r"END\b"]), StopSet(patterns=["END$"])):
        for include_stop in (False, True):
            for api, make in WIRES.items():
                events = make(["one xEN", "D"])
                cut = [number for number, event in enumerate(events, 1) if text_of(api, event)][1]
                stream = scan_events(events[:cut], stops, include_stop=include_stop)
                out = list(stream)
                assert "".join(text_of(api, event) or "" for event in out) == "one xEND", api
                assert not finishes(api, out), api
                assert not stream.matches, api


def test_a_visible_pattern_that_a_call_completes() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    events = [
        wire.chat_chunk([wire.chat_choice(**delta)]) for delta in ({"content": "one END"}, {"tool_calls": [call]})
    ]
    stream = scan_events(events, StopSet(patterns=[r"END\b"]), include_stop=True)
    out = list(stream)
    assert out[0] is events[0]
    assert "get_weather" not in repr(out)
    assert out[-1]["choices"][0]["matched_stop"] == "END"
    assert stream.matches[0].offset == 4


def test_held_text_before_a_pattern_that_the_end_completes() -> None:
    """When the text ends, the pattern matches `END`. Until then, the `x` before it was held, because it could begin the
    stop `xENDy`. It is not part of the match, so it must come out."""
    stops = StopSet("xENDy", patterns=[r"END\b"])
    for api, make in WIRES.items():
        for drain in (False, True):
            out = list(scan_events(make(["one xE", "ND"]), stops, drain=drain))
            assert "".join(text_of(api, event) or "" for event in out) == "one x", api
            assert len(finishes(api, out)) == 1


def test_a_message_may_end_before_its_block() -> None:
    events = [event for event in wire.anthropic(["one xEND"]) if event["type"] != "content_block_stop"]
    for drain in (False, True):
        out = list(scan_events(events, StopSet("xENDy", patterns=[r"END\b"]), drain=drain))
        assert "".join(text_of("anthropic", event) or "" for event in out) == "one x"
        assert [event["type"] for event in out[-3:]] == ["content_block_stop", "message_delta", "message_stop"]
        assert out[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_a_whole_response() -> None:
    cut = truncate_response(wire.chat_whole("one END"), StopSet(patterns=[r"\bEN\w\b"]))
    assert field(cut, "choices", 0, "message", "content") == "one "
    assert cut["choices"][0]["matched_stop"] == "END"
