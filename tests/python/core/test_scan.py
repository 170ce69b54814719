"""`scan` and `ascan`: what they yield, how far they read their source, and when they close it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from stopscan import StopMatch, ascan, scan


class Source:
    """A source of deltas that counts how many were read, and how often it was closed."""

    def __init__(self, *deltas: str) -> None:
        self.deltas = iter(deltas)
        self.read = 0
        self.closed = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        delta = next(self.deltas)
        self.read += 1
        return delta

    def close(self) -> None:
        self.closed += 1

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.close()


class Response:
    """Imitates the response of an API client. Closing the response ends the request, but closing its iterator does
    not."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.closed = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self.source)

    def __aiter__(self) -> AsyncIterator[str]:
        return aiter(self.source)

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.close()


def test_scan_stops_reading_and_closes_the_source() -> None:
    source = Source("a ", "E", "ND x", "more")
    stream = scan(source, "END")
    assert iter(stream) is stream
    assert list(stream) == ["a "]
    assert (source.read, source.closed) == (3, 1)
    assert (stream.match, stream.held, stream.unused) == (StopMatch("END", 2), "", " x")
    assert list(stream) == []
    assert (source.read, source.closed) == (3, 1)


def test_scan_closes_source_before_the_last_text() -> None:
    source = Source("text END")
    stream = scan(source, "END")
    assert (next(stream), source.closed, stream.match) == ("text ", 1, StopMatch("END", 5))


def test_scan_closes_a_generator() -> None:
    closed = []

    def deltas() -> Iterator[str]:
        try:
            yield from ["a END", "more"]
        finally:
            closed.append(True)

    assert list(scan(deltas(), "END")) == ["a "]
    assert closed == [True]


def test_scan_closes_what_gave_the_iterator_too() -> None:
    response = Response(Source("a END"))
    assert list(scan(response, "END")) == ["a "]
    assert (response.source.closed, response.closed) == (1, 1)


def test_scan_needs_no_close() -> None:
    assert list(scan(["a END", "more"], "END")) == ["a "]
    assert list(scan("a END", "END")) == ["a", " "]


def test_scan_skips_empty_deltas_and_flushes() -> None:
    stream = scan(["", "a E", "", "N"], "END")
    assert next(stream) == "a "
    assert stream.held == "E"
    assert list(stream) == ["EN"]
    assert (stream.match, stream.held, stream.unused) == (None, "", "")


def test_scan_gives_the_very_objects() -> None:
    deltas = ["some text", "é🦀字"]
    assert all(out is delta for out, delta in zip(scan(deltas, "END"), deltas, strict=True))


def test_close_ends_the_stream() -> None:
    source = Source("a E", "N b", "c")
    stream = scan(source, "END")
    assert next(stream) == "a "
    stream.close()
    stream.close()
    assert (list(stream), source.read, source.closed) == ([], 1, 1)


def test_scan_of_an_error_keeps_what_was_withheld() -> None:
    def deltas() -> Iterator[str]:
        yield "a E"
        raise ConnectionError("gone")

    stream = scan(deltas(), "END")
    assert next(stream) == "a "
    with pytest.raises(ConnectionError, match="gone"):
        next(stream)
    assert (stream.held, stream.match) == ("E", None)


async def everything(stream: AsyncIterator[str]) -> list[str]:
    return [text async for text in stream]


def test_ascan_stops_reading_and_closes_the_source() -> None:
    source = Source("a ", "E", "ND x", "more")
    stream = ascan(source, "END")
    assert aiter(stream) is stream
    assert asyncio.run(everything(stream)) == ["a "]
    assert (source.read, source.closed) == (3, 1)
    assert (stream.match, stream.held, stream.unused) == (StopMatch("END", 2), "", " x")
    assert asyncio.run(everything(stream)) == []
    assert (source.read, source.closed) == (3, 1)


def test_ascan_closes_a_generator() -> None:
    closed = []

    async def deltas() -> AsyncIterator[str]:
        try:
            for delta in ["a END", "more"]:
                yield delta
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    async def check() -> None:
        assert await everything(ascan(deltas(), "END")) == ["a "]
        assert closed == [True]

    asyncio.run(check())


def test_ascan_closes_what_gave_the_iterator_too() -> None:
    response = Response(Source("a END"))
    assert asyncio.run(everything(ascan(response, "END"))) == ["a "]
    assert (response.source.closed, response.closed) == (1, 1)


def test_aclose_ends_the_stream() -> None:
    source = Source("a E", "N b", "c")

    async def check() -> None:
        stream = ascan(source, "END")
        assert await anext(stream) == "a "
        await stream.aclose()
        await stream.aclose()
        assert (await everything(stream), source.read, source.closed) == ([], 1, 1)

    asyncio.run(check())


def test_ascan_of_an_error_keeps_what_was_withheld() -> None:
    async def deltas() -> AsyncIterator[str]:
        yield "a E"
        raise ConnectionError("gone")

    async def check() -> None:
        stream = ascan(deltas(), "END")
        assert await anext(stream) == "a "
        with pytest.raises(ConnectionError, match="gone"):
            await anext(stream)
        assert (stream.held, stream.match) == ("E", None)

    asyncio.run(check())


def test_cancelled_ascan_keeps_held_text_and_continues() -> None:
    """If an `anext` is cancelled, no text is lost as long as the source can be read again."""

    class Slow(Source):
        async def __anext__(self) -> str:
            if self.read == 1 and not self.closed:
                self.closed = -1
                await asyncio.sleep(3600)
            return await super().__anext__()

    async def check() -> None:
        stream = ascan(Slow("a E", "N b"), "END")
        assert await anext(stream) == "a "
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert stream.held == "E"
        assert await everything(stream) == ["EN b"]

    asyncio.run(check())
