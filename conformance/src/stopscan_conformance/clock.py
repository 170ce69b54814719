"""Cases that compare times. They find out whether a server keeps generating after a stop or after its client has left,
and whether the text of a stream comes in time.

Times are compared only with other times of the same run. If the server has nothing left to do, a request takes about as
long as on an idle server. If the server still generates earlier answers, the request takes about as long as a request
that runs at the same time as others. The time of a chunk is compared with the pace of its own stream. Time in which
this process did not run does not count. If the server is too fast for a case, the case raises `NotSupported`.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from math import inf
from statistics import median
from time import perf_counter
from typing import NamedTuple

from stopscan_conformance.apis import Api, Request
from stopscan_conformance.client import Answer, Server, ask
from stopscan_conformance.judge import LONG, Findings, crowded, steps_in, steps_of
from stopscan_conformance.oracle import Recital
from stopscan_conformance.probe import probe
from stopscan_conformance.single import TOO_FAST, NotSupported, Single

OTHERS = 16
FEW, LASTING = 100, 800  # tokens of a measured answer; tokens of a long answer that a client leaves or a stop ends
TRIES = 6  # the most tries to see a stream come at a good pace; one good try is enough
ENOUGH_TRIES = 3  # tries that must agree, because two tries share a scale that may be disturbed (see also `_decided`)
TOO_MUCH = 0.6  # a larger `Times.share` is a fault: it is near 0 if the server stops generating, near 1 if not


@dataclass(frozen=True, eq=False)
class Load:
    """Requests for a known text of 828 tokens. The first of the two `stops` is not in the text. The second is near the
    beginning of the text, so a correct server stops generating there."""

    api: Api
    prompt: str
    stops: tuple[str, str]
    stream: bool

    def tokens(self, count: int, *stops: str) -> Request:
        return Request(self.prompt, self.stream, {"stop": [*stops]} if stops else {}, count)


class Work(NamedTuple):
    """A kind of work that a server should not do, such as generating for a client that has left. `seconds` sends
    requests and measures a time. The time is long if the server does this work."""

    rule: str
    complaint: str
    seconds: Callable[[Server], Awaitable[float]]


class Times(NamedTuple):
    little: float
    measured: float
    much: float

    @property
    def share(self) -> float:
        return (self.measured - self.little) / max(self.much - self.little, 1e-9)


@dataclass(frozen=True, eq=False)
class Cost:
    """A case that compares the times of `works` with the times that `scale` returns.

    A share says where a measured time lies between the time of little work (0) and the time of much work (1). A
    disturbance can make any of the three times longer, and so make a share too large or too small. Each work is
    measured until the shares of `ENOUGH_TRIES` tries are on the same side of `TOO_MUCH`. Every second try measures a
    new scale. If much work takes less than twice as long as little work, the server is too fast to be judged.
    """

    load: Load
    scale: Callable[[Server, Load], Awaitable[tuple[float, float]]]  # measures little and much work, in seconds
    works: Sequence[Work]

    async def __call__(self, server: Server) -> Findings:
        findings: dict[str, str | None] = {}
        too_fast, count, scale = False, 0, (0.0, 0.0)
        for rule, complaint, seconds in self.works:
            tried: list[Times] = []
            try:
                while not _decided(tried):
                    little, much = scale = scale if count % 2 else await self.scale(server, self.load)
                    count += 1
                    tried.append(Times(little, await seconds(server), much))
            except NoAnswer as error:
                return {**findings, rule: str(error)}
            share = median(times.share for times in tried)
            findings.setdefault(rule, None)
            if median(times.much for times in tried) < 2 * median(times.little for times in tried):
                too_fast = True
            elif share > TOO_MUCH:
                findings[rule] = findings[rule] or f"{complaint} ({share:.0%} of what it would cost to go on)"
        if too_fast and not any(findings.values()):
            raise NotSupported(TOO_FAST)
        return findings


def _decided(tried: Sequence[Times]) -> bool:
    """Returns whether enough tries were made to know whether the server does the needless work. The share of a try says
    where its time lies between the time of little work (0) and the time of much work (1). The tries are enough if
    `ENOUGH_TRIES` of the shares are on the same side of `TOO_MUCH`. Two tries are enough if both shares are less than
    half of `TOO_MUCH`."""
    done = sum(times.share > TOO_MUCH for times in tried)
    quiet = sum(times.share < TOO_MUCH / 2 for times in tried)
    return max(done, len(tried) - done) >= ENOUGH_TRIES or quiet == len(tried) == 2


class NoAnswer(Exception):  # noqa: N818
    """Raised if a request has failed, so there is no time to compare."""


async def by_length(server: Server, load: Load) -> tuple[float, float]:
    """Returns the seconds that a short answer takes, and those that a long answer takes."""
    long = min([await _seconds(server, load, _long(load)) for _ in range(2)])  # after this the server is idle
    return await _seconds(server, load, load.tokens(5)), long


async def by_company(server: Server, load: Load) -> tuple[float, float]:
    """Returns the seconds that a request takes alone, and those that it takes while `OTHERS` other requests run."""
    await _seconds(server, load, _long(load))
    few = replace(load.tokens(FEW), stream=False)
    requests = [*[few] * OTHERS, load.tokens(FEW)]
    *_, beside = await asyncio.gather(*(_seconds(server, load, request) for request in requests))
    # `Cost` compares these two times with others, which it measures after the server has done much work. A server may
    # be slower then. So the request that runs alone is also measured after much work, at the end.
    return await _seconds(server, load, load.tokens(FEW)), beside


def of_a_stop(load: Load) -> Cost:
    complaint = "an answer that a stop ended took as long as one without stops"
    stopped = load.tokens(LASTING, *load.stops)
    return Cost(load, by_length, [Work("cost-of-a-stop", complaint, partial(_seconds, load=load, request=stopped))])


def for_the_next(load: Load, abandoned: Mapping[str, Request]) -> Cost:
    """Returns a case that measures whether a request takes longer because of earlier requests. A stop has ended the
    answers to the earlier requests, or their clients have left. `abandoned` has the requests whose clients leave. The
    keys say when they leave ("during an answer")."""
    wait = "the next answer has to wait"
    stopped = Work("cost-of-a-stop", f"after answers that a stop ended, {wait}", partial(_after_stops, load=load))
    works = [stopped] if load.api.stops else []
    for when, request in abandoned.items():
        complaint = f"after clients that went away {when}, {wait}"
        works.append(Work("cost-after-leaving", complaint, partial(_after_leaving, load=load, abandoned=request)))
    return Cost(load, by_company, works)


async def _after_stops(server: Server, load: Load) -> float:
    await asyncio.gather(*(ask(server, load.api, load.tokens(LASTING, *load.stops)) for _ in range(OTHERS)))
    return await _seconds(server, load, load.tokens(FEW))


async def _after_leaving(server: Server, load: Load, abandoned: Request) -> float:
    began = perf_counter()
    await asyncio.gather(*(ask(server, load.api, load.tokens(5)) for _ in range(OTHERS)))
    soon = perf_counter() - began  # enough time for a server to begin OTHERS requests, or to notice that clients left
    others = [asyncio.create_task(ask(server, load.api, abandoned, leave=int(load.stream))) for _ in range(OTHERS)]
    if not load.stream:
        await asyncio.sleep(4 * soon)
        for other in others:
            other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(soon)
    return await _seconds(server, load, load.tokens(FEW))


def _long(load: Load) -> Request:
    """Returns a request for the longest answer of these cases. When this answer has come, the server has also finished
    all earlier answers. The request asks for a whole answer, because the time of a stream would include the time to
    read its events."""
    return replace(load.tokens(LASTING), stream=False)


async def _seconds(server: Server, load: Load, request: Request) -> float:
    answer = await ask(server, load.api, request)
    if answer.refused:
        raise NotSupported(answer.error)
    if answer.error is not None:
        raise NoAnswer(f"no answer to a request for {request.max_tokens} tokens: {answer.error}")
    return answer.seconds


# Limits for the pace of a stream. Each limit lies between the values that the correct and the wrong test servers in
# `tests/staged` have.
FAST = 0.0005  # seconds for each token. If a stream is faster, this process reads several tokens at a time
# Seconds for each token. If a stream is faster, `_gathered` and `_after_holds` do not judge it. This process may be the
# reason: if it reads late once, four chunks with one token each come together, or a chunk is late by `BEHIND`.
UNHURRIED = 0.0018
# A fraction of the mean time between two tokens. Chunks of different tokens come a whole token's time apart. So chunks
# that come closer together than this belong to one token.
AT_ONCE = 0.3
PAUSE = 0.15  # seconds. A shorter wait for the end is not a fault, because users do not see it
WAITED = 0.25  # a part of the whole time. A server that replays a finished answer sends its first text later than this
GATHERED = 4  # chunks that may come together, because a step of speculative decoding makes several tokens
# Counted in tokens. If held text comes later than this after it became safe, that is a fault. Text that comes at once
# is 0 tokens late, and text that waits for the next token is 1 token late.
BEHIND = 0.6
# A burst is chunks that come nearly together. The last burst may have this many tokens more than the usual size of a
# burst (the 90th percentile), because the last token may come together with the token before it and with held text.
MANY_MORE = 2
# `_gathered` and `_after_holds` judge a stream only if it has at least this many values for them. With fewer, two or
# three disturbances would change the median or the quartile.
ENOUGH = 12


@dataclass(frozen=True, eq=False)
class Pace:
    """A case that asks for a long stream and judges at which times its chunks come. Other programs on the machine can
    only make these times worse, so the case passes if one of several tries is good."""

    single: Single

    async def __call__(self, server: Server) -> Findings:
        complaint = None
        can = await probe(server, self.single.api)
        for _ in range(TRIES):
            answer = await ask(server, self.single.api, self.single.request)
            findings = self.single.judged(answer, can)
            # The pace is judged only if the text was judged and is right.
            if findings.get("text", "") is not None or self.single.expected.recital is None:
                return findings
            complaint = unevenness(answer, self.single.expected.recital)
            if complaint is None:
                break
        return {**findings, "pace": complaint}


def unevenness(answer: Answer, recital: Recital, /) -> str | None:
    """Returns what is wrong with the times of the chunks, or None. Call it only if the text of the answer is right."""
    steps = steps_of(recital)
    ends = [*accumulate(map(len, answer.chunks))]
    times = answer.times
    if len(steps) < LONG or len(times) < 2 or answer.seconds < FAST * len(steps):
        return crowded([steps_in(steps, 0, end) for end in ends], len(steps))
    if (share := answer.first / answer.seconds) > WAITED:
        return f"the first text comes after {share:.0%} of the time that all of it takes"
    pace = (times[-1] - times[0]) / len(steps)
    # Chunks that come nearly together count as one burst.
    bursts = [
        (time, end)
        for time, end, after in zip(times, ends, [*times[1:], inf], strict=True)
        if after - time > pace * AT_ONCE
    ]
    known = [steps_in(steps, 0, end) for _, end in bursts]
    if pace < FAST:
        return None
    # For each burst, whether this process ran between the burst before it and this burst. When the process wakes up, it
    # reads all waiting chunks at once, even if the server has sent them separately.
    awake = [
        answer.slept(before, after) <= (after - before) / 2
        for before, after in pairwise([times[0], *(time for time, _ in bursts)])
    ]
    return (
        _crowded(known, awake, len(steps))
        or _end(bursts, known, answer, pace)
        or _inner(bursts, recital)
        or (_gathered(ends, bursts, known, awake) or _after_holds(bursts, recital) if pace > UNHURRIED else None)
    )


def _crowded(known: Sequence[int], awake: Sequence[bool], total: int) -> str | None:
    """Returns a complaint if most tokens come in large bursts. (A burst is chunks that come nearly together.) Counts
    only tokens that came while this process ran."""
    seen, came = [], 0
    for step, was_awake in zip((after - before for before, after in pairwise([0, *known])), awake, strict=True):
        came += step if was_awake else 0
        seen.append(came)
    return crowded(seen, total) if came > total / 2 else None


def _end(bursts: list[tuple[float, int]], known: list[int], answer: Answer, pace: float) -> str | None:
    """Returns a complaint if the server delays text until the end. Then the last burst of chunks has many more tokens
    than the earlier bursts, or the end comes late. Tokens that may have come while this process slept do not count."""
    times = [*(time for time, _ in bursts), answer.last]
    gaps = [after - before for before, after in pairwise(times)]
    *before, late = [now - earlier for earlier, now in pairwise([0, *known])]
    usual = sorted(before)[len(before) * 9 // 10] if before else 0
    slept = answer.slept(times[max(0, len(times) - 3)], times[-1])
    if late - slept / pace > MANY_MORE + usual:
        return f"the text of the last {late} tokens comes at once, at the end"
    pause = max(gaps[-2:], default=0.0) - slept
    if gaps[:-1] and pause > max(PAUSE, 30 * median(gaps)):
        return f"the end comes after {pause:.2f} s, {pause / median(gaps):.0f} times the usual pause"
    return None


def _inner(bursts: list[tuple[float, int]], recital: Recital) -> str | None:
    """Returns a complaint if many bursts (chunks that come nearly together) end inside the text of a token. The whole
    text of a token becomes safe to send at the same moment, so a server should not split it."""
    safe = {*recital.safe}
    wrong = [end for _, end in bursts if end not in safe]
    if len(wrong) > len(bursts) / 4:
        before = recital.text[: wrong[0]][-20:]
        return f"{len(wrong)} of {len(bursts)} times a chunk ends inside a token's text, as after {before!r}"
    return None


def _gathered(
    ends: Sequence[int], bursts: Sequence[tuple[float, int]], known: Sequence[int], awake: Sequence[bool]
) -> str | None:
    """Returns a complaint if most bursts (chunks that come nearly together) have many chunks. A few such bursts are not
    a fault: chunks also come together after a pause of a correct server or of this process."""
    counts = []
    for (_, first), (_, last), tokens, was_awake in zip(
        bursts, bursts[1:], (after - before for before, after in pairwise(known)), awake[1:], strict=False
    ):
        if was_awake:
            counts.append(min(bisect_right(ends, last) - bisect_right(ends, first), tokens))
    if len(counts) < ENOUGH:
        return None
    few = sorted(counts)[len(counts) // 4]
    return f"chunks come in bursts: {few} and more at once" if few > GATHERED else None


def _after_holds(bursts: Sequence[tuple[float, int]], recital: Recital) -> str | None:
    """Returns a complaint if held text is sent late. The right time for the held text is estimated from the times of
    two tokens, one before it and one after it. These are the nearest tokens that were not held and did not come
    directly after held text."""
    ends = [end for _, end in bursts]
    safe = recital.safe
    more = [token for token in range(2, len(recital.complete)) if safe[token - 1] < safe[token] <= ends[-1]]
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
    return f"held text comes {median(behind):.1f} tokens after it became safe"
