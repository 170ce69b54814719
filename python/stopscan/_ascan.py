from __future__ import annotations

from collections.abc import AsyncIterable, Iterable

from stopscan._async_stream import AsyncScanStream, not_empty
from stopscan._stopscan import StopScanner, StopSet


class AsyncStopStream(AsyncScanStream[str]):
    """Iterates asynchronously over deltas and yields text that is safe to emit. Also an async context manager. Made by
    ``ascan``. Never yields an empty string.

    The async iterable of deltas is the source. At its end, the stream yields the held text. As soon as a stop fires,
    the stream closes the source. If the source raises, the error reaches the caller, and ``held`` keeps the withheld
    text. If a task is cancelled while the stream closes the source, no text is lost: the next ``__anext__`` returns
    the text before the stop.
    """

    __slots__ = ()

    _synchronous = "scan"

    _reader: StopScanner

    @property
    def stops(self) -> StopSet:
        """The ``StopSet`` of the stream."""
        return self._reader.stops

    def _feed(self, delta: str) -> list[str]:
        return not_empty(self._reader.feed(delta))

    def _flush(self) -> list[str]:
        return not_empty(self._reader.flush())


def ascan(
    deltas: AsyncIterable[str],
    /,
    stop: StopSet | str | Iterable[str] | None,
    *,
    include_stop: bool = False,
    start_protected: bool = False,
    region: str | None = None,
) -> AsyncStopStream:
    """Returns an async iterator of the text of ``deltas`` that is safe to emit. The iterator has the properties
    ``match``, ``held``, ``unused``, ``region``, ``stops`` and ``closes``.

    As soon as a stop fires, the iterator closes ``deltas``. ``stop`` and the options are the same as in
    ``StopScanner``.

    >>> async with ascan(deltas, "END") as stream:
    ...     async for text in stream:
    ...         print(text, end="")
    """
    scanner = StopScanner(stop, include_stop=include_stop, start_protected=start_protected, region=region)
    return AsyncStopStream(deltas, scanner)
