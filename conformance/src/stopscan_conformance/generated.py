"""The generated cases. A `Point` of `space.py` describes a request. It also says which requests run before it or at the
same time. A generated case sends all these requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import httpx

from stopscan_conformance.apis import Api, Extras
from stopscan_conformance.client import Server, ask
from stopscan_conformance.judge import Findings, merged
from stopscan_conformance.oracle import MISSING, Task, recite
from stopscan_conformance.scripts import NEAR
from stopscan_conformance.several import leave, together
from stopscan_conformance.single import Single, single
from stopscan_conformance.space import CHATS, Point, extras, script, stop_of, stop_pieces_of, stops_of

ENOUGH = 60  # the tokens that the limit allows after a stop
DEFAULT_LIMIT = 500  # below mlx-lm's default limit of 512 tokens
LOOKS = [f"looks-{name}" for name in NEAR]


def fits(api: Api, point: Point) -> bool:
    """Returns whether `api` can express the request that `point` describes."""
    if extras(point.says, api.name) is None:
        return False
    if not api.stops and (point.among != "none" or point.after.startswith("refused")):
        return False
    # If the request has no limit, the server applies its default, which is 16 tokens for completions.
    if point.limit == "none" and _most(point) > (16 if api.name == "openai-completions" else DEFAULT_LIMIT):
        return False
    if point.limit.endswith("-reasoning") or point.script == "thought":
        return api.name in (*CHATS, "responses-with-stop") and not point.among.startswith("id")
    return point.usage == "asked" or (api.asks_for_usage and point.stream)


def _most(point: Point) -> float:
    """Returns an upper bound for the count of tokens in the answer. The stop begins in the token `point.place`. From
    this token on, each character counts as one token, because a token has at least one character. If the stop is a
    token id, `point.place` is the index of the stop token, so the count is known."""
    endless = point.place is None or point.among == "none"
    if point.among == "id" and point.place is not None:
        return point.place + 1
    return float("inf") if endless else (point.place or 0) + point.skip + point.length + 17


@dataclass(frozen=True, eq=False)
class Generated:
    """A case that sends the request that `point` describes, with other requests before it and at the same time."""

    api: Api
    point: Point

    async def __call__(self, server: Server) -> Findings:
        before = [single_of(self.api, one) for one in _before(self.point)]
        others = [single_of(self.api, one) for one in _beside(self.point) if fits(self.api, one)]
        kept = server.connect() if self.point.kept or before or self.point.after == "refused-stops" else None
        try:
            findings = [await one.run(server, kept) for one in before if self.api.stops or not one.request.stops]
            await self._disturb(server, kept)
            own = single_of(self.api, self.point)
            findings += await together([own.run(server, kept), *(one.run(server) for one in others)])
        finally:
            if kept is not None:
                await kept.aclose()
        return merged(findings, together=not self.alone)

    @property
    def alone(self) -> bool:
        """Whether the case sends only one request."""
        point = self.point
        return point.company == 1 and not point.kept and point.after == "nothing" and point.among != "equal-joined"

    @property
    def single(self) -> Single:
        return single_of(self.api, self.point)

    async def _disturb(self, server: Server, kept: httpx.AsyncClient | None) -> None:
        """Sends the requests that `point.after` asks for: requests whose clients leave, or a wrong request."""
        point, api = self.point, self.api
        if point.after in ("left", "left-held"):
            # With `left-held`, the server holds text until the clients leave. The stop is a long piece of the answer,
            # from the last character of the first token on, and then a "#" that the answer does not have.
            held = script("paced").text[script("paced").starts[1] - 1 :][:1100] + "#"
            long_answer = single_of(api, Point(script="paced", place=None, stream=True))
            stops = {"stop": [held if point.after == "left-held" else "@never@"]} if api.stops else {}
            await leave(server, api, replace(long_answer.request, stops=stops), 3)
            await asyncio.sleep(0.06)  # time for the server to notice that the clients left
        elif point.after in ("refused", "broken", "refused-stops"):
            early = script(point.script).at(0, 0, 2)
            stop: Any = {"refused": [early, 5], "broken": 5}.get(point.after, [early])
            wrong = Extras({"temperature": "hot"}) if point.after == "refused-stops" else Extras()
            request = replace(single_of(api, Point()).request, stops={"stop": stop}, extras=wrong)
            await ask(server, api, request, kept=kept)


@lru_cache(500)  # cached: many cases use the same requests, and tests/measure.py uses them for each server
def single_of(api: Api, point: Point, limit: int | None = None) -> Single:
    """Returns the request that `point` describes and its correct answer, without the requests that run before it or at
    the same time. If `limit` is given, it replaces the point's limit of tokens."""
    if not api.stops:
        point = replace(point, among="none")
    words = extras(point.says, api.name, stop_of(point))
    assert words is not None, (api.name, point)
    task = task_of(point)
    made = single(api, point.stream, replace(task, max_tokens=limit or task.max_tokens), words)
    usage = {"asked": True, "not-asked": False, "false": None}[point.usage]
    return replace(made, request=replace(made.request, usage=usage))


def task_of(point: Point) -> Task:
    one = script(point.script)
    stops = stops_of(point)
    if point.says == "prompt-begins-the-stop" and stops:
        stops = ["]" + one.text[:2], *stops]
    whole = Task(one.name, one.pieces, stops or MISSING, stop_pieces_of(point), max_tokens=None)
    return replace(whole, max_tokens=_limit(point, whole))


def _limit(point: Point, whole: Task) -> int | None:
    fixed = {"tight": 1, "in-reasoning": 20, "after-reasoning": 61, "all": len(whole.pieces) + 10}
    if point.limit in fixed:
        return fixed[point.limit]
    if point.limit == "none":
        return None
    if point.place is None or point.among == "none":  # no stop ends the answer, and a part of the script is enough
        return min(300, point.longest + ENOUGH)
    tokens = recite(whole).tokens
    more = {"enough": tokens + ENOUGH, "at-the-stop": tokens, "one-after": tokens + 1, "one-before": tokens - 1}
    return max(1, {**more, "within": min(point.place + 1, tokens)}[point.limit])


def _before(point: Point) -> Iterator[Point]:
    """Yields the points of the earlier requests on the same connection."""
    plain = Point(stream=point.stream)
    if point.among == "equal-joined":
        yield replace(plain, place=point.place, skip=point.skip, length=point.length, among="later-first")
        yield replace(plain, place=7, skip=0, length=point.length)
        yield replace(plain, place=point.place, skip=point.skip, length=max(4, point.length), among="joined-otherwise")
    for number in range(point.kept):
        short = number % 2 == 0
        yield replace(plain, place=3 + number, length=2 + number % 5, limit="tight" if short else "enough")


def _beside(point: Point) -> Iterator[Point]:
    """Yields the requests that run at the same time as the request of `point`. A point describes each of them. Three
    kinds take turns: a request for the script `deep`, one for a script `looks-…`, and the request of `point` itself."""
    alone = replace(point, company=1, kept=0, after="nothing")
    for number in range(1, point.company):
        if number % 3 == 0:
            yield alone
        elif number % 3 == 1:
            yield Point(place=4 + number % 17, length=3 + number % 4, stream=number % 2 == 0)
        else:
            yield Point(script=LOOKS[number % len(LOOKS)], stream=number % 2 == 1)
