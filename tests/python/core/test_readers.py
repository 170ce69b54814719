"""A call that reads the state of a stream must wait while another thread uses the stream. It must not raise an error,
which would end the request."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from test_threads import run_in_threads

from stopscan import StopMatch, StopScanner, StopSet, StopStream, ascan, scan
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter
from stopscan.tokens import TokenScanner, TokenSegmenter

MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
VOCABULARY = Vocabulary(["a ", "E", "N", "D", "<think>", "</think>"])
# A match of the pattern begins 20,000 times in this text. To read it takes so long that the calls of two threads
# overlap.
LONG = "plain text, 字 and \nUser " * 20_000 + "."
STOPS = StopSet(["END"], patterns=[r"\nUser \d+:"])

READERS: list[Callable[[Any], object]] = [
    lambda stream: stream.match,
    lambda stream: stream.held,
    lambda stream: stream.region,
    repr,
    copy.copy,
    lambda stream: stream.snapshot(),
    lambda stream: getattr(stream, "finish", None),
    lambda stream: getattr(stream, "tokens_kept", None),
]


@pytest.mark.parametrize("read", READERS)
def test_a_reader_waits_for_a_long_delta(read: Callable[[Any], object]) -> None:
    """`read` must wait while another thread is in `feed`. Before a fix, `read` raised, and without a GIL `feed` raised
    as well."""
    scanner = StopScanner(STOPS)
    scanner.feed("E")
    done = threading.Event()

    def look() -> int:
        looks = 0
        while not done.is_set():
            read(scanner)
            looks += 1
        return looks

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            for _ in range(5):
                scanner.feed(LONG)
        finally:
            done.set()
        assert looking.result() > 0
    assert scanner.match is None


@pytest.mark.parametrize(
    ("make", "piece", "out"),
    [
        (lambda: StopScanner("END"), ["a ", "EN", "-"], "a EN-"),
        (lambda: Segmenter(MARKERS), ["a ", "<thi", "-"], [("answer", "a ", 0), ("answer", "<thi-", 0)]),
        (lambda: TokenScanner(VOCABULARY, "END"), [0, 1, 2, 0], "a ENa "),
        (lambda: TokenSegmenter(VOCABULARY, MARKERS), [0, 4, 1, 5], None),
    ],
    ids=["StopScanner", "Segmenter", "TokenScanner", "TokenSegmenter"],
)
def test_eight_threads_on_one_stream_of_which_one_feeds(make: Callable[[], Any], piece: list[Any], out: Any) -> None:
    stream, alone, fed = make(), make(), []
    turns = 300
    running = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            for _ in range(turns):
                fed.extend(stream.feed(part) for part in piece)
            running.set()
            return
        while not running.is_set():
            for read in READERS:
                read(stream)

    run_in_threads(work)
    expected = [alone.feed(part) for _ in range(turns) for part in piece]
    assert fed == expected
    assert (stream.held, stream.region, stream.match) == (alone.held, alone.region, alone.match)
    if isinstance(out, str):
        assert "".join(fed[: len(piece)]) == out


def test_eight_threads_on_streams_of_their_own() -> None:
    def work(number: int) -> None:
        scanner, segmenter, tokens = StopScanner(STOPS), Segmenter(MARKERS), TokenScanner(VOCABULARY, "END")
        for _ in range(300):
            assert scanner.feed(f"{number} EN") == f"{number} "
            assert scanner.feed("-") == "EN-"
            assert [text for _, text, _ in segmenter.feed("x<think>y</think>z")] == ["x", "y", "z"]
            assert tokens.feed_many([0, 1, 2, 0]) == "a ENa "
            assert (scanner.held, tokens.tokens_seen % 4) == ("", 0)

    run_in_threads(work)


def test_concurrent_feeds_raise_and_lose_nothing() -> None:
    scanner = StopScanner(STOPS)
    outcomes: list[str] = []
    errors: set[str] = set()

    def work(_number: int) -> None:
        try:
            outcomes.append(scanner.feed(LONG))
        except RuntimeError as error:
            errors.add(str(error))

    run_in_threads(work)
    assert errors <= {"the scanner is in use by another thread"}
    assert outcomes == [LONG] * len(outcomes) != []


class Index:
    """A token id whose `__index__` calls the scanner that is reading it."""

    def __init__(self, scanner: TokenScanner, read: Callable[[Any], object]) -> None:
        self.scanner, self.read = scanner, read
        self.errors: list[str] = []

    def __index__(self) -> int:
        try:
            self.read(self.scanner)
        except RuntimeError as error:
            self.errors.append(str(error))
        return 1


@pytest.mark.parametrize("read", [lambda scanner: scanner.held, lambda scanner: scanner.feed(0), repr, copy.copy])
def test_nested_call_is_an_error(read: Callable[[Any], object]) -> None:
    scanner = TokenScanner(VOCABULARY, "END")
    token = Index(scanner, read)
    scanner.feed(token)  # type: ignore[arg-type]
    assert set(token.errors) <= {"the scanner is in use by a call on this thread"}
    assert scanner.held == "E"


@pytest.mark.parametrize("read", [lambda s: s.held, lambda s: s.unused, lambda s: s.region, repr, next])
def test_source_reads_its_own_stream(read: Callable[[StopStream], object]) -> None:
    streams: list[StopStream] = []

    def deltas() -> Iterator[str]:
        yield "a E"
        with pytest.raises(RuntimeError, match="the stream is in use by a call on this thread"):
            read(streams[0])
        yield "ND"

    streams.append(scan(deltas(), "END"))
    assert list(streams[0]) == ["a "]
    assert streams[0].match == StopMatch("END", 2)


def test_another_thread_looks_at_a_stream_whose_source_waits() -> None:
    entered, release = threading.Event(), threading.Event()

    def deltas() -> Iterator[str]:
        yield "a E"
        entered.set()
        release.wait()
        yield "ND"

    stream = scan(deltas(), "END")
    reader = threading.Thread(target=lambda: [*stream])
    reader.start()
    entered.wait()
    try:
        assert (stream.held, stream.match, stream.region, stream.closes) == ("E", None, "answer", True)
        assert repr(stream) == "<StopStream region='answer' held='E' match=None>"
    finally:
        release.set()
        reader.join()


def test_task_reads_a_waiting_async_stream() -> None:
    async def run() -> None:
        release = asyncio.Event()

        async def deltas() -> Any:
            yield "a E"
            await release.wait()
            yield "ND"

        stream = ascan(deltas(), "END")
        assert await anext(stream) == "a "
        reading = asyncio.ensure_future(anext(stream, None))
        await asyncio.sleep(0)
        assert (stream.held, stream.match, stream.region, stream.closes) == ("E", None, "answer", True)
        assert repr(stream) == "<AsyncStopStream region='answer' held='E' match=None>"
        release.set()
        await reading

    asyncio.run(run())
