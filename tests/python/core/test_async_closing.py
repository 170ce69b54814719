"""Closing and errors in mid-stream, for `ascan` and `asplit`: nothing is lost and nothing leaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from delta_sources import MARKERS, ApiStream, AsyncSource, texts

from stopscan import StopMatch, ascan
from stopscan.segments import SegmentSet, asplit


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
@pytest.mark.parametrize("kind", [AsyncSource, ApiStream])
def test_an_async_stream_is_an_async_context_manager(make: Callable[..., Any], kind: type[AsyncSource]) -> None:
    async def run() -> None:
        source = kind("one", "two")
        async with make(source, "END" if make is ascan else MARKERS) as stream:
            assert texts([await anext(stream)]) == "one"
        assert source.closed == 1
        assert [item async for item in stream] == []
        await stream.aclose()
        assert source.closed == 1

    asyncio.run(run())


def test_an_async_close_is_awaited_after_a_stop() -> None:
    async def run() -> None:
        source = ApiStream("text E", "ND more", "never")
        stream = ascan(source, "END")
        assert [text async for text in stream] == ["text "]
        assert (source.closed, stream.match) == (1, StopMatch("END", 5))

    asyncio.run(run())


def test_async_source_may_lack_aclose() -> None:
    class Bare:
        def __init__(self) -> None:
            self.deltas = iter(["a E", "ND"])

        def __aiter__(self) -> AsyncIterator[str]:
            return self  # type: ignore[return-value]

        async def __anext__(self) -> str:
            return next(self.deltas)

    class Plain(Bare):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    async def read(source: Any) -> list[str]:
        return [text async for text in ascan(source, "END")]

    plain = Plain()
    assert asyncio.run(read(Bare())) == asyncio.run(read(plain)) == ["a "]
    assert plain.closed == 1


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_an_async_close_that_fails_changes_nothing(make: Callable[..., Any]) -> None:
    async def run() -> None:
        source = AsyncSource("one", "two", failures=1)
        stream = make(source, "END" if make is ascan else MARKERS)
        await anext(stream)
        with pytest.raises(OSError, match="cannot close"):
            await stream.aclose()
        assert texts([await anext(stream)]) == "two"
        await stream.aclose()
        assert source.closed == 1
        assert [item async for item in stream] == []

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_aclose_while_another_task_is_in_next(make: Callable[..., Any]) -> None:
    async def run() -> None:
        leave, closed = asyncio.Event(), asyncio.Event()

        async def deltas() -> AsyncIterator[str]:
            try:
                await leave.wait()
                yield "one"
                yield "two"
            finally:
                closed.set()

        stream = make(deltas(), "END" if make is ascan else MARKERS)
        reader = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        for call in (stream.aclose, stream.__anext__):
            with pytest.raises(RuntimeError, match="the stream is in use by another task"):
                await call()
        leave.set()
        items = [await reader, await anext(stream)]
        assert texts(items) == "onetwo"
        assert not closed.is_set()
        await stream.aclose()
        assert closed.is_set()

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
@pytest.mark.parametrize("failures", [1, 2])
def test_error_of_async_closing_follows_the_text(make: Callable[..., Any], failures: int) -> None:
    async def run() -> None:
        source = AsyncSource("textEND", failures=failures)
        stream = make(source, "END" if make is ascan else SegmentSet({"answer": {}}, stop="END"))
        assert texts([await anext(stream)]) == "text"
        with pytest.raises(OSError, match="cannot close"):
            await anext(stream)
        assert [item async for item in stream] == []
        for _ in range(failures - 1):
            with pytest.raises(OSError, match="cannot close"):
                await stream.aclose()
        await stream.aclose()
        assert source.closed == 1

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_nothing_is_read_behind_a_stop(make: Callable[..., Any]) -> None:
    async def run() -> None:
        source = AsyncSource("textEND more", "never")  # this source can be read even after it is closed
        stream = make(source, "END" if make is ascan else SegmentSet({"answer": {}}, stop="END"))
        assert texts([item async for item in stream]) == "text"
        assert stream.unused == " more"
        assert await anext(source) == "never"

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_an_async_error_of_the_source_comes_through(make: Callable[..., Any]) -> None:
    async def deltas() -> AsyncIterator[str]:
        yield "text <th"
        raise OSError("connection lost")

    async def run() -> None:
        stream = make(deltas(), "<think>" if make is ascan else MARKERS)
        assert texts([await anext(stream)]) == "text "
        with pytest.raises(OSError, match="connection lost"):
            await anext(stream)
        assert stream.held == "<th"
        assert texts([item async for item in stream]) == "<th"  # the source has ended, so the held text comes out

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_the_source_and_its_iterator_are_closed_both(make: Callable[..., Any]) -> None:
    """An API client's stream ends its request only when the stream is closed. So the stream must be closed even if
    closing its iterator fails."""

    class Request:
        closed = 0

        def __init__(self, iterator: AsyncSource) -> None:
            self.iterator = iterator

        def __aiter__(self) -> AsyncIterator[str]:
            return self.iterator  # type: ignore[return-value]

        async def close(self) -> None:
            self.closed += 1

    async def run(failures: int) -> None:
        iterator = AsyncSource("one", failures=failures)
        request = Request(iterator)
        stream = make(request, "END" if make is ascan else MARKERS)
        if failures:
            with pytest.raises(OSError, match="cannot close"):
                await stream.aclose()
            assert (iterator.closed, request.closed) == (0, 1)
        await stream.aclose()
        assert (iterator.closed, request.closed) == (1, 1 + failures)

    asyncio.run(run(0))
    asyncio.run(run(1))


def test_async_segments_name_the_open_region() -> None:
    async def run() -> None:
        stream = asplit(AsyncSource("one|two", "three"), {"a": {"|": "b"}, "b": {}})
        assert stream.region == "a"
        assert [item async for item in stream] == [("a", "one", 0), ("b", "two", 1), ("b", "three", 1)]
        assert stream.region == "b"
        segments = SegmentSet({"a": {}, "b": {}}, stop="END")
        stream = asplit(AsyncSource("oneEND"), segments, region="b", include_stop=True)
        assert [item async for item in stream] == [("b", "oneEND", 0)]
        assert [item async for item in asplit(AsyncSource("oneEND"), segments)] == [("a", "one", 0)]

    asyncio.run(run())
