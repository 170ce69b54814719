"""Every chunking of every case, from the wire through the official clients."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from apis import APIS, Api, run
from reference import Reference
from replay import Recording, Replay
from wire import WIRES

from stopscan_clients import ascan_events, scan_events

CASES = [
    ("aENENDb", ["END"]),
    ("xabcy", ["abc", "b"]),  # lm15 gives "" for this in one event, and "a" in three
    ("é\nEN", ["END"]),  # nothing fires, and text is held at the end
    ("a\n\nb", ["\n\n", "\nb"]),
]


def chunkings(text: str) -> Iterator[list[str]]:
    for cuts in range(2 ** (len(text) - 1)):
        places = [0, *[place for place in range(1, len(text)) if cuts >> (place - 1) & 1], len(text)]
        yield [text[begin:end] for begin, end in pairwise(places)]


def check(api: Api, events: list[Any], stream: Any, bare: list[Any], text: str, stop: list[str]) -> None:
    oracle = Reference(stop)
    expected = oracle.feed(text) + oracle.flush()
    assert api.read(events) == expected
    told = [finish for event in events if (finish := api.finish(event)) is not None]
    assert len(told) == 1
    if oracle.match is None:
        assert stream.matches == {}
        rest = [event for event in events if not api.text(event)]
        assert [seen(event) for event in rest if api.text(event) is None] == [
            seen(event) for event in bare if api.text(event) is None
        ]
        assert seen(events[-1]) == seen(bare[-1])
    else:
        assert (stream.matches[0].sequence, stream.matches[0].offset) == (oracle.match.sequence, oracle.match.offset)
        assert told[0].reason in ("stop_sequence", "eos")
        assert told[0].matched_stop in (None, oracle.match.sequence)


def seen(event: Any) -> Any:
    told = event if isinstance(event, dict) else event.model_dump(exclude={"sequence_number", "sdk_http_response"})
    return {key: value for key, value in told.items() if key not in ("model", "model_version")}


@pytest.mark.parametrize(("text", "stop"), CASES, ids=str)
@pytest.mark.parametrize("api", APIS, ids=str)
def test_every_chunking(server: Replay, api: Api, text: str, stop: list[str]) -> None:
    for deltas in chunkings(text):
        model = server.record(Recording(WIRES[api.name](deltas)))
        bare = list(api.open(server.url, model))
        assert api.read(bare) == text
        stream = scan_events(api.open(server.url, model), stop)
        check(api, list(stream), stream, bare, text, stop)


@pytest.mark.parametrize(("text", "stop"), CASES, ids=str)
@pytest.mark.parametrize("api", [api for api in APIS if api.aopen], ids=str)
def test_every_chunking_async(server: Replay, api: Api, text: str, stop: list[str]) -> None:
    async def read() -> None:
        for deltas in chunkings(text):
            model = server.record(Recording(WIRES[api.name](deltas)))
            bare = [event async for event in await api.aopen(server.url, model)]
            stream = ascan_events(await api.aopen(server.url, model), stop)
            check(api, [event async for event in stream], stream, bare, text, stop)

    run(read)
