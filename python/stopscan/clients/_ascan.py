from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from inspect import isawaitable
from types import TracebackType
from typing import Any, TypeVar

from stopscan import StopSet
from stopscan.clients._events import BUSY, Events, Helper, closer, is_helper, options_of
from stopscan.clients._genai import http_responses
from stopscan.clients._machine import Options

E = TypeVar("E")


class AsyncEventStream(Events[E], AsyncIterator[E]):
    """The async twin of ``EventStream``. ``ascan_events`` makes it."""

    _closers = ("aclose", "close")

    def __init__(self, stream: Any, options: Options) -> None:
        super().__init__(stream, options)
        self._busy = False
        self._closing = False  # a stop has ended the stream, and the source is not closed yet
        self._iterator: AsyncIterator[E] = stream if hasattr(type(stream), "__anext__") else aiter(stream)
        self._next = self._iterator.__anext__

    def __aiter__(self) -> AsyncEventStream[E]:
        return self

    async def __anext__(self) -> E:
        if self._busy:
            raise RuntimeError(BUSY)
        self._busy = True
        try:
            while True:
                if self._closing:
                    await self._close_after_stop()
                if self._ready:
                    return self._ready.popleft()
                if not self._reading:
                    self._stop(StopAsyncIteration())
                try:
                    event = await self._next()
                except StopAsyncIteration:
                    self._end()
                except Exception as error:
                    if not self._failed(error):
                        raise
                else:
                    out = self._feed(event)
                    if out is None:
                        return event
                    self._give(out)
                    self._closing = not self._reading
        finally:
            self._busy = False

    async def _close_after_stop(self) -> None:
        # A cancellation leaves the events ready and the source to be closed with the next step.
        try:
            await self._close()
        except Exception as error:  # the text before the stop comes first
            self._error = error
        self._closing = False

    async def _close(self) -> None:
        if self._closed:
            return
        try:
            await _close(self._iterator)
        finally:
            if self._stream is not self._iterator:
                await _close(self._stream)
        self._closed = True

    async def aclose(self) -> None:
        """Closes the source, as a stop does. The stream ends with the events that are ready. Held text stays in
        ``held``.

        If the source cannot be closed, the error reaches the caller. The stream then goes on, and can be closed again.
        The ``RuntimeError`` while another task is in the stream is such an error.
        """
        if self._busy:
            raise RuntimeError(BUSY)
        self._busy = True
        try:
            await self._close()
            self._reading = False
        finally:
            self._busy = False

    close = aclose  # what the clients' own streams call it

    async def __aenter__(self) -> AsyncEventStream[E]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


async def _close(source: Any) -> None:
    for open_ in (source, *http_responses(source)):
        close = closer(open_, "aclose", "close")
        closing = close() if close is not None else None
        if isawaitable(closing):
            await closing


class AsyncHelperStream(Helper[E], AsyncEventStream[E]):
    """The async twin of ``HelperStream``."""

    _kind = AsyncEventStream


def ascan_events(
    stream: AsyncIterable[E],
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    drain: bool = False,
    region: str | None = None,
    choices: int | None = None,
) -> AsyncEventStream[E]:
    """Returns an async iterator of the stream's events up to a stop, as ``scan_events`` does.

    ``stream`` is the object that an async client returns when its request was awaited. If a step is cancelled, no event
    is lost: the events that were ready come with the next step.

    >>> async def answer(client, **request):
    ...     stream = await client.chat.completions.create(stream=True, **request)
    ...     async with ascan_events(stream, "Observation:") as events:
    ...         return "".join([event.choices[0].delta.content or "" async for event in events])
    """
    if not hasattr(stream, "__aiter__"):
        hint = "await it first" if isawaitable(stream) else "it is no async iterable of events"
        raise TypeError(f"ascan_events cannot read {type(stream).__name__}: {hint}")
    options = options_of(stream, stop, include_stop, drain, region, choices)
    return (AsyncHelperStream if is_helper(stream) else AsyncEventStream)(stream, options)
