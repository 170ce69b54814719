from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from types import TracebackType
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

from stopscan._stopscan import Rewriter, Segmenter, StopMatch, StopScanner

Item = TypeVar("Item")
Stream = TypeVar("Stream", bound="AsyncDeltaStream[Any]")


class AsyncDeltaStream(Generic[Item]):
    """The base of all async streams: an async iterator over deltas.

    A step is one call of ``__anext__``. It returns one item: a text or a segment. Items that are not returned yet are
    in ``_ready``, so no item is lost if a task is cancelled while it closes the source. The next step then closes the
    source, and returns an item.
    """

    __slots__ = (
        "_closed",
        "_closing",
        "_deltas",
        "_ended",
        "_error",
        "_iterator",
        "_reader",
        "_ready",
        "_running",
    )

    _synchronous: ClassVar[str]  # "scan", "split" or "rewrite": an error recommends it for a source that is not async

    def __init__(self, deltas: AsyncIterable[str], reader: StopScanner | Segmenter | Rewriter, /) -> None:
        self._deltas = deltas
        self._iterator = self._iterate(deltas)
        self._reader = reader
        self._ready: list[Item] = []  # the items that are ready, in reverse order, so that `pop` returns the first
        self._running = False  # whether a task is in `__anext__` or `aclose`
        self._ended = False  # whether the source is not read any more
        self._closing = False  # whether a close has begun; if its task is cancelled, the next `__anext__` finishes it
        self._closed = False
        self._error: Exception | None = None  # an error of the close after a stop; raised after the last item

    def __aiter__(self: Stream) -> Stream:
        return self

    def __copy__(self) -> NoReturn:
        # The stream refuses to be copied, because the copy would share its source and its scanner, and take text from
        # it. `deepcopy` also copies the source and the scanner, so it works if the source can be copied.
        raise TypeError(f"cannot copy {type(self).__name__!r} object")

    async def __anext__(self) -> Item:
        self._begin()
        try:
            if self._closing:
                await self._finish_close()
            while not self._ready and not self._ended:
                await self._read()
        finally:
            self._running = False
        if self._ready:
            return self._ready.pop()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Closes the source and ends the stream. Items that are ready are still returned. Held text stays in ``held``.

        If closing the source fails, the error reaches the caller. If another task is using the stream, ``aclose``
        raises ``RuntimeError``. In both cases the stream stays open, and ``aclose`` can be called again. If ``aclose``
        is cancelled, the next ``__anext__`` or ``aclose`` closes the source.
        """
        self._begin()
        try:
            await self._close()
        finally:
            self._running = False

    async def __aenter__(self: Stream) -> Stream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        await self.aclose()

    @property
    def held(self) -> str:
        """The text that is withheld because it may still become a hidden stop, a marker that is not in the output, or a
        key that is replaced."""
        return self._reader.held

    @property
    def closes(self) -> bool:
        """Whether the source can be closed. If it cannot, the model keeps generating after a stop."""
        return any(_close_of(source) is not None for source in (self._iterator, self._deltas))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} held={self.held!r}>"

    @classmethod
    def _iterate(cls, deltas: AsyncIterable[str]) -> AsyncIterator[str]:
        if hasattr(type(deltas), "__aiter__"):
            return aiter(deltas)
        hint = f"; {cls._synchronous} takes an iterable" if hasattr(deltas, "__iter__") else ""
        raise TypeError(f"deltas: expected an async iterable of str, got {type(deltas).__name__}{hint}")

    def _begin(self) -> None:
        if self._running:
            raise RuntimeError("the stream is in use by another task")
        self._running = True

    async def _read(self) -> None:
        try:
            delta = await anext(self._iterator)
        except StopAsyncIteration:
            self._give(self._flush())
            self._ended = True
            return
        self._give(self._feed(delta))
        if self._stopped():
            self._ended = self._closing = True
            await self._finish_close()

    def _give(self, items: list[Item]) -> None:
        self._ready = items[::-1]

    async def _finish_close(self) -> None:
        """Closes the source after a stop, or after an ``aclose`` that was cancelled. If closing fails after a stop, the
        error is kept: ``__anext__`` raises it after it has returned the text before the stop."""
        self._error = None
        try:
            await self._close()
        except Exception as error:
            if not self._ended:
                raise
            self._error = error

    async def _close(self) -> None:
        if self._closed:
            return
        self._closing = True
        try:
            await self._close_source()
        except Exception:
            self._closing = False
            raise
        self._closing, self._closed, self._ended = False, True, True

    async def _close_source(self) -> None:
        try:
            await _close(self._iterator)
        finally:
            # A stream of an API client may have an iterator that is a separate object. Only the stream's `close` ends
            # the request, so close the stream after its iterator.
            if self._deltas is not self._iterator:
                await _close(self._deltas)

    def _stopped(self) -> bool:
        """Whether a stop has fired."""
        return False

    def _feed(self, delta: str) -> list[Item]:
        raise NotImplementedError

    def _flush(self) -> list[Item]:
        raise NotImplementedError


class AsyncScanStream(AsyncDeltaStream[Item]):
    """The base of ``AsyncStopStream`` and ``AsyncSegmentStream``: a stream that a stop ends."""

    __slots__ = ()

    _reader: StopScanner | Segmenter

    @property
    def match(self) -> StopMatch | None:
        """The stop that fired, or ``None``."""
        return self._reader.match

    @property
    def unused(self) -> str:
        """The text after the stop in the delta that completed the stop."""
        return self._reader.unused

    @property
    def region(self) -> str:
        """The region in which the text is now, such as ``reasoning``."""
        return self._reader.region

    def __repr__(self) -> str:
        return f"<{type(self).__name__} region={self.region!r} held={self.held!r} match={self.match!r}>"

    def _stopped(self) -> bool:
        return self._reader.match is not None


def not_empty(text: str) -> list[str]:
    return [text] if text else []


def _close_of(source: Any) -> Any:
    """Returns the method that closes ``source``: ``aclose``, or ``close`` in the streams of the official clients.
    ``None`` if there is neither."""
    return getattr(source, "aclose", None) or getattr(source, "close", None)


async def _close(source: Any) -> None:
    close = _close_of(source)
    if close is not None:
        closed = close()
        if isinstance(closed, Awaitable):
            await closed
