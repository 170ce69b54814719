"""All classes of streams have the same features, and so have all classes of sets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopscan import Repeat, StopMatch, StopScanner, StopSet, ascan, scan
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter, SegmentSet, asplit, keep, split
from stopscan.tokens import TokenScanner, TokenSegmenter

MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
STOPS = StopSet(["END"])
SEGMENTS = SegmentSet(MARKERS, stop=["END"])
VOCABULARY = Vocabulary(["a ", "EN", "D, more", "<think>", "</think>"])


async def deltas() -> AsyncIterator[str]:
    for delta in ("a EN", "D, more"):
        yield delta


async def drained(stream: Any) -> Any:
    _ = [item async for item in stream]
    return stream


def read(stream: Any, *pieces: object) -> Any:
    for piece in pieces:
        stream.feed(piece)
    return stream


STREAMS: dict[str, Callable[[], Any]] = {
    "StopScanner": lambda: read(StopScanner(STOPS), "a EN", "D, more"),
    "Segmenter": lambda: read(Segmenter(SEGMENTS), "a EN", "D, more"),
    "TokenScanner": lambda: read(TokenScanner(VOCABULARY, STOPS), 0, 1, 2),
    "TokenSegmenter": lambda: read(TokenSegmenter(VOCABULARY, SEGMENTS), 0, 1, 2),
    "scan": lambda: scan(["a EN", "D, more"], STOPS),
    "split": lambda: split(["a EN", "D, more"], SEGMENTS),
    "ascan": lambda: asyncio.run(drained(ascan(deltas(), STOPS))),
    "asplit": lambda: asyncio.run(drained(asplit(deltas(), SEGMENTS))),
}


@pytest.mark.parametrize("name", STREAMS)
def test_every_stream_has_its_set_and_the_unused_text(name: str) -> None:
    stream = STREAMS[name]()
    if hasattr(stream, "__next__"):
        _ = list(stream)
    assert (stream.match, stream.unused) == (StopMatch("END", 2), ", more")
    assert (stream.stops is STOPS) if hasattr(stream, "stops") else (stream.segments is SEGMENTS)


def test_bypass_gives_text_to_the_open_region() -> None:
    segmenter = Segmenter(SEGMENTS)
    assert segmenter.feed("a<think>b</th") == [("answer", "a", 0), ("reasoning", "b", 1)]
    assert segmenter.bypass("ink>END<think>") == [("reasoning", "</think>END<think>", 1)]
    assert (segmenter.region, segmenter.held, segmenter.match) == ("reasoning", "", None)
    assert segmenter.feed("ink>c</think>EN") == [("reasoning", "ink>c", 1)]
    assert segmenter.bypass("") == [("answer", "EN", 2)]
    assert segmenter.feed("D") == [("answer", "D", 2)]
    assert segmenter.feed("END!") == []
    assert segmenter.bypass("more") == []
    assert segmenter.match == StopMatch("END", 43)


GRAPHS = [MARKERS, {"a": {"<": keep("b"), "|": "a"}, "b": {">": "a", "|": "b/x"}, "b/x": {">": "a"}}]
WORDS = ["<think>", "</think>", "<", ">", "|", "END", "EN", "D", "1", "x", "xy" * 20]


@given(
    graph=st.sampled_from(GRAPHS),
    stop_in=st.none() | st.just(1),
    patterns=st.sampled_from([[], [r"\d$"], [r"x\b", "1x"]]),
    repeat=st.none() | st.just(Repeat(3, min_length=32)),
    text=st.lists(st.sampled_from(WORDS), max_size=12).map("".join),
    start=st.booleans(),
)
def test_segment_set_find_equals_segmenter_match(
    graph: Any, stop_in: int | None, patterns: list[str], repeat: Repeat | None, text: str, start: bool
) -> None:
    names = list(graph)
    live = None if stop_in is None else [names[1]]
    segments = SegmentSet(graph, stop=["END"], stop_in=live, patterns=patterns, repeat=repeat)
    region = names[1] if start else None
    segmenter = Segmenter(segments, region=region)
    segmenter.feed(text)
    segmenter.flush()
    assert segments.find(text, region=region) == segmenter.match


def test_len_of_a_segment_set_counts_stops() -> None:
    segments = SegmentSet(MARKERS, stop=["a", "b"], visible=["c"], patterns=[r"\d"], repeat=Repeat())
    assert (len(segments), len(SegmentSet(MARKERS))) == (5, 0)
    assert SegmentSet(MARKERS)


def test_markers_are_given_by_name() -> None:
    assert SegmentSet(markers=MARKERS, stop=["END"]) == SEGMENTS
    assert SegmentSet(markers=SEGMENTS) is SEGMENTS


@pytest.mark.parametrize("make", [scan, split])
def test_a_source_reads_the_match_of_the_last_step(make: Callable[..., Any]) -> None:
    read: list[object] = []

    def source() -> Iterator[str]:
        try:
            read.append((stream.match, stream.closes))
            yield "a END"
        finally:
            read.append((stream.match, stream.closes))
            with pytest.raises(RuntimeError, match="in use by a call on this thread"):
                _ = stream.held

    stream = make(source(), STOPS if make is scan else SEGMENTS)
    assert len(list(stream)) == 1
    assert read == [(None, True), (StopMatch("END", 2), True)]


@pytest.mark.parametrize("make", [ascan, asplit])
def test_async_source_reads_the_last_match(make: Callable[..., Any]) -> None:
    read: list[object] = []

    async def source() -> AsyncIterator[str]:
        try:
            read.append(stream.match)
            yield "a END"
        finally:
            read.append(stream.match)

    stream = make(source(), STOPS if make is ascan else SEGMENTS)
    asyncio.run(drained(stream))
    assert read == [None, StopMatch("END", 2)]
