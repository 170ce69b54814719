from __future__ import annotations

from collections.abc import AsyncIterable, Mapping

from stopscan._async_stream import AsyncDeltaStream, not_empty
from stopscan._stopscan import Rewriter, RewriteSet


class AsyncRewriteStream(AsyncDeltaStream[str]):
    """Iterates asynchronously over deltas and yields their text, with the keys of a ``RewriteSet`` replaced. Also an
    async context manager. Made by ``arewrite``. Never yields an empty string.

    The async iterable of deltas is the source. When the source ends, the stream yields the held text with its
    keys replaced. When the source raises an error, the stream raises this error, and ``held`` still has the withheld
    text.
    """

    __slots__ = ()

    _synchronous = "rewrite"

    _reader: Rewriter

    @property
    def set(self) -> RewriteSet:
        """The ``RewriteSet`` of the stream."""
        return self._reader.set

    def _feed(self, delta: str) -> list[str]:
        return not_empty(self._reader.feed(delta))

    def _flush(self) -> list[str]:
        return not_empty(self._reader.flush())


def arewrite(deltas: AsyncIterable[str], /, replacements: RewriteSet | Mapping[str, str]) -> AsyncRewriteStream:
    """Returns an async iterator of the text of ``deltas``, in which each key of ``replacements`` is replaced by its
    value. The iterator has the properties ``held``, ``set`` and ``closes``. ``replacements`` is the same argument as in
    ``Rewriter``.

    >>> async for text in arewrite(deltas, {"<P1>": "Ada"}):
    ...     print(text, end="")
    """
    return AsyncRewriteStream(deltas, Rewriter(replacements))
