"""Before Python 3.12, the garbage collector can run whenever an object is made. So finalizers and other threads may run
in the middle of a stream's method. They may read and even feed this stream, and no text may be lost or doubled."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from stopscan import Repeat, StopScanner, StopSet
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter, SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter

MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
VOCABULARY = Vocabulary(["a", "<", "b", "E", "<think>", "</think>", "\n"])
LOOPS = SegmentSet(MARKERS, repeat=Repeat(3, min_length=32))
PATTERNS = SegmentSet(MARKERS, patterns=[r"\nUser \d:"])
IDS = [0, 1, 2, 3, 1, 1, 0, 6, 4, 2, 1, 5, 0, 0, 3]
DELTAS = ["a", "<", "b", "E", "a", "<thi", "nk>", "b", "\nUs", "er", "</think>", "é", "a"]

STREAMS: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "StopScanner": (lambda: StopScanner(StopSet(["END", "<b"])), DELTAS),
    "Segmenter": (lambda: Segmenter(SegmentSet(MARKERS, stop=["END"])), DELTAS),
    "Segmenter, loops": (lambda: Segmenter(LOOPS), DELTAS),
    "TokenScanner": (lambda: TokenScanner(VOCABULARY, ["END", "<<<"]), IDS),
    "TokenSegmenter": (lambda: TokenSegmenter(VOCABULARY, MARKERS), IDS),
    "TokenSegmenter, loops": (lambda: TokenSegmenter(VOCABULARY, LOOPS), IDS),
    "TokenSegmenter, patterns": (lambda: TokenSegmenter(VOCABULARY, PATTERNS), IDS),
}


class Garbage:
    """An object in a reference cycle. It calls `act` when the garbage collector frees it."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.cycle, self.act = self, act

    def __del__(self) -> None:
        with contextlib.suppress(RuntimeError):  # the collector may run while this thread holds the stream's lock
            self.act()


@pytest.fixture
def _eager_threads() -> Iterator[None]:
    """Threads take turns every 50 us instead of every 5 ms. Otherwise, a test that waits for its turn takes seconds."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(50e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(autouse=True)
def _eager_collector() -> Iterator[None]:
    threshold = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1, 1_000, 1_000)
    yield
    gc.set_threshold(*threshold)


def yielded() -> bool:
    time.sleep(0)  # lets other threads run
    return False


def state(stream: Any) -> tuple[object, ...]:
    return stream.held, stream.match, stream.region, stream.snapshot()


def test_the_collector_runs_inside_of_calls() -> None:
    finalized: list[bool] = []
    for _ in range(10_000):
        Garbage(lambda: finalized.append(True))
    assert len(finalized) > 5_000  # CPython 3.12 does not collect the first 900


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    "read",
    [
        lambda stream: stream.held,
        lambda stream: stream.snapshot(),
        lambda stream: stream.copy(),
        lambda stream: yielded() or stream.match,
    ],
    ids=["held", "snapshot", "copy", "match"],
)
def test_a_finalizer_that_reads_changes_nothing(name: str, read: Callable[[Any], object]) -> None:
    """Before a fix, the text `a<bE` came out as `a<<bE`, or `feed` panicked."""
    make, pieces = STREAMS[name]
    quiet = make()
    expected = [(quiet.feed(piece), state(quiet)) for piece in pieces]
    for _ in range(20):
        stream = make()
        for piece, (out, after) in zip(pieces, expected, strict=True):
            Garbage(partial(read, stream))
            assert stream.feed(piece) == out
            assert state(stream) == after


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.usefixtures("_eager_threads")
def test_threads_that_read_while_finalizers_let_them_run(name: str) -> None:
    make, pieces = STREAMS[name]
    quiet = make()
    expected = [quiet.feed(piece) for piece in pieces]
    streams, done = [make()], threading.Event()

    def look() -> None:
        while not done.is_set():
            stream = streams[0]
            _ = (stream.held, stream.match, stream.region)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(20):
            streams[0] = stream = make()
            for piece, out in zip(pieces, expected, strict=True):
                Garbage(yielded)
                assert stream.feed(piece) == out
    finally:
        done.set()
        for reader in readers:
            reader.join()


def feed_into(fed: list[object], stream: Any, piece: object) -> None:
    fed.append(stream.feed(piece))


@pytest.mark.parametrize("name", STREAMS)
def test_a_finalizer_that_feeds_loses_no_text(name: str) -> None:
    """While a stream is in `feed`, a finalizer feeds it another piece of text. No text may be lost: the stream must
    read both pieces as wholes, in either order."""
    make, pieces = STREAMS[name]
    first = pieces[0]
    for piece in pieces:
        orders = []
        for inner_first in (True, False):
            stream = make()
            stream.feed(pieces[1])
            outputs = [stream.feed(each) for each in ([first, piece] if inner_first else [piece, first])]
            orders.append((outputs if inner_first else outputs[::-1], state(stream)))
        for _ in range(10):
            inner: list[object] = []
            stream = make()
            stream.feed(pieces[1])
            Garbage(partial(feed_into, inner, stream, first))
            out = stream.feed(piece)
            if inner:
                assert ([inner[0], out], state(stream)) in orders
