"""Tests the APIs for which a row in the table of `apis.py` is enough, so that they need no special tests. Each random
stream or answer must be cut where a brute-force search finds the stop."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pytest
import wire
from events import text_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference
from replay import sse
from test_recorded import through
from wholes import PATHS, WHOLES

from stopscan import StopSet
from stopscan_clients import scan_events, truncate_response
from stopscan_clients.body import loads
from stopscan_clients.framing import Sse
from stopscan_clients.machine import ScanOptions
from stopscan_clients.request import NO_LIMITS, plan_of

NAMES = ["tgi", "watsonx", "llama_on_bedrock", "conversations", *wire.CUMULATIVE]
DELTAS = st.lists(st.text("abAB é", min_size=1, max_size=4), min_size=1, max_size=6)
STOPS = st.lists(st.text("abAB é", min_size=1, max_size=3), min_size=1, max_size=2, unique=True)


def text_in(name: str, events: list[Any]) -> str:
    texts = [text_of(name, event) or "" for event in events]
    return texts[-1] if name in wire.CUMULATIVE else "".join(texts)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(deltas=DELTAS, stops=STOPS, drain=st.booleans())
def test_streams(name: str, deltas: list[str], stops: list[str], drain: bool) -> None:
    events = wire.ROWS[name](deltas)
    oracle = Reference(stops)
    expected = oracle.feed("".join(deltas)) + oracle.flush()
    stream = scan_events(events, stops, drain=drain)
    out = list(stream)
    assert text_in(name, out) == expected
    assert bool(stream.matches) == (oracle.match is not None)
    body, _ = through([*map(sse, events)], stops, "text/event-stream", drain=drain)
    reader = Sse()
    payloads = [loads(reader.payload(frame)) for frame in reader.split(body)]
    assert text_in(name, [event for event in payloads if event]) == expected
    if oracle.match is None:
        assert [event for event in out if event not in events] == [] or any(
            stop[:1] in "".join(deltas) for stop in stops
        )


@pytest.mark.parametrize("name", [name for name in NAMES if name in WHOLES])
@settings(max_examples=60)
@given(text=st.text("abAB é", max_size=9), stops=STOPS)
def test_answers(name: str, text: str, stops: list[str]) -> None:
    answer = WHOLES[name](text)
    oracle = Reference(stops)
    expected = oracle.feed(text) + oracle.flush()
    kept = truncate_response(answer, stops)
    if oracle.match is None:
        assert kept is answer
    elif name != "conversations" or expected:  # if no text is left, the cut answer has no entry for it
        assert reduce(lambda tree, key: tree[key], PATHS[name], kept) == expected


def test_cumulative_text_must_grow() -> None:
    """Events of DashScope and sglang must have all text so far. If a server sends only the new pieces, `scan_events`
    must raise an error: text would get lost."""
    events = [wire.sglang_event("one ", None), wire.sglang_event("two", None)]
    with pytest.raises(TypeError, match="the text of sglang must come whole each time"):
        list(scan_events(events, "END"))


def test_pieces_in_the_answer_of_a_conversation() -> None:
    reference = {"type": "tool_reference", "tool": "web_search", "title": "two"}
    answer = wire.conversations_whole([{"type": "text", "text": "one END"}, reference])
    assert truncate_response(answer, "END")["outputs"][0]["content"] == [{"type": "text", "text": "one "}]


def test_which_token_ends_a_tgi_stream() -> None:
    *_, last = scan_events(wire.tgi(["one ", "EN", "D"]), "END")
    assert last["details"] == {"finish_reason": "stop_sequence", "generated_tokens": 0}
    assert (last["token"]["text"], last["generated_text"]) == ("", None)


PATHS_OF_REQUESTS = {
    "/generate_stream": ("parameters", "stop"),
    "/generate": ("sampling_params", "stop"),
    "/ml/v1/text/generation_stream": ("parameters", "stop_sequences"),
    "/api/v1/services/aigc/text-generation/generation": ("parameters", "stop"),
    "/v1/conversations": ("completion_args", "stop"),
    "/v1/conversations/conv_1": ("completion_args", "stop"),
    "/api/generate": ("options", "stop"),
    "/model/m/invoke-with-response-stream": ("stop_sequences",),
    "/v1/chat/completions": ("stop",),
}


@pytest.mark.parametrize("path", PATHS_OF_REQUESTS)
def test_stops_of_a_request_are_not_sent_on(path: str) -> None:
    names = PATHS_OF_REQUESTS[path]
    request: Any = reduce(lambda inner, name: {name: inner}, reversed(names), ["END"])
    plan = plan_of(
        "POST", path, {}, json.dumps({"stream": True, **request}).encode(), ScanOptions(StopSet()), None, NO_LIMITS
    )
    assert (plan.options.stops, plan.streamed) == (StopSet("END"), True)
    assert plan.body == b'{"stream":true}'
