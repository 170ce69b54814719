"""The async iterator: closing, errors, and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from sources import AsyncSource, Source, chunks, texts

from stopscan_clients import ascan_events


def test_async_a_stop_awaits_the_close_of_the_source() -> None:
    async def read() -> None:
        source = AsyncSource(*chunks("one E", "ND", "more"))
        stream = ascan_events(source, "END")
        assert texts([event async for event in stream]) == ["one ", "", None]
        assert source.closed == 1
        await stream.aclose()
        assert source.closed == 1

    asyncio.run(read())


def test_async_a_visible_stop() -> None:
    async def read() -> None:
        stream = ascan_events(AsyncSource(*chunks("one E", "ND two")), "END", include_stop=True)
        assert texts([event async for event in stream]) == ["one E", "ND", None]

    asyncio.run(read())


def test_async_a_close_that_fails() -> None:
    async def read() -> None:
        source = AsyncSource(*chunks("one", "two END"), failures=2)
        stream = ascan_events(source, "END")
        assert texts([await anext(stream)]) == ["one"]
        with pytest.raises(OSError, match="cannot be closed"):
            await stream.aclose()
        assert texts([await anext(stream), await anext(stream)]) == ["two ", None]
        with pytest.raises(OSError, match="cannot be closed"):
            await anext(stream)
        assert source.closed == 0, "a stop closes the source once"
        await stream.aclose()
        assert source.closed == 1

    asyncio.run(read())


def test_async_a_cancelled_close_at_a_stop_is_repeated() -> None:
    async def read() -> None:
        source = AsyncSource(*chunks("one END"), slow_close=True)
        stream = ascan_events(source, "END")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(stream), 0.05)
        assert (source.closed, stream.matches[0].offset) == (0, 4)
        assert texts([event async for event in stream]) == ["one ", None]
        assert source.closed == 1

    asyncio.run(read())


def test_async_a_cancelled_step_that_can_go_on_does() -> None:
    async def read() -> None:
        late = asyncio.get_running_loop().create_future()
        stream = ascan_events(AsyncSource(*chunks("one EN"), late, *chunks("D")), "END")
        assert texts([await anext(stream)]) == ["one "]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(stream), 0.05)
        assert stream.held == {0: "EN"}
        assert texts([event async for event in stream]) == ["", None]
        assert stream.matches[0].sequence == "END"

    asyncio.run(read())


def test_async_another_task_is_refused() -> None:
    async def read() -> None:
        late = asyncio.get_running_loop().create_future()
        source = AsyncSource(late)
        stream = ascan_events(source, "END")
        step = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.01)
        for refused in (stream.aclose, stream.__anext__):
            with pytest.raises(RuntimeError, match="in use"):
                await refused()
        late.set_result(chunks("one")[0])
        assert texts([await step]) == ["one"]
        await stream.aclose()
        assert source.closed == 1

    asyncio.run(read())


def test_async_another_task_is_refused_during_a_close() -> None:
    async def read() -> None:
        stream = ascan_events(AsyncSource(*chunks("one"), slow_close=True), "END")
        closing = asyncio.ensure_future(stream.aclose())
        await asyncio.sleep(0.01)
        for refused in (stream.aclose, stream.__anext__):
            with pytest.raises(RuntimeError, match="in use"):
                await refused()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert texts([await anext(stream)]) == ["one"]

    asyncio.run(read())


def test_async_a_cancelled_step_while_reading_on_is_cancelled() -> None:
    async def read() -> None:
        late = asyncio.get_running_loop().create_future()
        stream = ascan_events(AsyncSource(*chunks("one END"), late), "END", drain=True)
        assert texts([await anext(stream)]) == ["one "]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(stream), 0.05)
        assert texts([event async for event in stream]) == [None]

    asyncio.run(read())


def test_async_an_error_while_reading_on() -> None:
    async def read() -> None:
        stream = ascan_events(AsyncSource(*chunks("one END"), ConnectionError("lost")), "END", drain=True)
        assert texts([await anext(stream), await anext(stream)]) == ["one ", None]
        with pytest.raises(ConnectionError):
            await anext(stream)
        assert [event async for event in stream] == []

    asyncio.run(read())


def test_async_an_error_in_mid_stream_leaves_the_text() -> None:
    async def read() -> None:
        stream = ascan_events(AsyncSource(*chunks("one EN"), ConnectionError("lost")), "END")
        assert texts([await anext(stream)]) == ["one "]
        with pytest.raises(ConnectionError):
            await anext(stream)
        assert stream.held == {0: "EN"}

    asyncio.run(read())


def test_a_request_that_was_not_awaited_is_refused() -> None:
    async def request() -> None: ...

    coroutine = request()
    with pytest.raises(TypeError, match="await it first"):
        ascan_events(coroutine, "END")  # type: ignore[arg-type]
    coroutine.close()


def test_an_async_iterable_is_closed_with_its_iterator() -> None:
    class Response:
        closed = 0

        async def __aiter__(self) -> AsyncIterator[Any]:
            try:
                for chunk in chunks("END", "more"):
                    yield chunk
            finally:
                self.closed += 1

        async def close(self) -> None:
            self.closed += 10

    async def read() -> None:
        response = Response()
        assert texts([event async for event in ascan_events(response, "END")]) == ["", None]
        assert response.closed == 11

    asyncio.run(read())


def test_an_async_generator_is_closed() -> None:
    closed: list[bool] = []

    async def source() -> AsyncIterator[Any]:
        try:
            for chunk in chunks("one END", "two"):
                yield chunk
        finally:
            closed.append(True)

    async def read() -> None:
        assert texts([event async for event in ascan_events(source(), "END")]) == ["one ", None]
        assert closed == [True]

    asyncio.run(read())


def test_an_async_generator_alone_is_closed() -> None:
    """A stop closes the source, which is an async generator here. It must not close objects that the generator uses,
    such as `known`."""
    known = SimpleNamespace(response_stream=Source())
    opened: list[Any] = []

    async def source(it: Any) -> AsyncIterator[Any]:
        itself = opened[0]
        for chunk in chunks("one END", "two"):
            yield chunk
        del it, itself

    async def read() -> None:
        opened.append(source(known))
        assert texts([event async for event in ascan_events(opened[0], "END")]) == ["one ", None]
        assert known.response_stream.closed == 0

    asyncio.run(read())


def test_async_a_closed_stream_reads_no_more() -> None:
    async def read() -> None:
        stream = ascan_events(AsyncSource(*chunks("one", "two")), "END")
        assert texts([await anext(stream)]) == ["one"]
        await stream.aclose()
        assert [event async for event in stream] == []

    asyncio.run(read())


def test_an_async_iterator_that_cannot_be_closed() -> None:
    class Source:
        events = iter(chunks("one END", "two"))

        def __aiter__(self) -> Source:
            return self

        async def __anext__(self) -> Any:
            return next(self.events)

    async def read() -> None:
        async with ascan_events(Source(), "END") as stream:
            assert texts([event async for event in stream]) == ["one ", None]

    asyncio.run(read())
