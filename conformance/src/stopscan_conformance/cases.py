"""The cases of each API, as streams and as whole answers: cases from the files of `named/`, cases of several requests,
cases that compare times, and cases generated from `space.py`."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from stopscan_conformance import clock, generated, several, space, wrong_requests
from stopscan_conformance.apis import APIS, Api, Extras, Request
from stopscan_conformance.client import Server
from stopscan_conformance.judge import LEVELS, RULES, Column, Findings, Level, columns_of
from stopscan_conformance.oracle import MISSING, Task, pieces_text
from stopscan_conformance.probe import probe, trouble
from stopscan_conformance.scripts import THINKING, made_scripts, named
from stopscan_conformance.single import NotSupported, Run, Single, single
from stopscan_conformance.space import Point

# Names of cases whose requests are also sent in further cases, which have several requests. The requests of IN_TURN are
# sent one after another, those of TOGETHER, ONE_PROMPT and LASTING at the same time.
TOGETHER = ("one-token", "three-tokens", "split", "as-encoded", "no-stop", "held-at-eos", "long", "no-stop-limit")
ONE_PROMPT = ("one-token", "three-tokens", "first-of-three", "no-stop", "no-stop-limit", "limit-of-one")
IN_TURN = ("no-stop", "three-tokens", "no-stop", "first-of-three", "no-stop-limit", "held-at-eos", "no-stop")
LASTING = ("long-text", "long-text-never", "long")
PLAIN, STOPPED = "no-stop", "as-encoded"
LONG, EARLY = "long-stream", "slowly"  # a script of 828 tokens, and a stop soon after its beginning
LIMIT_OF_PAIRS = 80
OPENING = THINKING[0].encode()
PACED = {"pace": "alone", "pace-with-stops": "decoys-40", "pace-while-held": "held-here"}


class Result(NamedTuple):
    """The result of a case.

    `findings` has each rule that the case tests: `None` for a rule that is kept, otherwise a text that says how the
    answer breaks it. The case fails if a broken rule has the chosen level or a higher one. `detail` has the texts of
    the rules that make the case fail, or says why the case is not supported.

    >>> Result("fail", "no [DONE]", {"text": None, "form": "no [DONE]"}).wrong
    ('form',)
    """

    outcome: Literal["pass", "fail", "not supported"]
    detail: str = ""
    findings: Findings = MappingProxyType({})

    @property
    def broken(self) -> dict[str, str]:
        """The broken rules of all levels, each with a text that says what came instead."""
        return {rule: fault for rule, fault in self.findings.items() if fault is not None}

    @property
    def columns(self) -> Mapping[Column, str | None]:
        """The findings by promise, which is a group of rules (`COLUMNS` has all promises). The value for a promise says
        what is wrong, or is None if its rules are kept."""
        return columns_of(self.findings)

    @property
    def wrong(self) -> tuple[Column, ...]:
        """The promises that are broken."""
        return tuple(column for column, fault in self.columns.items() if fault is not None)


def counted(api: Api, level: Level) -> list[str]:
    """Returns the names of the rules of `level` and of higher levels. A case that breaks one of these rules fails."""
    return [rule.name for rule in RULES.values() if LEVELS.index(rule.level_of(api)) <= LEVELS.index(level)]


def result_of(findings: Findings, rules: Sequence[str], more: str | None = None) -> Result:
    """Returns the result of a case: a failure if `findings` has a violation of a rule in `rules`. `more` is appended to
    the detail of a failure."""
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
    _run: Run = field(repr=False)

    def __str__(self) -> str:
        return f"{self.api}-{'stream' if self.stream else 'whole'}-{self.name}"

    @property
    def timed(self) -> bool:
        """Whether the case compares times, and needs the server for itself."""
        return self.topic in ("pace", "cost")

    @property
    def single(self) -> bool:
        """Whether other cases may run at the same time. They may if the case sends only one request, and does not
        compare times."""
        alone = not isinstance(self._run, generated.Generated) or self._run.alone
        return alone and not self.timed and self.topic not in ("together", "pairs")

    def run(self, server: Server, /, *, level: Level = "usual") -> Result:
        """Returns the result of the case on `server`. A broken rule makes the case fail only if its level is `level` or
        a stricter one ("documented" is the strictest, "advice" the least strict).

        Raises `ConnectionError` if the server is down, `TimeoutError` if the server is too slow for any case, and
        `RuntimeError` if the server serves another model.
        """
        return asyncio.run(self.run_async(server, level=level))

    async def run_async(self, server: Server, /, *, level: Level = "usual") -> Result:
        """Returns the result, as `run` does, for callers in an event loop."""
        api = APIS[self.api]
        can = await probe(server, api)
        if can.missing is not None:
            return Result("not supported", can.missing)
        try:
            findings = await self._run(server)
        except NotSupported as refusal:
            return Result("not supported", str(refusal))
        rules = counted(api, level)
        result = result_of(findings, rules)
        ended = await trouble(server, api) if result.outcome == "fail" else None
        return result_of(findings, rules, ended)

    def curl(self, server: Server, /) -> str | None:
        """Returns the shell command that sends the request of the case, or None if the case has several requests. The
        API key is left out."""
        run, api = self._run, APIS[self.api]
        only = getattr(run, "__self__", None) or getattr(run, "single", None)
        if isinstance(run, (wrong_requests.Wrong, several.Rows)):
            body = run.body(server.model)
        elif isinstance(only, Single) and (not isinstance(run, generated.Generated) or run.alone):
            body = api.written(server.model, only.request)
        else:
            return None
        content = body if isinstance(body, str) else json.dumps(body)
        key = [] if server.api_key is None else ["-H", "Authorization: Bearer KEY"]
        headers = [*key, "-H", "Content-Type: application/json"]
        return shlex.join(["curl", "-sNL", f"{server.url}{api.path}", *headers, "-d", content])

    def least(self, server: Server, result: Result, /) -> Case:
        """Looks for the smallest request that still breaks all rules that `result` breaks. Returns the case of that
        request. A case that was not generated is returned unchanged."""
        if not isinstance(self._run, generated.Generated):
            return self
        api = self._run.api

        def fails(point: Point) -> bool:
            return generated.fits(api, point) and {*self.at(point).run(server).broken} >= {*result.broken}

        return self.at(space.least_failing(self._run.point, fails))

    def at(self, point: Point, /) -> Case:
        """Returns the generated case whose request is ``point``, through the API of this case."""
        return replace(self, stream=point.stream, name=str(point), _run=generated.Generated(APIS[self.api], point))


def cases(*apis: str, deep: bool = False, thorough: bool = False, seed: int = 0) -> list[Case]:
    """Returns the cases of the given APIs. If none is given, returns those of all APIs that are not `extra`.

    By default, these are all cases that are not generated, and generated cases with short answers. `deep` adds long
    answers, and `thorough` a very large number of further cases. Random requests use `seed`.

    >>> [str(case) for case in cases("anthropic")][0]
    'anthropic-whole-line-break'
    """
    for api in apis:
        if api not in APIS:
            raise ValueError(f"unknown API {api!r}; known are {', '.join(APIS)}")
    points = space.thorough(seed) if thorough else space.deep(seed) if deep else space.small(seed)
    chosen = apis or [name for name, api in APIS.items() if not api.extra]
    return [case for api in chosen for case in _cases(APIS[api], points)]


class NamedCase(NamedTuple):
    """A case from a file of `named/`. It is tested with each API, or only with those in `apis`."""

    topic: str
    name: str
    why: str
    task: Task
    extras: Extras
    apis: Sequence[str]
    streams: Sequence[bool] = (False, True)


def named_cases() -> Iterator[NamedCase]:
    """Yields the cases of `named/`."""
    for entry in named():
        for case in entry["cases"]:
            stops = {"stop": case.get("stop", MISSING), "stop_pieces": tuple(case.get("stop_pieces", ()))}
            limit = {"max_tokens": case["max_tokens"]} if "max_tokens" in case else {}
            task = Task(entry["script"], entry["pieces"], **stops, **limit)
            extras = Extras(**case.get("says", {}), options=case.get("options", {}))
            streams = [case["stream"]] if "stream" in case else [False, True]
            apis = case.get("apis", ())
            yield NamedCase(entry["topic"], case["name"], entry["why"], task, extras, apis, streams)


def _cases(api: Api, points: Sequence[Point]) -> Iterator[Case]:
    """Yields the cases of an API in the order of the report."""
    fitting = [case for case in named_cases() if _fits(api, case)]
    for stream in (False, True):
        yield from _Maker(api, stream, fitting).every()
    why = "the stop that completes first ends the answer, whatever else the request says"
    for point in points if api.stops else dict.fromkeys(map(_without_stops, points)):
        if generated.fits(api, point):
            yield Case(api.name, point.stream, "generated", str(point), why, generated.Generated(api, point))


def _without_stops(point: Point) -> Point:
    """Returns a copy of the generated request `point` without stops. The fields that say where in the text the stop is
    have no meaning then, so the copy has their defaults."""
    least = Point()
    return replace(point, among="none", place=least.place, skip=least.skip, length=least.length)


def _fits(api: Api, case: NamedCase) -> bool:
    if case.apis and api.name not in case.apis:
        return False
    if not api.stops and (case.task.stop is not MISSING or case.task.stop_pieces):
        return False
    if api.raw and OPENING in b"".join(case.task.pieces):
        return False  # without a chat template, a server may treat reasoning as text, so that stops fire in it
    return not (api.lists_only and (case.task.stop is None or isinstance(case.task.stop, str)))


@dataclass(frozen=True)
class _Maker:
    """Makes those cases of an API that are not generated: all cases for streams, or all for whole answers."""

    api: Api
    stream: bool
    named: Sequence[NamedCase]

    def every(self) -> Iterator[Case]:
        yield from self.one_request()
        yield from self.together()
        for make in (self.leaving, self.twice, self.wrong, self.rows, self.pairs, self.paces, self.costs):
            yield from make()

    def case(self, topic: str, name: str, why: str, run: Run) -> Case:
        return Case(self.api.name, self.stream, topic, name, why, run)

    def singles(self, *names: str, stream: bool | None = None) -> list[Single]:
        """Returns the requests of the cases with these names, each with its correct answers. A case that does not exist
        for the API is left out."""
        known = {case.name: case.task for case in self.named}
        stream = self.stream if stream is None else stream
        return [single(self.api, stream, known[name]) for name in names if name in known]

    def runs(self, *names: str, stream: bool | None = None) -> list[Run]:
        return [request.run for request in self.singles(*names, stream=stream)]

    def plain(self) -> Single:
        return self.singles(PLAIN)[0]

    def stopped(self) -> Single:
        """Returns a request with a stop, or without one if the API has no stops."""
        return self.singles(STOPPED if self.api.stops else PLAIN)[0]

    def one_request(self) -> Iterator[Case]:
        for case in self.named:
            if self.stream in case.streams:
                run = single(self.api, self.stream, case.task, case.extras, case.name).run
                yield self.case(case.topic, case.name, case.why, run)

    def together(self) -> Iterator[Case]:
        every, others = self.runs(*TOGETHER), self.runs(*TOGETHER, stream=not self.stream)
        half = len(every) // 2
        mixed = [*every[:half], *others[half:]]
        one_prompt, turns = self.runs(*ONE_PROMPT), self.runs(*IN_TURN)
        topic = "together"
        yield self.case(topic, "at-once", "requests at the same time do not change each other", several.at_once(every))
        yield self.case(topic, "at-once-mixed", "streams do not disturb whole answers", several.at_once(mixed))
        yield self.case(topic, "one-prompt", "equal prompts may have different stops", several.at_once(one_prompt))
        yield self.case(topic, "in-turn", "a request leaves nothing behind for the next one", several.in_turn(turns))

    def leaving(self) -> Iterator[Case]:
        """Yields cases in which clients leave while the server still generates their long answers."""
        topic, paced = "together", Point(script="paced", place=None, stream=self.stream)
        abandoned = generated.single_of(self.api, replace(paced, stream=True))
        after = [several.leaving(abandoned), abandoned.run, several.at_once(self.runs(*TOGETHER))]
        why = "a client that leaves does not change later answers"
        yield self.case(topic, "after-leaving", why, several.in_turn(after))
        late = replace(paced, place=250, length=12)
        if not self.stream:
            early, plain = generated.single_of(self.api, late if self.api.stops else paced), self.plain()
            turns = several.in_turn([several.leaving_early(early, plain), early.run, plain.run, self.stopped().run])
            yield self.case(topic, "after-leaving-early", f"{why}, even if it has read nothing", turns)
        long = [generated.single_of(self.api, point).run for point in (paced, late, replace(paced, among="decoys-3"))]
        # The clients leave after 4 pieces, because by then all other requests run.
        beside = several.at_once([several.leaving(abandoned, 4), *long, *self.runs(*LASTING)])
        yield self.case(topic, "beside-leaving", "a client that leaves does not change other running answers", beside)

    def twice(self) -> Iterator[Case]:
        """Yields cases that send a request more than once."""
        longer, same = several.prompted_twice(self.plain(), space.LONG_PROMPT), several.prompted_twice(self.plain())
        yield self.case("together", "prompt-tokens", "a longer prompt has more tokens", longer)
        yield self.case("together", "twice-the-same", "a second answer has another id, and is otherwise the same", same)
        header = Extras(headers={"X-Request-Id": "the-same"})
        every = [self.plain(), self.stopped(), self.plain()]
        equal = [replace(sent, request=replace(sent.request, extras=header)).run for sent in every]
        why = "requests that share the header X-Request-Id have their own answers"
        yield self.case("together", "one-request-id", why, several.at_once(equal))

    def wrong(self) -> Iterator[Case]:
        sent = self.stopped()
        for name, change in wrong_requests.WRONG.items() if not self.stream else ():
            if (name == "no-content" and self.api.name.startswith("ollama")) or ("stop" in name and not self.api.stops):
                continue  # without content, a request to Ollama is not wrong: it loads the model
            wrong = wrong_requests.Wrong(self.api, sent.request, change)
            yield self.case("wrong", name, "a wrong request gets a 4xx", wrong)
        for name, odd in wrong_requests.odd_stops(sent) if self.api.stops else ():
            yield self.case("wrong", name, "a wrong stop is refused, or the others count", odd)

    def rows(self) -> Iterator[Case]:
        why = "each row has its own stop and end"
        if self.api.name in ("openai-chat", "openai-completions"):
            yield self.case("rows", "two-rows", why, several.Rows(self.api, [self.stopped()] * 2))
        if self.api.name == "openai-completions":
            # Each of the two prompts gets its own answer. The stop of the request is only in the first answer, so the
            # second ends at the token limit.
            first = generated.task_of(Point())
            second = replace(first, script="paced", pieces=made_scripts()["paced"])
            both = [single(self.api, self.stream, task) for task in (first, second)]
            yield self.case("rows", "two-prompts", why, several.Rows(self.api, both, prompts=True))

    def pairs(self) -> Iterator[Case]:
        why = "requests that differ in one field alone have their own answers"
        for name, pair in space.PAIRS.items():
            points = [replace(point, stream=point.stream != self.stream) for point in pair]
            if not all(generated.fits(self.api, point) for point in points):
                continue
            # Both requests get the same limit, unless the limit is the field in which they differ.
            limit = None if "limit" in name else LIMIT_OF_PAIRS
            first, second = (generated.single_of(self.api, point, limit) for point in points)
            yield self.case("pairs", f"{name}-in-turn", why, several.on_one_connection([first, second, first, second]))
            yield self.case("pairs", f"{name}-at-once", why, several.at_once([first.run, second.run] * 3))

    def paces(self) -> Iterator[Case]:
        for name, among in PACED.items() if self.stream and self.api.stops else ():
            point = Point(script="paced", place=None, among=among, stream=True)
            run = clock.Pace(generated.single_of(self.api, point))
            yield self.case("pace", name, "text comes as soon as it is safe", run)

    def costs(self) -> Iterator[Case]:
        load = clock.Load(self.api, f"[{LONG}]", (space.NEVER, EARLY), self.stream)
        if self.api.stops:
            yield self.case("cost", "cost-of-a-stop", "a server does not generate after a stop", clock.of_a_stop(load))
        abandoned = {"during an answer": load.tokens(clock.LASTING)}
        if self.stream and self.api.stops:
            # Clients also leave at two other times: while the server holds text, and while it sends reasoning. For the
            # first, the stop begins at the third token, so the server holds all text from there on.
            pieces = next(entry["pieces"] for entry in named() if entry["script"] == LONG)
            held = {"stop": [pieces_text(pieces[2:]) + "#"]}
            abandoned["while text was held"] = Request(load.prompt, self.stream, held, 300)
            thinking = Point(script="thought", place=None, limit="all", stream=True)
            if generated.fits(self.api, thinking):
                abandoned["in the reasoning"] = generated.single_of(self.api, thinking).request
        why = "a server does not generate after a stop, or for a client that has left, so the next answer does not wait"
        yield self.case("cost", "cost-for-the-next", why, clock.for_the_next(load, abandoned))
