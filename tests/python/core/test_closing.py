"""Closing, cancelling and errors in mid-stream, for each of the four streams: nothing is lost and nothing leaks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from stopscan import StopMatch, ascan, scan
from stopscan.segments import SegmentSet, asplit, split

MARKERS = {"answer": {"<think>": "answer"}}


class Source:
    """An iterator that notes its end, and whose `close` fails as often as it is told."""

    def __init__(self, *deltas: str, failures: int = 0) -> None:
        self.deltas = iter(deltas)
        self.failures = failures
        self.closed = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self.deltas)

    def close(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("cannot close")
        self.closed += 1


class AsyncSource(Source):
    def __aiter__(self) -> AsyncIterator[str]:
        return self  # type: ignore[return-value]

    async def __anext__(self) -> str:
        for delta in self.deltas:
            return delta
        raise StopAsyncIteration

    async def aclose(self) -> None:
        super().close()


class ApiStream(AsyncSource):
    """As the official clients have it: an async `close`, and no `aclose`."""

    aclose = None  # type: ignore[assignment]

    async def close(self) -> None:  # type: ignore[override]
        super().close()


def texts(items: list[Any]) -> str:
    return "".join(item if isinstance(item, str) else item[1] for item in items)


@pytest.mark.parametrize("make", [scan, split], ids=["scan", "split"])
def test_a_stream_is_a_context_manager(make: Callable[..., Any]) -> None:
    source = Source("one", "two")
    with make(source, "END" if make is scan else MARKERS) as stream:
        assert texts([next(stream)]) == "one"
    assert source.closed == 1
    assert list(stream) == []
    stream.close()
    assert source.closed == 1


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


def test_an_async_source_may_have_a_plain_close_or_none() -> None:
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


@pytest.mark.parametrize("make", [scan, split], ids=["scan", "split"])
def test_a_close_that_fails_changes_nothing(make: Callable[..., Any]) -> None:
    source = Source("one", "two", failures=1)
    stream = make(source, "END" if make is scan else MARKERS)
    next(stream)
    with pytest.raises(OSError, match="cannot close"):
        stream.close()
    assert texts([next(stream)]) == "two"
    stream.close()
    assert source.closed == 1
    assert list(stream) == []


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


@pytest.mark.parametrize("make", [scan, split], ids=["scan", "split"])
def test_close_while_another_thread_is_in_next(make: Callable[..., Any]) -> None:
    """It used to end the stream silently, lose text and leak the source."""
    entered, leave = threading.Event(), threading.Event()

    def deltas() -> Iterator[str]:
        try:
            entered.set()
            leave.wait(10)
            yield "one"
            yield "two"
        finally:
            closed.set()

    closed = threading.Event()
    stream = make(deltas(), "END" if make is scan else MARKERS)
    items: list[Any] = []
    reader = threading.Thread(target=lambda: items.append(next(stream)))
    reader.start()
    assert entered.wait(10)
    for call in (stream.close, lambda: next(stream)):
        with pytest.raises(RuntimeError, match="the stream is in use by another thread"):
            call()
    leave.set()
    reader.join()
    items.append(next(stream))
    assert texts(items) == "onetwo"
    assert not closed.is_set()
    stream.close()
    assert closed.is_set()


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
def test_cancelled_while_closing_after_a_stop(make: Callable[..., Any]) -> None:
    """`textEND` under a timeout, with a source that is slow to close, used to give nothing."""

    class Slow(AsyncSource):
        delays = iter([3600, 0])

        async def aclose(self) -> None:
            await asyncio.sleep(next(self.delays))

    async def run() -> None:
        stop = "END" if make is ascan else SegmentSet({"answer": {}}, stop="END")
        stream = make(Slow("textEND"), stop)
        items: list[Any] = []

        async def read() -> None:
            async for item in stream:
                items.append(item)

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(read(), 0.05)
        await read()
        assert texts(items) == "text"
        assert (stream.match, stream.held) == (StopMatch("END", 4), "")

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
@pytest.mark.parametrize("kind", ["generator", "iterator", "api stream"])
@pytest.mark.parametrize("cancelled_at", range(8))
def test_a_close_whose_task_was_cancelled_is_finished_by_the_next_step(
    make: Callable[..., Any], kind: str, cancelled_at: int
) -> None:
    """A timeout that struck inside the source's `aclose` left the source open, although its reader went on to the end.
    The task is cancelled at each await in turn."""

    async def run() -> None:
        source = SOURCES[kind]()
        stream = make(source, "END" if make is ascan else SegmentSet({"answer": {}}, stop="END"))
        items: list[Any] = []

        async def read() -> None:
            async for item in stream:
                items.append(item)

        reader = asyncio.ensure_future(read())
        for _ in range(cancelled_at + 1):
            await asyncio.sleep(0)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await read()
        if stream.match is None:  # a generator that is cancelled while it works is over: its text has no stop
            assert kind == "generator"
        else:
            assert texts(items) == "text"
        assert source.was_closed

    asyncio.run(run())


class Awaiting(AsyncSource):
    """A source that waits at each step, and while it closes."""

    was_closed = False

    def __init__(self) -> None:
        super().__init__("te", "xtEND")

    async def __anext__(self) -> str:
        await asyncio.sleep(0)
        return await super().__anext__()

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.was_closed = True


class AwaitingApiStream(Awaiting):
    aclose = None  # type: ignore[assignment]

    async def close(self) -> None:  # type: ignore[override]
        await Awaiting.aclose(self)


class AwaitingGenerator:
    """An async generator that waits at each step and in its `finally`."""

    was_closed = False

    def __aiter__(self) -> AsyncIterator[str]:
        return self.deltas()

    async def deltas(self) -> AsyncIterator[str]:
        try:
            for delta in ["te", "xtEND", "more"]:
                await asyncio.sleep(0)
                yield delta
        finally:
            self.was_closed = True
            await asyncio.sleep(0)


SOURCES: dict[str, Callable[[], Any]] = {
    "generator": AwaitingGenerator,
    "iterator": Awaiting,
    "api stream": AwaitingApiStream,
}


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_an_aclose_whose_task_was_cancelled_is_finished_by_the_next_step(make: Callable[..., Any]) -> None:
    async def run() -> None:
        source = Awaiting()
        stream = make(source, None if make is ascan else SegmentSet({"answer": {}}))
        items = [await anext(stream)]
        closing = asyncio.ensure_future(stream.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        assert not source.was_closed
        items += [item async for item in stream]
        assert source.was_closed
        assert texts(items) == "te"

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_a_step_that_is_cancelled_while_closing_is_cancelled(make: Callable[..., Any]) -> None:
    """It does not end as if nothing had happened; the text comes with the next step, and no error behind it."""
    closing = asyncio.Event()

    class Slow(AsyncSource):
        async def aclose(self) -> None:
            if not closing.is_set():
                closing.set()
                await asyncio.sleep(3600)
            await super().aclose()

    async def run() -> None:
        source = Slow("textEND")
        stream = make(source, "END" if make is ascan else SegmentSet({"answer": {}}, stop="END"))
        step = asyncio.ensure_future(anext(stream))
        await closing.wait()
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        assert texts([item async for item in stream]) == "text"
        assert source.closed == 1
        await stream.aclose()
        assert source.closed == 1

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
@pytest.mark.parametrize("failures", [1, 2])
def test_an_error_of_async_closing_after_a_stop_comes_behind_the_text(make: Callable[..., Any], failures: int) -> None:
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
        source = AsyncSource("textEND more", "never")  # its close does not end it
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
        assert texts([item async for item in stream]) == "<th"  # the source has ended

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_the_source_and_its_iterator_are_closed_both(make: Callable[..., Any]) -> None:
    """Only the close of an API client's stream ends the request, whatever its iterator's does."""

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


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_cancelled_while_waiting_for_a_delta(make: Callable[..., Any]) -> None:
    """What is held stays in `held`, and a source that can go on goes on."""

    class Slow(AsyncSource):
        waits = True

        async def __anext__(self) -> str:
            if self.waits:
                await asyncio.sleep(3600)
            return await super().__anext__()

    async def run() -> None:
        source = Slow("text <th", "ink>5")
        source.waits = False
        stream = make(source, "<think>" if make is ascan else MARKERS)
        assert texts([await anext(stream)]) == "text "
        source.waits = True
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(stream), 0.05)
        assert stream.held == "<th"
        source.waits = False
        assert texts([item async for item in stream]) == ("" if make is ascan else "5")

    asyncio.run(run())


@pytest.mark.parametrize("make", [scan, split], ids=["scan", "split"])
def test_an_error_of_the_source_comes_through(make: Callable[..., Any]) -> None:
    def deltas() -> Iterator[str]:
        yield "text <th"
        raise OSError("connection lost")

    stream = make(deltas(), "<think>" if make is scan else MARKERS)
    assert texts([next(stream)]) == "text "
    with pytest.raises(OSError, match="connection lost"):
        next(stream)
    assert stream.held == "<th"
    assert texts(list(stream)) == "<th"  # the source has ended


def test_an_async_stream_of_segments_says_which_region_is_open() -> None:
    async def run() -> None:
        stream = asplit(AsyncSource("one|two", "three"), {"a": {"|": "b"}, "b": {}})
        assert stream.region == "a"
        assert [item async for item in stream] == [("a", "one"), ("b", "two"), ("b", "three")]
        assert stream.region == "b"
        segments = SegmentSet({"a": {}, "b": {}}, stop="END")
        stream = asplit(AsyncSource("oneEND"), segments, region="b", include_stop=True)
        assert [item async for item in stream] == [("b", "oneEND")]
        assert [item async for item in asplit(AsyncSource("oneEND"), segments)] == [("a", "one")]

    asyncio.run(run())


def test_segments_that_are_ready_survive_a_close() -> None:
    stream = split(["one|two|three", "four"], {"a": {"|": "b"}, "b": {"|": "a"}})
    assert next(stream) == ("a", "one")
    stream.close()
    assert list(stream) == [("b", "two"), ("a", "three")]


@pytest.mark.parametrize("failures", [1, 2])
def test_an_error_of_closing_after_a_stop_comes_behind_the_text(failures: int) -> None:
    source = Source("textEND", failures=failures)
    stream = scan(source, "END")
    assert next(stream) == "text"
    with pytest.raises(OSError, match="cannot close"):
        next(stream)
    assert list(stream) == []
    for _ in range(failures - 1):
        with pytest.raises(OSError, match="cannot close"):
            stream.close()
    stream.close()
    assert source.closed == 1
