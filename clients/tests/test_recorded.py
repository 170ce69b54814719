"""Streams in the forms of real providers, with a text made for the tests (`streams/`). Without a match, a stream must
stay unchanged. With a match, it must be cut where a brute-force search cuts its text, and each event must still fit the
types of the API's own client."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
from events import text_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference
from replay import aws, line, sse

from stopscan import StopSet
from stopscan_clients import scan_events
from stopscan_clients.body import Body, Plan
from stopscan_clients.machine import ScanOptions

STREAMS = {path.stem: path for path in sorted((Path(__file__).parent / "streams").glob("*.jsonl"))}
APIS = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "chat": "chat",
    "cohere": "cohere",
    "completions": "completions",
    "deepseek": "chat",
    "gemini": "gemini",
    "llama": "llama",
    "ollama": "ollama",
    "openai": "chat",
}
DONE = b"data: [DONE]\n\n"


def api_of(name: str) -> str:
    return "responses" if "responses" in name else APIS[name.partition("_")[0]]


def recorded(name: str) -> tuple[list[Any], list[bytes]]:
    """Returns the events of a stream, and the pieces of its body."""
    events = [json.loads(row) for row in STREAMS[name].read_text(encoding="utf-8").splitlines()]
    form = {"ollama": line, "bedrock": aws}.get(api_of(name), sse)
    return events, [*map(form, events), *([DONE] if api_of(name) in ("chat", "completions") else [])]


def through(pieces: list[bytes], stop: list[str], media: str, **options: Any) -> tuple[bytes, Body]:
    body = Body(Plan(ScanOptions(StopSet(stop), **options), True), media)
    out = b""
    for piece in pieces:
        out += b"".join(body.emit(body.feed(piece)))
        if body.ended:
            return out, body
    return out + b"".join(body.emit(body.end())), body


def media_of(name: str) -> str:
    return "application/vnd.amazon.eventstream" if api_of(name) == "bedrock" else "text/event-stream"


def events_in(body: bytes, name: str) -> list[Any]:
    from stopscan_clients.framing import Aws, Lines, Sse

    form = {"ollama": Lines, "bedrock": Aws}.get(api_of(name), Sse)()
    payloads = [form.payload(frame) for frame in form.split(body)]
    return [json.loads(payload) for payload in payloads if payload not in (None, b"[DONE]")]


def spoken(name: str, events: list[Any]) -> str:
    return "".join(text_of(api_of(name), event) or "" for event in events)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("stop", ["never", "one, two, three, four", "eepsX"])
def test_without_a_match_the_body_is_unchanged(name: str, stop: str) -> None:
    events, pieces = recorded(name)
    out, body = through(pieces, [stop], media_of(name))
    assert not body.matches
    assert spoken(name, events_in(out, name)) == spoken(name, events)
    if stop == "never":
        assert out == b"".join(pieces)


@pytest.mark.parametrize("name", STREAMS)
def test_every_cut_is_that_of_brute_force(name: str) -> None:
    events, pieces = recorded(name)
    text = spoken(name, events)
    joined = b"".join(pieces)
    for begin in range(len(text) - 4):
        stop = text[begin : begin + 1 + begin % 4]
        oracle = Reference([stop])
        expected = oracle.feed(text) + oracle.flush()
        for split in (pieces, [joined[at : at + 37] for at in range(0, len(joined), 37)]):
            out, body = through(split, [stop], media_of(name))
            assert spoken(name, events_in(out, name)) == expected
            assert oracle.match is not None
            assert (body.matches[0].sequence, body.matches[0].offset) == (stop, oracle.match.offset)
        drained, _ = through(pieces, [stop], media_of(name), drain=True)
        assert spoken(name, events_in(drained, name)) == expected


@cache
def checker(api: str) -> Callable[[Any], Any]:
    """Returns a function that validates an event with the type of the API's own client."""
    from pydantic import TypeAdapter

    if api == "gemini":
        from google.genai.types import GenerateContentResponse as Event
    elif api == "chat":
        from openai.types.chat import ChatCompletionChunk as Event  # type: ignore[assignment]
    elif api == "responses":
        from openai.types.responses import ResponseStreamEvent as Event  # type: ignore[assignment]
    elif api == "anthropic":
        from anthropic.types import RawMessageStreamEvent as Event  # type: ignore[assignment]
    elif api == "cohere":
        from cohere import V2ChatStreamResponse as Event  # type: ignore[assignment]
    else:
        raise AssertionError(api)
    validate = TypeAdapter(Event).validate_python
    return lambda event: event if event.get("type") == "ping" else validate(event)  # no client has a type for pings


@pytest.mark.parametrize(
    "name",
    [
        "openai_chat",
        "openai_responses",
        "anthropic_thinking",
        "anthropic_without_block_ends",
        "gemini_stop_in_every_chunk",
        "gemini_thoughts",
    ],
)
@pytest.mark.parametrize("drain", [False, True])
def test_made_events_fit_the_clients_types(name: str, drain: bool) -> None:
    valid_after_each_stop(name, drain)


def valid_after_each_stop(name: str, drain: bool) -> None:
    events, pieces = recorded(name)
    check = checker(api_of(name))
    for event in events:
        check(event)
    stops = [
        stop for stop in ("The", "keeper", "three", '"dawn"', "nächste", "夜", "eeps.") if stop in spoken(name, events)
    ]
    assert stops
    for stop in stops:
        out, body = through(pieces, [stop], media_of(name), drain=drain)
        assert body.matches
        for event in events_in(out, name):
            check(event)


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of each value inside of parsed JSON."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*at, key)
        yield from places(value, (*at, key))


def replaced(tree: Any, value: Any, key: Any, *path: Any) -> Any:
    new = replaced(tree[key], value, *path) if path else value
    return {**tree, key: new} if isinstance(tree, dict) else [*tree[:key], new, *tree[key + 1 :]]


WORDS = st.sampled_from(["text", "type", "index", "usage", "tokens", "END", "stop", "\ud800"])
ODD_INDEXES = st.sampled_from([-1, -7, 10**9, 2**70])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ODD_INDEXES | st.floats(allow_nan=False) | st.text(max_size=3) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("name", STREAMS)
@settings(max_examples=30)
@given(data=st.data(), drain=st.booleans())
def test_arbitrary_json_in_a_stream_raises_nothing(name: str, data: st.DataObject, drain: bool) -> None:
    """Parts of the events are replaced by random JSON. The only error that this may raise is the documented
    ``TypeError`` for a stream that begins with an event of an unknown API."""
    events, _ = recorded(name)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from([*dict.fromkeys(at for event in events for at in places(event))]))
        odd, only = data.draw(JSON), data.draw(st.none() | st.integers(0, len(events) - 1))
        events = [
            replaced(event, odd, *at) if only in (None, number) and at in places(event) else event
            for number, event in enumerate(events)
        ]
    stop = [spoken(name, recorded(name)[0])[6:9], "END"]
    with suppressed_unknown():
        list(scan_events(events, stop, drain=drain))
    with suppressed_unknown():
        through([*map(line if api_of(name) in ("bedrock", "ollama") else sse, events)], stop, "", drain=drain)


@contextmanager
def suppressed_unknown() -> Iterator[None]:
    try:
        yield
    except TypeError as error:
        assert "of a known API" in str(error)  # noqa: PT017


INDEXES = ("index", "output_index", "content_index", "contentBlockIndex")


@pytest.mark.parametrize("index", [-1, -7, 10**9, 2**70, True, "0", None, [0]])
@pytest.mark.parametrize("name", STREAMS)
def test_an_index_that_is_none_is_passed_over(name: str, index: Any) -> None:
    events, _ = recorded(name)
    stop = spoken(name, events)[6:9]
    wrong = [
        reduce(lambda event, at: replaced(event, index, *at), [at for at in places(event) if at[-1] in INDEXES], event)
        for event in events
    ]
    stream = scan_events(wrong, stop)
    list(stream)
    assert [match.offset for match in stream.matches.values()][:1] == [spoken(name, events).index(stop)]


@pytest.mark.parametrize("usage", [5, [], "", True])
def test_usage_that_is_no_object_is_left_out(usage: Any) -> None:
    for counts in ({}, {"output_tokens": 7}):
        events, _ = recorded("anthropic_thinking")
        events[1:1] = [{"type": "message_start", "message": {"usage": counted}} for counted in (counts, usage, counts)]
        *_, closing, _ = scan_events(events, spoken("anthropic_thinking", events)[6:9])
        assert closing["usage"]["output_tokens"] == counts.get("output_tokens", 4)
        counted = [{"type": "message-end", "delta": {"usage": counted}} for counted in (counts, usage)]
        events, _ = recorded("cohere_v2")
        *_, last = scan_events([*events[:-1], *counted], spoken("cohere_v2", events)[6:9], drain=True)
        assert last["delta"].get("usage", {}) == counts


@pytest.mark.parametrize("output", [[1] * 3, {"a": 1}, [{"content": 5}] * 3, [{"content": [5]}] * 3, [[]] * 3, "a"])
def test_an_output_that_is_no_list_raises_nothing(output: Any) -> None:
    events, _ = recorded("openai_responses")
    events[0] = replaced(events[0], output, "response", "output")
    for kept in (events, [event for event in events if ".added" not in event["type"]]):
        stream = scan_events(kept, spoken("openai_responses", events)[6:9])
        assert [*stream][-1]["type"] == "response.completed"


def test_a_list_in_place_of_a_text_raises_nothing() -> None:
    events, _ = recorded("anthropic_thinking")
    block = {"type": "content_block_start", "index": 9, "content_block": {"type": "text", "text": "one END"}}
    events.insert(1, {**block, "delta": {"text": [{"type": "text", "text": "x"}]}})
    assert list(scan_events(events, "END"))[1]["content_block"]["text"] == "one "
