"""A point of the space, played: its request, what comes before, and what comes beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from stopscan_conformance._answer import ask
from stopscan_conformance._apis import Api
from stopscan_conformance._connection import Connection
from stopscan_conformance._exchange import Exchange, exchange
from stopscan_conformance._merged import merged
from stopscan_conformance._promises import Findings
from stopscan_conformance._recital import recite
from stopscan_conformance._says import CHATS, said
from stopscan_conformance._scenarios import Scenario
from stopscan_conformance._server import Server
from stopscan_conformance._space import Point
from stopscan_conformance._stops import script, stop_of, stops_of
from stopscan_conformance.corpus import NEAR

ENOUGH = 60
DEFAULT_LIMIT = 500  # mlx-lm's is 512 tokens
LOOKS = [f"looks-{name}" for name in NEAR]


def fits(api: Api, point: Point) -> bool:
    """Whether `api` can say it."""
    if api.harmony or said(point.says, api.name, "") is None:
        return False
    if point.limit == "none" and (api.name == "openai-completions" or _most(point) > DEFAULT_LIMIT):
        return False  # a server may have a limit of its own, and 16 tokens for completions
    if point.limit.endswith("-reasoning") or point.script == "thought":
        return api.name in (*CHATS, "openai-responses")
    return point.usage == "asked" or (api.asks_for_usage and point.stream)


def _most(point: Point) -> float:
    """At most how many tokens its answer has; a token has a character or more."""
    return inf if point.place is None else point.place + point.skip + point.length + 1


@dataclass(frozen=True, eq=False)
class Generated:
    """A play of a point."""

    api: Api
    point: Point

    async def __call__(self, server: Server) -> Findings:
        server = server.patient(self.point.company)
        before = [exchange_of(self.api, one) for one in _before(self.point)]
        others = [exchange_of(self.api, one) for one in _beside(self.point)]
        connection = Connection(server) if self.point.kept or before else None
        try:
            found = [await one.run(server, connection) for one in before]
            await _disturb(self, server)
            mine = exchange_of(self.api, self.point)
            found += await asyncio.gather(mine.run(server, connection), *(one.run(server) for one in others))
        finally:
            if connection is not None:
                await connection.close()
        return merged(found) if len(found) > 1 else found[0]

    @property
    def alone(self) -> bool:
        """Whether it is one request."""
        point = self.point
        return point.company == 1 and not point.kept and point.after == "nothing" and point.among != "equal-joined"

    @property
    def exchange(self) -> Exchange:
        return exchange_of(self.api, self.point)


@lru_cache(500)  # many points are beside others, and measure_mutants.py asks all of them of each server
def exchange_of(api: Api, point: Point) -> Exchange:
    """The exchange of the point's own request."""
    scenario = scenario_of(point)
    found = exchange(api, point.stream, scenario)
    words = said(point.says, api.name, stop_of(point))
    assert words is not None, (api.name, point)
    usage = {"asked": True, "not-asked": False, "false": None}[point.usage]
    request = replace(found.request, said=words, usage=usage)
    expected = found.expected
    if point.says == "echo":  # the prompt is one special token, which a server may leave out
        echoed = tuple((request.prompt + text, reasoning) for text, reasoning in expected.answers)
        expected = replace(expected, answers=(*expected.answers, *echoed), recital=None)
    return Exchange(api, request, expected, str(point), optional=point.says != "nothing")


def scenario_of(point: Point) -> Scenario:
    one = script(point.script)
    stops = stops_of(point)
    if point.says == "prompt-begins-the-stop":
        stops = ["]" + one.text[:2], *stops]
    whole = Scenario("generated", str(point), "", one.name, one.pieces, stops, max_tokens=None)
    return replace(whole, max_tokens=_limit(point, whole))


def _limit(point: Point, whole: Scenario) -> int | None:
    fixed = {"tight": 1, "in-reasoning": 20, "after-reasoning": 61, "all": len(whole.pieces) + 10}
    if point.limit in fixed:
        return fixed[point.limit]
    if point.limit == "none":
        return None
    if point.place is None:  # of an answer that no stop ends, a part is enough
        return 300
    tokens = recite(whole).tokens
    place = (point.place or 0) + 1
    more = {"enough": tokens + ENOUGH, "at-the-stop": tokens, "one-after": tokens + 1, "one-before": tokens - 1}
    return max(1, {**more, "within": min(place, tokens)}[point.limit])


def _before(point: Point) -> Iterator[Point]:
    """What came before, on the same connection."""
    plain = Point(stream=point.stream)
    if point.among == "equal-joined":
        yield replace(plain, place=point.place, skip=point.skip, length=point.length, among="later-first")
        yield replace(plain, place=7, skip=0, length=point.length)
        yield replace(plain, place=point.place, skip=point.skip, length=max(4, point.length), among="joined-otherwise")
    for number in range(point.kept):
        short = number % 2 == 0
        yield replace(plain, place=3 + number, length=2 + number % 5, limit="tight" if short else "enough")


def _beside(point: Point) -> Iterator[Point]:
    """Requests at the same time: the same one, others for the same prompt, and others."""
    alone = replace(point, company=1, kept=0, after="nothing")
    for number in range(1, point.company):
        if number % 3 == 0:
            yield alone
        elif number % 3 == 1:
            yield Point(place=4 + number % 17, length=3 + number % 4, stream=number % 2 == 0)
        else:
            yield Point(script=LOOKS[number % len(LOOKS)], stream=number % 2 == 1)


async def _disturb(play: Generated, server: Server) -> None:
    """What came just before: a client that goes away, or a request that is wrong."""
    point, api = play.point, play.api
    if point.after in ("left", "left-held"):
        held = script("wide-deep").at(1, 5, 1100) + "#"
        left = Point(script="wide-deep", place=None if point.after == "left" else 2, stream=True, limit="none")
        one = exchange_of(api, left)
        stops = {"stop": [held]} if point.after == "left-held" else {"stop": ["@never@"]}
        await asyncio.gather(*(ask(server, api, replace(one.request, stops=stops), leave=True) for _ in range(3)))
        await asyncio.sleep(0.02)
    elif point.after in ("refused", "broken"):
        early = script(point.script).at(0, 0, 2)
        wrong = replace(
            exchange_of(api, Point()).request, stops={"stop": [early, 5] if point.after == "refused" else 5}
        )
        await ask(server, api, wrong)
