"""The cases of each API, as streams and as whole answers: those of `named/`, cases of several requests, cases that
compare times, and the generated cases of `space.py`."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from stopscan_conformance import clock, plays, space
from stopscan_conformance.apis import APIS, Api, Request, Said
from stopscan_conformance.client import Server
from stopscan_conformance.judge import LEVELS, RULES, Column, Findings, Level, columns_of
from stopscan_conformance.oracle import MISSING, Asked, pieces_text
from stopscan_conformance.probe import probe, trouble
from stopscan_conformance.scripts import THINKING, made_scripts, named
from stopscan_conformance.space import Point

# Names of cases. The requests of each tuple form one case: IN_TURN sends them one after another, the others at once.
TOGETHER = ("one-token", "three-tokens", "split", "as-encoded", "no-stop", "held-at-eos", "long", "no-stop-limit")
ONE_PROMPT = ("one-token", "three-tokens", "first-of-three", "no-stop", "no-stop-limit", "limit-of-one")
IN_TURN = ("no-stop", "three-tokens", "no-stop", "first-of-three", "no-stop-limit", "held-at-eos", "no-stop")
LASTING = ("long-text", "long-text-never", "long")
PLAIN = "no-stop"
LONG, EARLY = "long-stream", "slowly"  # a script of 828 tokens, and a stop soon after its beginning
LIMIT_OF_PAIRS = 80
OPENING = THINKING[0].encode()
PACED = {"pace": "alone", "pace-with-stops": "decoys-40", "pace-while-held": "held-here"}


class Result(NamedTuple):
    """The result of a case.

    `findings` has each rule that the case tests: `None` for a rule that is kept, otherwise a text that says what came
    instead. `detail` has the texts of the rules that fail the case, or says why the case is not supported. A case that
    breaks only rules of a lower level than the chosen one passes.

    >>> Result("fail", "no [DONE]", {"text": None, "form": "no [DONE]"}).wrong
    ('form',)
    """

    outcome: Literal["pass", "fail", "not supported"]
    detail: str = ""
    findings: Findings = MappingProxyType({})

    @property
    def broken(self) -> dict[str, str]:
        """The rules that are broken, of all levels, and what came instead."""
        return {rule: fault for rule, fault in self.findings.items() if fault is not None}

    @property
    def columns(self) -> Mapping[Column, str | None]:
        """The findings by promise, which is a group of rules (`COLUMNS`)."""
        return columns_of(self.findings)

    @property
    def wrong(self) -> tuple[Column, ...]:
        """The promises that are broken."""
        return tuple(column for column, fault in self.columns.items() if fault is not None)


def counted(api: Api, level: Level) -> list[str]:
    """Returns the names of the rules of this level and of higher levels: a case that breaks one of them fails."""
    return [rule.name for rule in RULES.values() if LEVELS.index(rule.level_of(api)) <= LEVELS.index(level)]


def result_of(findings: Findings, rules: Sequence[str], more: str | None = None) -> Result:
    """Returns the result: a failure if the findings break a rule in `rules`. Its detail then ends with `more`."""
    wrong = [fault for rule, fault in findings.items() if fault and rule in rules]
    details = [*wrong, *([more] if more and wrong else ())]
    return Result("fail" if wrong else "pass", "; ".join(details), findings)


@dataclass(frozen=True, eq=False)
class Case:
    """One or several requests to a server, with the answers that must come. `str(case)` is the name of the case.

    `why` says what the case tests, and `topic` is the kind of the case.
    """

    api: str
    stream: bool
    topic: str
    name: str
    why: str
    _play: plays.Play = field(repr=False)

    def __str__(self) -> str:
        return f"{self.api}-{'stream' if self.stream else 'whole'}-{self.name}"

    @property
    def timed(self) -> bool:
        """Whether the case compares times, and needs the server for itself."""
        return self.topic in ("pace", "cost")

    @property
    def single(self) -> bool:
        """Whether the case is one request, so that other cases may run at the same time."""
        alone = not isinstance(self._play, plays.Generated) or self._play.alone
        return alone and not self.timed and self.topic not in ("together", "pairs")

    def run(self, server: Server, /, *, level: Level = "usual") -> Result:
        """Returns the result of the case on `server`. Rules of levels after `level` in `LEVELS` do not fail it.

        Raises `ConnectionError` if the server is down, `TimeoutError` if the server is too slow for any case, and
        `RuntimeError` if the server serves another model.
        """
        return asyncio.run(self.play(server, level=level))

    async def play(self, server: Server, /, *, level: Level = "usual") -> Result:
        """Returns the result, as `run` does, for callers in an event loop."""
        api = APIS[self.api]
        can = await probe(server, api)
        if can.missing is not None:
            return Result("not supported", can.missing)
        try:
            found = await self._play(server)
        except plays.NotSupported as refusal:
            return Result("not supported", str(refusal))
        rules = counted(api, level)
        result = result_of(found, rules)
        ended = await trouble(server, api) if result.outcome == "fail" else None
        return result_of(found, rules, ended)

    def curl(self, server: Server, /) -> str | None:
        """Returns the shell command that sends the request of the case, or None if the case has several requests. The
        API key is left out."""
        play, api = self._play, APIS[self.api]
        asked = getattr(play, "__self__", None) or getattr(play, "exchange", None)
        if isinstance(play, (plays.Wrong, plays.Rows)):
            body = play.body(server.model)
        elif isinstance(asked, plays.Exchange) and (not isinstance(play, plays.Generated) or play.alone):
            body = api.body(server.model, asked.request)
        else:
            return None
        content = body if isinstance(body, str) else json.dumps(body)
        key = [] if server.api_key is None else ["-H", "Authorization: Bearer KEY"]
        headers = [*key, "-H", "Content-Type: application/json"]
        return shlex.join(["curl", "-sNL", f"{server.url}{api.path}", *headers, "-d", content])

    def least(self, server: Server, result: Result, /) -> Case:
        """Returns the case of the smallest request that still breaks all rules that `result` breaks, or the case itself
        if the case was not generated."""
        if not isinstance(self._play, plays.Generated):
            return self
        api = self._play.api

        def fails(point: Point) -> bool:
            return plays.fits(api, point) and {*self.at(point).run(server).broken} >= {*result.broken}

        return self.at(space.least_failing(self._play.point, fails))

    def at(self, point: Point, /) -> Case:
        """Returns the generated case of another point, through the same API."""
        return replace(self, stream=point.stream, name=str(point), _play=plays.Generated(APIS[self.api], point))


def cases(*apis: str, deep: bool = False, thorough: bool = False, seed: int = 0) -> list[Case]:
    """Returns the cases of the named APIs, by default of all APIs except those that must be named (`Api.extra`).

    By default these are the named cases and generated cases with short answers. `deep` adds long answers, and
    `thorough` a very large number of further cases. Random requests use `seed`.

    >>> [str(case) for case in cases("anthropic")][0]
    'anthropic-whole-line-break'
    """
    for api in apis:
        if api not in APIS:
            raise ValueError(f"unknown API {api!r}; known are {', '.join(APIS)}")
    points = space.thorough(seed) if thorough else space.deep(seed) if deep else space.small(seed)
    chosen = apis or [name for name, api in APIS.items() if not api.extra]
    return [one for api in chosen for one in _cases(APIS[api], points)]


class Named(NamedTuple):
    """A case from a file of `named/`, which becomes a case of each API, or of those in `apis`."""

    topic: str
    name: str
    why: str
    asked: Asked
    said: Said
    apis: Sequence[str]


def named_cases() -> list[Named]:
    """Returns the cases of `named/`."""
    found = []
    for one in named():
        for case in one["cases"]:
            stops = {"stop": case.get("stop", MISSING), "stop_pieces": tuple(case.get("stop_pieces", ()))}
            limit = {"max_tokens": case["max_tokens"]} if "max_tokens" in case else {}
            asked = Asked(one["script"], one["pieces"], **stops, **limit)
            said = Said(case.get("options", {}))
            found.append(Named(one["topic"], case["name"], one["why"], asked, said, case.get("apis", ())))
    return found


def _cases(api: Api, points: Sequence[Point]) -> Iterator[Case]:
    """Yields the cases of an API in the order of the report."""
    every = [one for one in named_cases() if _fits(api, one)]
    by_name = {one.name: one for one in every}
    for stream in (False, True):

        def made(names: Sequence[str], stream: bool = stream) -> list[plays.Exchange]:
            return [plays.exchange(api, stream, by_name[name].asked) for name in names if name in by_name]

        for one in every:
            play = plays.exchange(api, stream, one.asked, one.said).run
            yield Case(api.name, stream, one.topic, one.name, one.why, play)
        for kind in (_together, _requests, _wrong, _rows, _pairs, _paces, _costs):
            for told in kind(api, stream, made):
                yield Case(api.name, stream, *told)
    why = "the stop that completes first ends the answer, whatever else the request says"
    for point in points if api.stops else dict.fromkeys(map(_without_stops, points)):
        if plays.fits(api, point):
            yield Case(api.name, point.stream, "generated", str(point), why, plays.Generated(api, point))


def _without_stops(point: Point) -> Point:
    """Returns the point (a generated request) without stops. The fields that place its stop get their defaults."""
    least = Point()
    return replace(point, among="none", place=least.place, skip=least.skip, length=least.length)


def _fits(api: Api, one: Named) -> bool:
    if one.apis and api.name not in one.apis:
        return False
    if not api.stops and (one.asked.stop is not MISSING or one.asked.stop_pieces):
        return False
    if api.raw and OPENING in b"".join(one.asked.pieces):
        return False  # without a chat template, a server may treat reasoning as text, so that stops fire in it
    return not (api.lists_only and (one.asked.stop is None or isinstance(one.asked.stop, str)))


Told = tuple[str, str, str, plays.Play]  # the topic, name, reason and play (what it runs) of a case
Made = Any  # a function that returns the exchanges (requests with their right answers) of named cases


def _runs(exchanges: Sequence[plays.Exchange]) -> list[plays.Play]:
    return [one.run for one in exchanges]


def _together(api: Api, stream: bool, made: Made) -> Iterator[Told]:
    every, others = _runs(made(TOGETHER)), _runs(made(TOGETHER, not stream))
    half = len(every) // 2
    told = {
        "at-once": ("requests at the same time do not know of each other", plays.at_once(every)),
        "at-once-mixed": ("streams and whole answers go together", plays.at_once([*every[:half], *others[half:]])),
        "one-prompt": ("requests for one prompt have their own stops", plays.at_once(_runs(made(ONE_PROMPT)))),
        "in-turn": ("nothing of a request is left for the next one", plays.in_turn(_runs(made(IN_TURN)))),
    }
    yield from (("together", name, *one) for name, one in told.items())


def _requests(api: Api, stream: bool, made: Made) -> Iterator[Told]:
    """Yields cases in which clients leave, and cases that send a request twice. The answers that clients leave are
    long, so that the server still generates them at that time."""
    left = plays.exchange_of(api, Point(script="paced", place=None, stream=True))
    after = plays.in_turn([plays.leaving(left), left.run, plays.at_once(_runs(made(TOGETHER)))])
    paced = Point(script="paced", place=None, stream=stream)
    others = [paced, replace(paced, place=250, length=12), replace(paced, among="decoys-3")]
    lasting = [plays.exchange_of(api, point).run for point in others]
    # The clients leave after 4 pieces, because by then all other requests run.
    beside = plays.at_once([plays.leaving(left, 4), *lasting, *_runs(made(LASTING))])
    yield "together", "after-leaving", "a client that leaves does not change later answers", after
    yield "together", "beside-leaving", "a client that leaves does not change the answers beside it", beside
    (plain,) = made([PLAIN])
    longer, same = plays.prompted_twice(plain, space.LONG_PROMPT), plays.prompted_twice(plain)
    yield "together", "prompt-tokens", "a longer prompt has more tokens", longer
    yield "together", "twice-the-same", "a second answer has another id, and is otherwise the same", same


def _wrong(api: Api, stream: bool, made: Made) -> Iterator[Told]:
    (plain,) = made(["as-encoded"] if api.stops else [PLAIN])
    for name, change in plays.WRONG.items() if not stream else ():
        if (name == "no-content" and api.name.startswith("ollama")) or ("stop" in name and not api.stops):
            continue  # for Ollama, a request without content loads the model
        yield "wrong", name, "a wrong request gets a 4xx", plays.Wrong(api, plain.request, change)
    for name, odd in plays.odd_stops(plain) if api.stops else ():
        yield "wrong", name, "a wrong stop is refused, or the others count", odd


def _rows(api: Api, stream: bool, made: Made) -> Iterator[Told]:
    rule = "each row has its own stop and end"
    if api.name in ("openai-chat", "openai-completions"):
        (row,) = made(["as-encoded"])
        yield "rows", "two-rows", rule, plays.Rows(api, [row, row])
    if api.name == "openai-completions":
        # The stop of the first row is not in the text of the second row, which ends at the token limit.
        stopped = plays.asked_of(Point())
        other = replace(stopped, script="paced", pieces=made_scripts()["paced"])
        both = [plays.exchange(api, stream, one) for one in (stopped, other)]
        yield "rows", "two-prompts", rule, plays.Rows(api, both, prompts=True)


def _pairs(api: Api, stream: bool, made: Made) -> Iterator[Told]:
    rule = "requests that differ in one field alone have their own answers"
    for name, pair in space.PAIRS.items():
        both = [replace(point, stream=point.stream != stream) for point in pair]
        if not all(plays.fits(api, point) for point in both):
            continue
        # Both requests get the same limit, unless the limit is the field in which the pair differs.
        asked = [plays.asked_of(point) for point in both]
        if "limit" not in name:
            asked = [replace(one, max_tokens=LIMIT_OF_PAIRS) for one in asked]
        one, other = (plays.exchange(api, point.stream, mine) for point, mine in zip(both, asked, strict=True))
        yield "pairs", f"{name}-in-turn", rule, plays.on_one_connection([one, other, one, other])
        yield "pairs", f"{name}-at-once", rule, plays.at_once(_runs([one, other] * 3))


def _paces(api: Api, stream: bool, made: Made) -> Iterator[Told]:
    for name, among in PACED.items() if stream and api.stops else ():
        point = Point(script="paced", place=None, among=among, stream=True)
        yield "pace", name, "text comes as soon as it is safe", clock.Pace(plays.exchange_of(api, point))


def _costs(api: Api, stream: bool, made: Made) -> Iterator[Told]:
    load = clock.Load(api, f"[{LONG}]", (space.NEVER, EARLY), stream)
    if api.stops:
        yield "cost", "cost-of-a-stop", "generation ends with the stop", clock.of_a_stop(load)
    left = {"during an answer": load.tokens(clock.LASTING)}
    if stream and api.stops:
        # Clients also leave an answer whose text is held from the third token on, and an answer with reasoning.
        pieces = next(one["pieces"] for one in named() if one["script"] == LONG)
        held = {"stop": [pieces_text(pieces[2:]) + "#"]}
        left["while text was held"] = Request(load.prompt, stream, held, 300)
        thinking = Point(script="thought", place=None, limit="all", stream=True)
        if plays.fits(api, thinking):
            left["in the reasoning"] = plays.exchange_of(api, thinking).request
    why = "nothing goes on after a stop, or for a client that has left, so the next answer does not wait"
    yield "cost", "cost-for-the-next", why, clock.for_the_next(load, left)
