from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from itertools import groupby

from stopscan._async_stream import AsyncScanStream
from stopscan._stopscan import Segmenter, SegmentSet

# A segment: the name of its region, its text, and the number of its part. Markers divide a stream into parts.
Segment = tuple[str, str, int]


class AsyncSegmentStream(AsyncScanStream[Segment]):
    """Iterates asynchronously over deltas and yields segments that are safe to emit. Also an async context manager.
    Made by ``asplit``.

    The async iterable of deltas is the source. When the source ends, the stream yields the held text. When a stop
    fires, the stream closes the source. When the source raises an error, the stream raises this error, and ``held``
    still has the withheld text.
    """

    __slots__ = ()

    _synchronous = "split"

    _reader: Segmenter

    @property
    def segments(self) -> SegmentSet:
        """The ``SegmentSet`` of the stream."""
        return self._reader.segments

    def _feed(self, delta: str) -> list[Segment]:
        return self._reader.feed(delta)

    def _flush(self) -> list[Segment]:
        return self._reader.flush()


def asplit(
    deltas: AsyncIterable[str],
    segments: SegmentSet | Mapping[str, Mapping[str, str]],
    /,
    *,
    region: str | None = None,
    include_stop: bool = False,
) -> AsyncSegmentStream:
    """Returns an async iterator of the segments of ``deltas``.

    The iterator has the attributes ``match``, ``held``, ``unused``, ``region``, ``segments`` and ``closes``. As soon as
    a stop fires, the iterator closes ``deltas``. ``segments`` and the options are the same as in ``Segmenter``.

    >>> async for region, text, part in asplit(deltas, SegmentSet(FORMATS["think"], stop=["END"], stop_in=["answer"])):
    ...     print(region, text)
    """
    return AsyncSegmentStream(deltas, Segmenter(segments, region=region, include_stop=include_stop))


def joined(segments: Iterable[Segment], /) -> list[Segment]:
    """Returns ``segments`` with the text of each part in one segment. A stream may cut a part into several segments.

    >>> joined([("answer", "It is ", 1), ("answer", "5.", 1)])
    [('answer', 'It is 5.', 1)]
    """
    runs = groupby(segments, lambda segment: (segment[0], segment[2]))
    return [(region, "".join(text for _, text, _ in run), part) for (region, part), run in runs]
