"""`SegmentSet`, `Segmenter` and `split` as objects: attributes, equality, copies, errors, threads and memory."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stopscan import StopMatch
from stopscan.segments import FORMATS, Segmenter, SegmentSet, joined, split

MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}


def test_a_set_says_what_it_was_given() -> None:
    segments = SegmentSet(MARKERS, stop=["END", "END"], visible=".", stop_in=["answer"])
    assert segments.markers == MARKERS
    assert segments.regions == ("answer", "reasoning")
    assert (segments.stop, segments.visible, segments.stop_in) == (("END",), (".",), ("answer",))
    assert repr(segments) == f"SegmentSet({MARKERS!r}, stop=('END',), visible=('.',), stop_in=('answer',))"
    assert eval(repr(segments)) == segments


def test_stops_live_in_all_regions_by_default() -> None:
    assert SegmentSet(MARKERS, stop="END").stop_in == ("answer", "reasoning")
    assert SegmentSet(MARKERS, stop="END", stop_in=[]).stop_in == ()


def test_equality_and_hash() -> None:
    one, other = SegmentSet(MARKERS, stop=["END"]), SegmentSet(MARKERS, stop=["END"], stop_in=["reasoning", "answer"])
    assert one == other
    assert hash(one) == hash(other)
    assert one != SegmentSet(MARKERS, stop=["END"], stop_in=["answer"])
    assert one != SegmentSet(dict(reversed(MARKERS.items())), stop=["END"])  # here the stream begins in another region
    assert one != "END"


def test_a_set_of_a_set_is_that_set() -> None:
    segments = SegmentSet(MARKERS)
    assert SegmentSet(segments) is segments
    assert Segmenter(segments).segments is segments
    with pytest.raises(TypeError, match="is already a SegmentSet: give no stops"):
        SegmentSet(segments, stop="END")  # type: ignore[call-overload, unused-ignore]


def test_the_markers_of_a_set_are_a_copy() -> None:
    segments = SegmentSet(MARKERS)
    segments.markers["answer"]["|"] = "answer"
    assert segments.markers == MARKERS


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol: int) -> None:
    segments = SegmentSet(MARKERS, stop=["END"], visible=["."], stop_in=["answer"])
    segmenter = Segmenter(segments, include_stop=True)
    segmenter.feed("é<think>5?</thi")
    assert pickle.loads(pickle.dumps(segments, protocol)) == segments
    restored = pickle.loads(pickle.dumps(segmenter, protocol))
    assert (restored.held, restored.region, restored.segments) == ("</thi", "reasoning", segments)
    assert restored.feed("nk>END") == segmenter.feed("nk>END") == [("answer", "END", 2)]
    assert restored.match == segmenter.match == StopMatch("END", 18)
    again = pickle.loads(pickle.dumps(restored, protocol))
    assert (again.match, again.unused, again.feed("more")) == (restored.match, "", [])


def test_another_sets_state_is_refused() -> None:
    segmenter = Segmenter(MARKERS)
    segmenter.feed("<thi")
    state = segmenter.__reduce__()[2]
    with pytest.raises(ValueError, match="made with another set or other options"):
        Segmenter({"answer": {"|": "answer"}}).__setstate__(state)


def test_copies_are_independent() -> None:
    segmenter = Segmenter(MARKERS)
    segmenter.feed("<thi")
    for duplicate in (segmenter.copy(), copy.copy(segmenter), copy.deepcopy(segmenter)):
        assert duplicate.feed("nk>5") == [("reasoning", "5", 1)]
    assert (segmenter.region, segmenter.held) == ("answer", "<thi")


def test_the_regions_own_string_object_is_given() -> None:
    name = "".join(["ans", "wer"])
    (segment,) = Segmenter({name: {"|": name}}).feed("text")
    assert segment[0] is name


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (({},), {}, ValueError, "the set needs at least one region"),
        (({"a": {"": "a"}},), {}, ValueError, 'a marker of region "a" is empty'),
        (({"a": {"|": "b"}},), {}, ValueError, 'marker "|" of region "a": there is no region "b"'),
        ((MARKERS,), {"stop_in": ["b"]}, ValueError, 'stop_in: there is no region "b"'),
        ((MARKERS,), {"stop": ["a", ""]}, ValueError, "stop 1 is empty"),
        ((MARKERS,), {"stop": "<think>"}, ValueError, '"<think>" is both a stop and a marker'),
        ((MARKERS,), {"stop": ".", "visible": "."}, ValueError, '"." is both a stop and a visible stop'),
        (
            ({"a": {"<think>": "a", "think": "a"}},),
            {},
            ValueError,
            'marker "<think>" of region "a" is never found: marker "think" completes inside it',
        ),
        (({str(i): {} for i in range(101)},), {}, ValueError, "there are 101 regions, and the limit is 100"),
        (
            ({"a": {}, "b": {}},),
            {"stop": "x" * 5_000_000},
            ValueError,
            "the stops and markers have 10000000 bytes of UTF-8, and the limit is 8000000",
        ),
        ((["a"],), {}, TypeError, "markers: expected a mapping, got list"),
        (({"a": "<think>"},), {}, TypeError, 'markers of region "a": expected a mapping, got str'),
        (({1: {}},), {}, TypeError, "markers: key: expected str, got int"),
        (({"a": {b"|": "a"}},), {}, TypeError, 'markers of region "a": key: expected str, got bytes; decode it first'),
        (({"a": {"|": None}},), {}, TypeError, 'marker "|": expected str, got NoneType'),
        ((MARKERS,), {"stop": [b"END"]}, TypeError, "stop 0: expected str, got bytes; decode it first"),
        ((), {}, TypeError, "missing 1 required positional argument"),
    ],
)
def test_errors_name_the_culprit(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        SegmentSet(*arguments, **options)
    assert message in str(raised.value)


def test_a_lone_surrogate_in_a_stop_is_named() -> None:
    with pytest.raises(UnicodeEncodeError, match="stop 1: surrogates not allowed"):
        SegmentSet(MARKERS, stop=["END", "\ud800"])
    with pytest.raises(UnicodeEncodeError, match='markers of region "a": surrogates not allowed'):
        SegmentSet({"a": {"\ud800": "a"}})


@pytest.mark.parametrize(
    "call", [lambda region: Segmenter(MARKERS, region=region), lambda region: split([], MARKERS, region=region)]
)
def test_a_region_that_is_missing_is_named(call: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match='region: there is no region "tool_call"'):
        call("tool_call")


def test_a_bad_delta_changes_nothing() -> None:
    segmenter = Segmenter(MARKERS)
    segmenter.feed("<thi")
    for delta, error in ((b"nk>", TypeError), (None, TypeError), ("\ud800", UnicodeEncodeError)):
        with pytest.raises(error):
            segmenter.feed(delta)  # type: ignore[arg-type]
    assert segmenter.held == "<thi"
    assert segmenter.feed("nk>5") == [("reasoning", "5", 1)]


def test_two_threads_at_once() -> None:
    """If two threads feed one segmenter at the same time, one of them gets an error, or they take turns. At least one
    delta is read."""
    segmenter = Segmenter({"a": {"||": "b"}, "b": {"||": "a"}})
    delta = "one||two|" * 20_000
    barrier = threading.Barrier(2)

    def feed() -> int:
        barrier.wait()
        try:
            return sum(len(text) for _, text, _ in segmenter.feed(delta))
        except RuntimeError:
            return 0

    with ThreadPoolExecutor(2) as pool:
        counts = [future.result() for future in [pool.submit(feed), pool.submit(feed)]]
    assert sorted(counts)[1] > 0


def test_memory_stays_flat() -> None:
    segmenter = Segmenter(SegmentSet(MARKERS, stop=["END"], stop_in=["answer"]))
    deltas = ["<thi", "nk>Is it", " 5? E", "ND </thi", "nk>", "It is", " 6. E", "nd "]

    def feed(times: int) -> int:
        for _ in range(times):
            for delta in deltas:
                segmenter.feed(delta)
        gc.collect()
        return sys.getallocatedblocks()

    feed(100)
    before = feed(100)
    assert feed(20_000) - before < 100
    assert segmenter.match is None


def test_streams_in_a_cycle_are_collected() -> None:
    class Source:
        def __iter__(self) -> Iterator[str]:
            return iter(["text"])

    source = Source()
    source.stream = split(source, MARKERS)  # type: ignore[attr-defined]
    collected = threading.Event()
    source.marker = _Tell(collected)  # type: ignore[attr-defined]
    del source
    gc.collect()
    assert collected.is_set()


class _Tell:
    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def __del__(self) -> None:
        self.event.set()


def test_a_format_is_what_a_set_takes() -> None:
    segments = SegmentSet(FORMATS["think"], stop=["END"], stop_in=["answer"])
    assert list(split(["<think>END?</think>5 END 6"], segments)) == [("reasoning", "END?", 1), ("answer", "5 ", 2)]


def test_stream_pieces_join_to_its_segments() -> None:
    text, markers = "Hm <think>a b</think><think>c</think>It is 5.", FORMATS["think"]
    segmenter = Segmenter(markers)
    pieces = [segment for character in text for segment in segmenter.feed(character)] + segmenter.flush()
    assert len(pieces) > len(joined(pieces))
    assert joined(pieces) == list(split([text], markers))
    assert joined(iter(())) == []
