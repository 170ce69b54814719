"""What a server does that nobody reads: generation after a stop, or for a client that is gone.

Times are compared with each other in one run, never with a clock: a request that finds the server with nothing left to
do takes about as long as an idle one's, and one that finds it at work as long as beside others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from stopscan_conformance._answer import Answer, ask
from stopscan_conformance._apis import Api, Request
from stopscan_conformance._exchange import NotSupported
from stopscan_conformance._promises import Findings
from stopscan_conformance._server import Server

OTHERS = 16
NEVER = "@never@"
TRIES = 4
TOO_MUCH = 0.7  # of the way from little to much to do; where nothing goes on it is near to 0, else to 1


@dataclass(frozen=True, eq=False)
class Load:
    """Requests for a script of 828 tokens, in which `stop` comes soon."""

    api: Api
    prompt: str
    stop: str
    stream: bool

    def tokens(self, count: int) -> Request:
        return Request(self.prompt, self.stream, {}, count)

    @property
    def few(self) -> Request:
        return self.tokens(100)

    @property
    def many(self) -> Request:
        """Longer than twice a few beside it."""
        return self.tokens(400)

    @property
    def lasting(self) -> Request:
        """For who does not wait for its end."""
        return self.tokens(800)

    @property
    def stopped(self) -> Request:
        """The second of two stops comes: neither of them lets generation go on."""
        return Request(self.prompt, self.stream, {"stop": [NEVER, self.stop]}, 800)


Scale = Callable[[Server, Load], Awaitable[tuple[float, float]]]  # what little and much to do take
Measure = Callable[[Server], Awaitable[float]]


class Times(NamedTuple):
    little: float
    measured: float
    much: float

    @property
    def share(self) -> float:
        return (self.measured - self.little) / max(self.much - self.little, 1e-9)


class Cost:
    """Places what `measure` takes on `scale`. What disturbs a measurement makes it longer, so the least of several
    counts, or the one in the middle. Where much to do takes less than twice as long as little, nothing is found: the
    server is too fast to tell.
    """

    def __init__(self, load: Load, scale: Scale, measure: Measure, complaint: str) -> None:
        self._load = load
        self._scale = scale
        self._measure = measure
        self._complaint = complaint

    async def __call__(self, server: Server) -> Findings:
        tried = []
        try:
            for _ in range(TRIES):
                await _seconds(server, self._load, self._load.lasting)  # what earlier ones have left ends with it
                little, much = await self._scale(server, self._load)
                tried.append(Times(little, await self._measure(server), much))
                least = Times(*map(min, zip(*tried, strict=True)))
                share = min(least.share, median(times.share for times in tried))
                if share < 0.25:
                    break
        except NoAnswer as error:
            return {"cost": str(error)}
        if least.much < 2 * least.little:
            return {}
        complaint = f"{self._complaint} ({share:.0%} of what it would cost to go on)"
        return {"cost": complaint if share > TOO_MUCH else None}


class NoAnswer(Exception):  # noqa: N818
    """There is nothing to compare."""


async def by_length(server: Server, load: Load) -> tuple[float, float]:
    """A short answer, and a long one as a whole: reading a stream would cost this process much, too."""
    return await _least(server, load, load.tokens(5)), await _least(server, load, replace(load.lasting, stream=False))


async def by_company(server: Server, load: Load) -> tuple[float, float]:
    """An answer alone, and beside others."""
    alone = await _least(server, load, load.few)
    many = replace(load.many, stream=False)
    others = [asyncio.create_task(ask(server, load.api, many)) for _ in range(OTHERS)]
    await asyncio.sleep(alone)  # until they have begun
    beside = await _least(server, load, load.few)
    await asyncio.gather(*others)
    return alone, beside


def of_a_stop(load: Load) -> Cost:
    async def measure(server: Server) -> float:
        return await _seconds(server, load, load.stopped)

    return Cost(load, by_length, measure, "an answer that a stop ended soon took as long as one without")


def of_the_first_text(load: Load) -> Cost:
    async def measure(server: Server) -> float:
        return (await _answer(server, load, load.lasting)).first

    return Cost(load, by_length, measure, "the first text of a stream came at its end")


def after_stops(load: Load) -> Cost:
    async def measure(server: Server) -> float:
        await asyncio.gather(*(ask(server, load.api, load.stopped) for _ in range(OTHERS)))
        return await _seconds(server, load, load.few)

    return Cost(load, by_company, measure, "after answers that a stop ended, the next answer has to wait")


def after_leaving(load: Load, left: Request | None = None) -> Cost:
    """`left` is what the clients leave; by default it has no stops."""

    async def measure(server: Server) -> float:
        request = left or load.lasting
        others = [asyncio.create_task(ask(server, load.api, request, leave=load.stream)) for _ in range(OTHERS)]
        if not load.stream:
            await asyncio.sleep(await _seconds(server, load, load.tokens(5)))  # until they have begun
            for other in others:
                other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        return await _seconds(server, load, load.few)

    return Cost(load, by_company, measure, "after clients that went away, the next answer has to wait")


async def _least(server: Server, load: Load, request: Request) -> float:
    return min([await _seconds(server, load, request) for _ in range(2)])


async def _seconds(server: Server, load: Load, request: Request) -> float:
    return (await _answer(server, load, request)).seconds


async def _answer(server: Server, load: Load, request: Request) -> Answer:
    answer = await ask(server, load.api, request)
    if answer.refused:
        raise NotSupported(answer.error)
    if answer.error is not None:
        raise NoAnswer(f"no answer of {request.max_tokens} tokens, alone, beside or after others: {answer.error}")
    return answer
