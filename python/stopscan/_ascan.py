from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any

from stopscan._stopscan import StopMatch, StopScanner, StopSet


class AsyncStopStream:
    """An async iterator of non-empty safe text over an async iterable of deltas; ``ascan`` makes it.

    It flushes at the end of the source, and closes the source as soon as a stop fires. If the source raises, the error
    comes through and ``held`` still has the withheld text.
    """

    __slots__ = ("_deltas", "_error", "_iterator", "_scanner")

    def __init__(self, deltas: AsyncIterable[str], scanner: StopScanner, /) -> None:
        self._deltas = deltas
        self._iterator: AsyncIterator[str] | None = aiter(deltas)
        self._scanner = scanner
        self._error: BaseException | None = None

    def __aiter__(self) -> AsyncStopStream:
        return self

    async def __anext__(self) -> str:
        while self._iterator is not None:
            try:
                safe = self._scanner.feed(await anext(self._iterator))
            except StopAsyncIteration:
                self._iterator = None
                safe = self._scanner.flush()
            if self._scanner.match is not None:
                await self._close_after_stop()
            if safe:
                return safe
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        raise StopAsyncIteration

    async def _close_after_stop(self) -> None:
        try:
            await self.aclose()
        except Exception as error:  # the text before the stop comes first
            self._error = error

    async def aclose(self) -> None:
        """Closes the source, as a stop does; the stream ends. Held text stays in ``held``."""
        iterator, self._iterator = self._iterator, None
        if iterator is None:
            return
        try:
            await _aclose(iterator)
        finally:
            # An API client's stream is not its own iterator, and only the stream's close ends the request.
            if self._deltas is not iterator:
                await _aclose(self._deltas)

    @property
    def match(self) -> StopMatch | None:
        """The stop that fired, or ``None``."""
        return self._scanner.match

    @property
    def held(self) -> str:
        """The text that is withheld because it may still turn into a hidden stop."""
        return self._scanner.held

    @property
    def unused(self) -> str:
        """What followed the stop in the delta that completed it."""
        return self._scanner.unused


def ascan(
    deltas: AsyncIterable[str],
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    start_protected: bool = False,
) -> AsyncStopStream:
    """An async iterator of the safe text of ``deltas``, with ``match``, ``held`` and ``unused``.

    The source is closed as soon as a stop fires. ``stop`` and the options are those of ``StopScanner``.
    """
    scanner = StopScanner(stop, include_stop=include_stop, start_protected=start_protected)
    return AsyncStopStream(deltas, scanner)


async def _aclose(source: Any) -> None:
    aclose = getattr(source, "aclose", None)
    if aclose is not None:
        await aclose()
