"""A task that is cancelled in mid-stream loses nothing and leaves nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from delta_sources import MARKERS, AsyncSource, texts

from stopscan import StopMatch, ascan
from stopscan.segments import SegmentSet, asplit


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_cancelled_while_closing_after_a_stop(make: Callable[..., Any]) -> None:
    """A timeout while the source is being closed must not lose the text before the stop. Before a fix, it was lost."""

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
def test_next_step_finishes_a_cancelled_close(make: Callable[..., Any], kind: str, cancelled_at: int) -> None:
    """If a timeout interrupts the source's `aclose`, the next step of the stream must close the source. Before a fix,
    the source stayed open. Here the task is cancelled at each `await` in turn."""

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
        if stream.match is None:  # the generator was cancelled at its `await`, so it ended before it yielded the stop
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
def test_next_step_finishes_a_cancelled_aclose(make: Callable[..., Any]) -> None:
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
def test_error_of_a_close_after_a_cancelled_aclose(make: Callable[..., Any]) -> None:
    class Slow(AsyncSource):
        delays = iter([3600, 0, 0])

        async def aclose(self) -> None:
            await asyncio.sleep(next(self.delays))
            await super().aclose()

    async def run() -> None:
        source = Slow("one", "two", "three", failures=1)
        stream = make(source, "END" if make is ascan else MARKERS)
        assert texts([await anext(stream)]) == "one"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.aclose(), 0.01)
        with pytest.raises(OSError, match="cannot close"):
            await anext(stream)
        assert texts([item async for item in stream]) == "twothree"
        await stream.aclose()
        assert source.closed == 1

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit], ids=["ascan", "asplit"])
def test_a_step_that_is_cancelled_while_closing_is_cancelled(make: Callable[..., Any]) -> None:
    """If a step of the stream is cancelled while it closes the source, the step must raise `CancelledError`. The next
    step returns the text, and no error follows."""
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
def test_cancelled_while_waiting_for_a_delta(make: Callable[..., Any]) -> None:
    """After the cancellation, the held text is still in `held`. If the source can be read again, the stream goes on."""

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
