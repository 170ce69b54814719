"""When the text of a stream comes, compared with the pace of its own tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from statistics import median

from stopscan_conformance._answer import Answer, ask
from stopscan_conformance._exchange import Exchange
from stopscan_conformance._promises import Findings
from stopscan_conformance._promises.late import LONG, TOO_MANY, crowded, steps_in, steps_of
from stopscan_conformance._recital import Recital
from stopscan_conformance._server import Server

TRIES = 4
# A stream whose tokens come faster cannot be told from one that this process reads late.
FAST = 0.0005
AT_ONCE = 0.3  # of a token's time
PAUSE = 0.15
# An answer that takes less is too fast to tell, and of a longer one so much passes before its text is replayed.
LEAST, WAITED = 0.05, 0.35


@dataclass(frozen=True, eq=False)
class Pace:
    """A long stream, read as it comes. What disturbs it makes it worse, so the best of several tries counts."""

    exchange: Exchange

    async def __call__(self, server: Server) -> Findings:
        complaint = None
        for _ in range(TRIES):
            answer = await ask(server, self.exchange.api, self.exchange.request)
            found = self.exchange.judged(answer)
            # Without a text there was no answer to look at.
            if found.get("text", "") is not None or self.exchange.expected.recital is None:
                return found
            complaint = unevenness(answer, self.exchange.expected.recital)
            if complaint is None:
                break
        return {**found, "late": complaint}


def unevenness(answer: Answer, recital: Recital, /) -> str | None:
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
    return crowded(known, len(steps)) or _end(bursts, known, answer.last) or _inner(bursts, recital)


def _end(bursts: list[tuple[float, int]], known: list[int], last: float) -> str | None:
    """What a delay shows: much of the text comes with the end, or the end comes late."""
    times = [*(time for time, _ in bursts), last]
    gaps = [after - before for before, after in pairwise(times)]
    if len(known) > 1 and (late := known[-1] - known[-2]) > TOO_MANY:
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
