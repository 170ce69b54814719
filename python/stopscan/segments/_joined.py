from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from stopscan.segments._asplit import Segment


def joined(segments: Iterable[Segment], /) -> list[Segment]:
    """Returns ``segments`` with the text of each part in one segment. A stream may cut a part into several segments.

    >>> joined([("answer", "It is ", 1), ("answer", "5.", 1)])
    [('answer', 'It is 5.', 1)]
    """
    runs = groupby(segments, lambda segment: (segment[0], segment[2]))
    return [(region, "".join(text for _, text, _ in run), part) for (region, part), run in runs]
