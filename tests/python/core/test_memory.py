"""No references, objects or bytes leak, however long a stream is."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from itertools import cycle, islice, repeat
from pathlib import Path

import pytest

from stopscan import StopScanner, StopSet, StopStream, scan, truncate
from stopscan.segments import Segmenter, SegmentSet, split

MEGABYTE = 1 << 20
STATM = Path("/proc/self/statm")
on_linux = pytest.mark.skipif(not STATM.exists(), reason="the resident set is read from /proc")

STOPS = StopSet(["END", "é🦀END", "</answer>"], visible=["!!"], protect=[("<think>", "</think>")])
# Deltas that make the scanner hold and release text, and open and close a region. Some have multi-byte text. No stop
# fires.
DELTAS = ["plain text ", "EN", "d ", "é🦀", "E", "<think>", "END!!", "</think>", "</answ", "!"]


def resident_bytes() -> int:
    gc.collect()
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(calls: Iterator[object]) -> None:
    deque(calls, maxlen=0)


@on_linux
def test_ten_million_feeds_take_no_memory() -> None:
    scanner = StopScanner(STOPS)
    run(map(scanner.feed, islice(cycle(DELTAS), 100_000)))
    before = resident_bytes()
    run(map(scanner.feed, islice(cycle(DELTAS), 10_000_000)))
    assert resident_bytes() - before < MEGABYTE  # a tenth of a byte for each feed
    assert (scanner.match, scanner.held) == (None, "")


@on_linux
@pytest.mark.parametrize(
    "call",
    [
        lambda: list(scan(["a E", "ND b"], STOPS)),
        lambda: truncate("a long text, and END", "END"),
        lambda: STOPS.find("é🦀é🦀END"),
        lambda: StopSet(["one", "two"], protect=[("<", ">")]),
        lambda: StopScanner(STOPS).copy().feed("a E"),
        lambda: fails(lambda: StopScanner("END").feed(b"END")),  # type: ignore[arg-type]
        lambda: fails(lambda: StopSet(["END", ""])),
        lambda: next(scan(["a", "b"], "END")),
    ],
    ids=["scan", "truncate", "find", "StopSet", "copy", "bad delta", "bad stop", "abandoned scan"],
)
def test_calls_take_no_memory(call: Callable[[], object]) -> None:
    for _ in repeat(None, 2_000):
        call()
    before = resident_bytes()
    for _ in repeat(None, 50_000):
        call()
    assert resident_bytes() - before < MEGABYTE


def fails(call: Callable[[], object]) -> None:
    # This function does not use `pytest.raises`, which takes much longer than the call.
    try:
        call()
    except (TypeError, ValueError):
        return
    raise AssertionError("no error")


def test_reference_counts_stay() -> None:
    scanner, deltas = StopScanner(STOPS), [delta + "#" for delta in DELTAS]
    objects = [*deltas, STOPS, scanner, None, StopSet, StopScanner]
    before = [sys.getrefcount(thing) for thing in objects]
    for _ in repeat(None, 10_000):
        run(map(scanner.feed, deltas))
        run(map(scanner.bypass, deltas))
        assert scanner.match is None
        assert scanner.stops is STOPS
        scanner.flush()
    after = [sys.getrefcount(thing) for thing in objects]
    # Before Python 3.12, other threads hold references to `None` for a moment, so the counts may differ a little.
    assert [now - then for then, now in zip(before, after, strict=True) if abs(now - then) > 20] == []


def test_the_delta_is_not_kept() -> None:
    scanner = StopScanner("END")
    delta = "".join(["text ", "E"])
    before = sys.getrefcount(delta)
    scanner.feed(delta)
    assert sys.getrefcount(delta) == before


def test_an_abandoned_stream_lets_its_source_go() -> None:
    closed = []

    def deltas() -> Iterator[str]:
        try:
            yield from repeat("text")
        finally:
            closed.append(True)

    stream = scan(deltas(), "END")
    next(stream)
    del stream
    gc.collect()
    assert closed == [True]


def test_stream_in_a_source_cycle_is_collected() -> None:
    class Source:
        stream: StopStream
        alive = 0

        def __init__(self) -> None:
            Source.alive += 1

        def __del__(self) -> None:
            Source.alive -= 1

        def __iter__(self) -> Iterator[str]:
            return self

        def __next__(self) -> str:
            return "text"

    for _ in range(100):
        source = Source()
        source.stream = scan(source, "END")
        next(source.stream)
    del source
    gc.collect()
    assert Source.alive == 0


def test_stream_with_a_failed_source_is_collected() -> None:
    class Source:
        def __iter__(self) -> Iterator[str]:
            return self

        def __next__(self) -> str:
            return "text END"

        def close(self) -> None:
            raise OSError

    def stopped() -> weakref.ref[Source]:
        source = Source()
        stream = scan(source, "END")
        # This call makes a cycle of references: from the stream to the error that `close` raised, from the error to its
        # traceback, and from the traceback to the stream.
        assert next(stream) == "text "
        return weakref.ref(source)

    source = stopped()
    gc.collect()
    assert source() is None


def test_a_scanner_is_small() -> None:
    for scanner in (StopScanner(None), StopScanner("END"), StopScanner(STOPS), StopScanner(["x" * 20] * 1_000)):
        assert sys.getsizeof(scanner) <= 256


SEGMENTS = SegmentSet({"a": {"<b>": "b"}, "b": {"</b>": "a"}}, stop=["END"])


@pytest.mark.parametrize("letter", ["字", "é", "🦀"])
@pytest.mark.parametrize(
    "read",
    [
        STOPS.find,
        STOPS.truncate,
        STOPS.region_after,
        lambda text: truncate(text, "END"),
        lambda text: StopScanner(STOPS).feed(text),
        lambda text: StopScanner(StopSet(patterns=["[0-9]+:"])).feed(text),
        lambda text: StopScanner("END").bypass(text),
        lambda text: list(scan([text, "E", text], "END")),
        lambda text: list(scan([text + "END"], "END")),
        lambda text: Segmenter(SEGMENTS).feed(text),
        lambda text: list(split([text, "<", text], SEGMENTS)),
        SEGMENTS.region_after,
    ],
)
def test_no_utf8_of_a_long_text_is_left_behind(letter: str, read: Callable[[str], object]) -> None:
    """stopscan must not ask a long string for its UTF-8, because CPython then keeps the UTF-8 in the string. Before a
    fix, this doubled the memory of a data set."""

    def strings(found: object) -> Iterator[str]:
        if isinstance(found, str):
            yield found
        elif isinstance(found, (list, tuple)):
            for item in found:
                yield from strings(item)

    text = letter * 1_000
    before = sys.getsizeof(text)
    found = read(text)
    assert sys.getsizeof(text) == before
    for given in strings(found):
        assert sys.getsizeof(given) == sys.getsizeof("".join([given[:1], given[1:]]))


@on_linux
def test_a_hundred_thousand_scanners_share_their_set() -> None:
    before = resident_bytes()
    scanners = [StopScanner(STOPS) for _ in range(100_000)]
    assert resident_bytes() - before < 100_000 * 256
    assert scanners[0].feed("a") == "a"
