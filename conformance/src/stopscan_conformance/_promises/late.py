"""Whether a stream is late: where its chunks end, how much each has, and when it came.

A chunk may end wherever text is safe after a token. Several tokens in a chunk are no fault, nor are several chunks a
token: a server that sends each character by itself is held to the times alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from stopscan_conformance._recital import Recital

# From so many steps on, a stream is long enough to say how it comes.
LONG = 100
# More steps at once than speculative decoding brings.
TOO_MANY = 12
SPLIT = 1.3  # chunks a step; more are parts of tokens


def lateness(chunks: Sequence[str], recital: Recital, /) -> str | None:
    """What is wrong with where the chunks of the right text end, or with how much of it one of them has."""
    ends = [*accumulate(map(len, chunks))]
    steps = steps_of(recital)
    if steps and len(chunks) / len(steps) > SPLIT:
        return None
    return _misplaced(ends, recital) or crowded([steps_in(steps, 0, end) for end in ends], len(steps))


def steps_of(recital: Recital) -> list[int]:
    """How much text is safe, each time that it is more."""
    return sorted({*recital.safe} - {0})


def steps_in(steps: Sequence[int], begin: int, end: int) -> int:
    """How many of them are in `text[begin:end]`."""
    return bisect_right(steps, end) - bisect_right(steps, begin)


def crowded(known: Sequence[int], total: int) -> str | None:
    """Whether most of the steps come many at once; `known` is how many there were after each chunk."""
    at_once = sorted(now - before for before, now in zip([0, *known], known, strict=False))
    if total < LONG or not at_once:
        return None
    if at_once[-1] > total / 2:
        return f"one of {len(at_once)} chunks has the text of {at_once[-1]} of {total} tokens"
    counted = [*accumulate(at_once)]
    usual = at_once[bisect_left(counted, counted[-1] / 2)]  # in which half of the tokens came, or in larger ones
    return f"text comes {usual} tokens at once" if usual > TOO_MANY else None


def _misplaced(ends: Sequence[int], recital: Recital) -> str | None:
    worst = 0
    message = None
    safe_ends = {*recital.safe}
    for end in ends:
        if end in safe_ends:
            continue
        # The first token that brought the chunk's last character, and what was safe with it.
        safe = recital.safe[bisect_left(recital.said, end)]
        if abs(safe - end) > worst:
            worst = abs(safe - end)
            what = "late by at least" if safe > end else "early by"
            message = f"{what} {worst} characters: a chunk ends with {recital.text[:end][-20:]!r}"
    return message
