"""Any number of threads may share a set. A scanner is for one thread: other threads get an error or correct results."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from stopscan import StopMatch, StopScanner, StopSet, StopStream, scan

THREADS = 8


def run_in_threads(work: Callable[[int], None]) -> None:
    """Starts all threads at once. If one of them raises an error, raises it too."""
    barrier = threading.Barrier(THREADS)
    errors: list[BaseException] = []

    def start(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_a_shared_set_is_right_in_every_thread() -> None:
    stops = StopSet(["</answer>", "END"], visible=["."], protect=[("<think>", "</think>")])

    def work(number: int) -> None:
        for _ in range(300):
            stream = scan(["é" * number, "<think>END.</think>", "a </ans", "wer> E", "ND"], stops)
            assert "".join(stream) == "é" * number + "<think>END.</think>a "
            assert (stream.match, stream.unused) == (StopMatch("</answer>", number + 21), " E")
            assert stops.find("x" * number + "END") == StopMatch("END", number)

    run_in_threads(work)


def test_a_shared_scanner_never_loses_text() -> None:
    """With the GIL, a short `feed` is atomic. Without it, a `feed` during another `feed` raises and reads nothing."""
    scanner = StopScanner("END")
    taken: list[str] = []
    returned: list[str] = []

    def work(number: int) -> None:
        for delta in ["E", "N", f"{number}", "EN", "é🦀"] * 1_000:
            try:
                out = scanner.feed(delta)
            except RuntimeError:
                continue
            taken.append(delta)
            returned.append(out)

    run_in_threads(work)
    returned.append(scanner.flush())
    assert Counter("".join(returned)) == Counter("".join(taken))
    assert scanner.match is None


def test_a_shared_scanner_fires_once() -> None:
    scanner = StopScanner("END")
    unused: list[str] = []

    def work(number: int) -> None:
        for _ in range(1_000):
            try:
                out = scanner.feed(f"{number}END{number}")
            except RuntimeError:
                continue
            if out:
                unused.append(out)

    run_in_threads(work)
    assert scanner.match == StopMatch("END", 1)
    assert unused == [scanner.unused]


def test_a_shared_stream_raises_or_gives_every_piece_once() -> None:
    pieces = [f"<{number}>" for number in range(5_000)]
    stream = scan(iter(pieces), "END")
    received: list[str] = []

    def work(_number: int) -> None:
        while True:
            try:
                received.append(next(stream))
            except RuntimeError:
                continue
            except StopIteration:
                return

    run_in_threads(work)
    assert sorted(received) == sorted(pieces)


def test_waiting_source_locks_the_stream() -> None:
    entered, release = threading.Event(), threading.Event()

    def deltas() -> Iterator[str]:
        entered.set()
        release.wait()
        yield "a END"

    stream = scan(deltas(), "END")
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.extend(stream))
    reader.start()
    entered.wait()
    try:
        with pytest.raises(RuntimeError):
            next(stream)
    finally:
        release.set()
        reader.join()
    assert (received, stream.match) == (["a "], StopMatch("END", 2))


def test_a_source_that_calls_next_on_its_own_stream() -> None:
    streams: list[StopStream] = []

    def deltas() -> Iterator[str]:
        yield "one E"
        with pytest.raises(RuntimeError):
            next(streams[0])
        yield "N, two"

    streams.append(scan(deltas(), "END"))
    assert list(streams[0]) == ["one ", "EN, two"]


def test_a_source_that_closes_its_own_stream() -> None:
    """If the source of a stream closes this stream, the source must get an error. The stream would have to close its
    source, but a running generator cannot be closed."""
    streams: list[StopStream] = []

    def deltas() -> Iterator[str]:
        yield "one "
        with pytest.raises((RuntimeError, ValueError)):
            streams[0].close()
        yield "two"

    streams.append(scan(deltas(), "END"))
    assert next(streams[0]) == "one "
    assert next(streams[0]) == "two"


def test_source_feeds_another_scanner_of_its_set() -> None:
    stops = StopSet("END")

    def inner() -> Iterator[str]:
        yield from scan(["a E", "N b", "END", "c"], stops)

    stream = scan(inner(), stops)
    assert (list(stream), stream.match) == (["a ", "EN b"], None)
