"""When the text of a stream comes, compared with the pace of its own tokens."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from statistics import median
from time import perf_counter

from stopscan_conformance._answer import Answer, ask
from stopscan_conformance._exchange import Exchange
from stopscan_conformance._promises import Findings
from stopscan_conformance._promises.late import LONG, crowded, steps_in, steps_of
from stopscan_conformance._recital import Recital
from stopscan_conformance._server import Server

TRIES = 4
# A stream whose tokens come faster cannot be told from one that this process reads late.
FAST = 0.0005
AT_ONCE = 0.3  # of a token's time
PAUSE = 0.15
# An answer that takes less is too fast to tell, and of a longer one so much passes before its text is replayed.
LEAST, WAITED = 0.05, 0.25
# More chunks at once, each time, than come of one step of speculative decoding that sends its tokens one by one.
GATHERED = 4
# Where a token takes less, a process that reads beside others wakes up for several at a time.
UNHURRIED = 0.0018
BEHIND = 0.6  # of a token's time
# The last token may come with the one before it, and with what was held.
MANY_MORE = 2  # tokens at the end than nine of ten times before
ENOUGH = 12  # of what is looked at, to say what is usual


@dataclass(frozen=True, eq=False)
class Pace:
    """A long stream, read as it comes. What disturbs it makes it worse, so the best of several tries counts."""

    exchange: Exchange

    async def __call__(self, server: Server) -> Findings:
        complaint = None
        for _ in range(TRIES):
            async with awake() as ticks:
                answer = await ask(server, self.exchange.api, self.exchange.request)
            found = self.exchange.judged(answer)
            # Without a text there was no answer to look at.
            if found.get("text", "") is not None or self.exchange.expected.recital is None:
                return found
            complaint = unevenness(answer, self.exchange.expected.recital, ticks)
            if complaint is None:
                break
        return {**found, "late": complaint}


@asynccontextmanager
async def awake() -> AsyncIterator[list[float]]:
    """When this process could have read: what came in the gaps between was not late, but read late."""
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            ticks.append(perf_counter())
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    try:
        yield ticks
    finally:
        ticking.cancel()


def unevenness(answer: Answer, recital: Recital, ticks: Sequence[float] = (), /) -> str | None:
    """What is wrong with the times of the right text's chunks."""
    steps = steps_of(recital)
    ends = [*accumulate(map(len, answer.chunks))]
    times = answer.times
    if len(steps) < LONG or len(times) < 2 or answer.seconds < LEAST:
        return crowded([steps_in(steps, 0, end) for end in ends], len(steps))
    if (share := answer.first / answer.seconds) > WAITED:
        return f"the first text comes after {share:.0%} of the time that all of it takes"
    pace = (times[-1] - times[0]) / len(steps)
    # What comes nearly together counts as one.
    bursts = [
        (time, end)
        for time, end, after in zip(times, ends, [*times[1:], inf], strict=True)
        if after - time > pace * AT_ONCE
    ]
    known = [steps_in(steps, 0, end) for _, end in bursts]
    if pace < FAST:
        return None
    return (
        crowded(known, len(steps))
        or _end(bursts, known, answer.last)
        or _inner(bursts, recital)
        or (_gathered(times, ends, bursts, known, ticks) or _after_holds(bursts, recital) if pace > UNHURRIED else None)
    )


def _end(bursts: list[tuple[float, int]], known: list[int], last: float) -> str | None:
    """What a delay shows: more text comes with the end than before, or the end comes late."""
    times = [*(time for time, _ in bursts), last]
    gaps = [after - before for before, after in pairwise(times)]
    *before, late = [now - earlier for earlier, now in pairwise([0, *known])]
    if late > MANY_MORE + (sorted(before)[len(before) * 9 // 10] if before else 0):
        return f"the text of the last {late} tokens comes at once, at the end"
    if gaps[:-1] and max(gaps[-2:]) > max(PAUSE, 30 * median(gaps)):
        return f"the end comes after {max(gaps[-2:]):.2f} s, {max(gaps[-2:]) / median(gaps):.0f} times the usual pause"
    return None


def _inner(bursts: list[tuple[float, int]], recital: Recital) -> str | None:
    """Whether text waits for the next token that was safe with this one."""
    safe = {*recital.safe}
    wrong = [end for _, end in bursts if end not in safe]
    if len(wrong) > len(bursts) / 4:
        before = recital.text[: wrong[0]][-20:]
        return f"{len(wrong)} of {len(bursts)} times a token's text comes in parts, as after {before!r}"
    return None


def _gathered(
    times: Sequence[float],
    ends: Sequence[int],
    bursts: Sequence[tuple[float, int]],
    known: Sequence[int],
    ticks: Sequence[float],
) -> str | None:
    """Whether chunks wait for each other: many come together, each time. What a right server, or this process, was kept
    from doing for a while comes together, too, but what follows does not."""
    counts = []
    for (before, first), (_, last), tokens in zip(
        bursts, bursts[1:], (b - a for a, b in pairwise(known)), strict=False
    ):
        chunks = bisect_right(ends, last) - bisect_right(ends, first)
        came = times[bisect_right(ends, first)]
        if not _slept(before, came, ticks):
            counts.append(min(chunks, tokens))
    if len(counts) < ENOUGH:
        return None
    few = sorted(counts)[len(counts) // 4]
    return f"chunks wait for each other: {few} and more come at once" if few > GATHERED else None


def _slept(begin: float, end: float, ticks: Sequence[float]) -> bool:
    """Whether this process did not run for half of the time."""
    within = [begin, *ticks[bisect_left(ticks, begin) : bisect_right(ticks, end)], end]
    return bool(ticks) and max(after - before for before, after in pairwise(within)) > (end - begin) / 2


def _after_holds(bursts: Sequence[tuple[float, int]], recital: Recital) -> str | None:
    """Whether text that was withheld comes later than its token: compared with tokens before and after it, which come
    after text that was not."""
    ends = [end for _, end in bursts]
    safe = recital.safe
    more = [token for token in range(2, len(recital.said)) if safe[token - 1] < safe[token] <= ends[-1]]
    came = {token: bursts[bisect_left(ends, safe[token])][0] for token in more}
    free = [token for token in more if safe[token - 2] < safe[token - 1]]
    behind = []
    for token in more:
        at = bisect_left(free, token)
        if safe[token - 2] == safe[token - 1] and 0 < at < len(free):
            before, after = free[at - 1], free[at]
            step = (came[after] - came[before]) / (after - before)
            behind.append((came[token] - came[before]) / step - (token - before) if step else 0.0)
    if len(behind) < ENOUGH or median(behind) < BEHIND:
        return None
    return f"what was withheld comes {median(behind):.1f} tokens after it is safe"
