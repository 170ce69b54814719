"""The plays of the cases: one request, several at once or in turn, and requests that the client leaves.

A play is a coroutine function that gets a server and returns what is wrong, by rule. `Exchange.run` is the simplest.
"""

from __future__ import annotations

import asyncio
import json
import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Any

import httpx

from stopscan_conformance.apis import Api, Request, Said
from stopscan_conformance.client import Answer, Server, ask
from stopscan_conformance.judge import RULES, Expected, Findings, judge, judge_usage, merged, shown
from stopscan_conformance.oracle import MISSING, Asked, Recital, pieces_text, recite
from stopscan_conformance.probe import Can, probe
from stopscan_conformance.reciter import EOS, default_checkpoint
from stopscan_conformance.scripts import NEAR, THINKING
from stopscan_conformance.sentences import REFUSES, promises
from stopscan_conformance.space import CHATS, Point, said, script, stop_of, stop_pieces_of, stops_of

Play = Callable[[Server], Awaitable[Findings]]

REASONING = re.compile("{}(.*?)(?:{}|$)".format(*map(re.escape, THINKING)), re.DOTALL)
LEAVING = 4
EARLY = 0.05  # seconds after which a client leaves a whole answer at the earliest
ENOUGH = 60  # the tokens that the limit allows after a stop
DEFAULT_LIMIT = 500  # below mlx-lm's default limit of 512 tokens
LOOKS = [f"looks-{name}" for name in NEAR]
TOO_FAST = "not tested: the server answers too fast"


class NotSupported(Exception):  # noqa: N818
    """Raised if the server does not support the request, or if the kit cannot see whether the server is correct."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """A request, and the answer that must come."""

    api: Api
    request: Request
    expected: Expected
    optional: bool = False  # a server may refuse the request for reasons other than its stops
    promised: bool = False  # the API's reference promises this form of request

    async def run(self, server: Server, kept: httpx.AsyncClient | None = None, /) -> Findings:
        """Returns what is wrong with the answer. Raises `NotSupported` if the server refuses the request."""
        can = await probe(server, self.api)
        if "stop_token_ids" in self.request.stops and not can.stop_at_ids:
            raise NotSupported("the server has no stop_token_ids")
        if "stop-in-reasoning" in self.expected.also and not can.tell_reasoning:
            raise NotSupported("the server does not separate reasoning")
        return self.judged(await ask(server, self.api, self.request, kept=kept), can)

    def judged(self, answer: Answer, can: Can = Can(), /) -> Findings:  # noqa: B008
        if not answer.refused:
            found = judge(answer, self.expected, stream=self.request.stream, can=can)
            return {**found, **self._spelled(answer, found)}
        if answer.busy:
            raise NotSupported(answer.error)
        if self.promised:
            return {REFUSES: f"refused: {answer.error}"}
        if self.request.stops and not self.optional and "stop" not in answer.wire.text.lower():
            return {"refusal": f"the refusal does not name the stops as its reason: {answer.error}"}
        raise NotSupported(answer.error)

    def _spelled(self, answer: Answer, found: Findings) -> Findings:
        """Judges the tokens with log probabilities: those of the text, and perhaps those of the stop."""
        spelled = self.api.spelled(answer.wire, self.request) if self.request.said.options.get("logprobs") else None
        joined, text = "".join(spelled or []), answer.text
        # Half characters are spelled in several ways.
        if not joined or "\N{REPLACEMENT CHARACTER}" in joined or found.get("text", "") is not None:
            return {}
        right = joined.startswith(text) and (text + self.expected.rest).startswith(joined)
        return {
            "logprobs": None if right else f"log probabilities of {shown(joined, text)}, not of {shown(text, joined)}"
        }


def exchange(api: Api, stream: bool, asked: Asked, /, said: Said = Said(), name: str = "") -> Exchange:  # noqa: B008
    """Returns the request for `asked` through `api`, with the answer that must come. `name` is the name of the case."""
    checkpoint = default_checkpoint()
    script = asked.script
    ids = checkpoint.token_ids(script)
    stops = {} if asked.stop is MISSING else {"stop": asked.stop}
    if asked.stop_pieces:
        stops["stop_token_ids"] = [ids[piece] for piece in asked.stop_pieces]
    if said.prompt:
        prompts = {"list": [checkpoint.prompt(script)], "ids": [checkpoint.prompt_id(script)],
                   "ids-in-a-list": [[checkpoint.prompt_id(script)]]}  # fmt: skip
        said = replace(said, body={**said.body, "prompt": prompts[said.prompt]})
    request = Request(checkpoint.prompt(script), stream, stops, asked.max_tokens, said=said)
    expected = _expected(api, asked, ids)
    if said.options.get("echo"):  # both answers are right: the prompt is a special token, which servers may leave out
        echoed = tuple((request.prompt + text, reasoning) for text, reasoning in expected.answers)
        expected = replace(expected, answers=(*expected.answers, *echoed), recital=None)
    return Exchange(api, request, expected, optional=said != Said(), promised=promises(api.name, name))


def _expected(api: Api, asked: Asked, ids: Sequence[int]) -> Expected:
    recital = recite(asked)
    fires = ids[recital.fires] if isinstance(recital.fires, int) else recital.fires
    end = api.told((recital.reason, fires))
    # sglang reports an EOS as a stop token that matched.
    ends = (end, ("stop_token", default_checkpoint().eos_token_id)) if end[0] == "eos" else (end,)
    tokens = recital.tokens
    apart = THINKING[0] in recital.text
    return Expected(
        answers=_answers(recital.text) if apart else ((recital.text, ""),),
        ends=ends,
        # A server may or may not count the EOS or stop token that ends an answer: APIs do not say which is correct.
        tokens=(tokens, tokens - 1) if recital.reason in ("eos", "stop_token") else (tokens,),
        # If the text has a `<`, chunks are not compared: a server may hold it as the beginning of `<think>`.
        recital=None if "<" in recital.text else recital,
        text="competing-stops" if recital.competes else "stop-token-ids" if asked.stop_pieces else "text",
        finish="same-step" if recital.at_limit else "finish-reason",
        rest=EOS if recital.reason == "eos" else pieces_text(asked.pieces[: recital.tokens])[len(recital.text) :],
        most=inf if asked.max_tokens is None else asked.max_tokens,
        least=bisect_left(recital.said, len(recital.text)) + 1 if recital.text else 0,
        stopped=recital.reason == "stop_sequence",
        api=api.name,
        worded=api.name == "anthropic",
        also=_also(asked, recital, apart),
    )


def _answers(text: str) -> tuple[tuple[str, str], ...]:
    """Returns the correct pairs of answer and reasoning: with the two separated, with the whole text as the answer, and
    with the reasoning left out."""
    answer, reasoning = REASONING.sub("", text), "".join(REASONING.findall(text))
    return (answer, reasoning), (text, ""), (answer, "")


def _also(asked: Asked, recital: Recital, apart: bool) -> dict[str, tuple[tuple[str, str], ...]]:
    """Returns the wrong answers that break only one rule, of the level "advice", under the name of this rule."""
    if apart:
        return {"stop-in-reasoning": (*_answers(recite(asked, protected=False).text), *_joined(asked))}
    half = recital.text.rstrip("\N{REPLACEMENT CHARACTER}")
    return {"half-characters": ((half, ""),)} if half != recital.text else {}


def _joined(asked: Asked) -> tuple[tuple[str, str], ...]:
    """Returns the pairs of answer and reasoning of a server that removes the reasoning first and then scans the rest: a
    pair with the reasoning, and a pair in which it is left out."""
    whole = b"".join(asked.pieces).decode(errors="replace")
    answer, reasoning = REASONING.sub("", whole), "".join(REASONING.findall(whole))
    ends = [answer.index(stop) for stop in asked.stops if stop in answer]
    return ((answer[: min(ends)], reasoning), (answer[: min(ends)], "")) if ends else ()


# The generated cases. Each is a request that is described by a point (`space.Point`).


def fits(api: Api, point: Point) -> bool:
    """Returns whether `api` can express the request that `point` describes."""
    if said(point.says, api.name) is None:
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
    """Returns an upper bound for the number of tokens of the answer: its number of characters, because each token has
    at least one character. (If a token id is the stop, `place` already counts tokens.)"""
    endless = point.place is None or point.among == "none"
    if point.among == "id" and point.place is not None:
        return point.place + 1
    return float("inf") if endless else (point.place or 0) + point.skip + point.length + 17


@dataclass(frozen=True, eq=False)
class Generated:
    """A play that sends a point's request, with other requests before it and beside it."""

    api: Api
    point: Point

    async def __call__(self, server: Server) -> Findings:
        before = [exchange_of(self.api, one) for one in _before(self.point)]
        others = [exchange_of(self.api, one) for one in _beside(self.point) if fits(self.api, one)]
        kept = server.connect() if self.point.kept or before or self.point.after == "refused-stops" else None
        try:
            found = [await one.run(server, kept) for one in before if self.api.stops or not one.request.stops]
            await self._disturb(server, kept)
            mine = exchange_of(self.api, self.point)
            found += await together([mine.run(server, kept), *(one.run(server) for one in others)])
        finally:
            if kept is not None:
                await kept.aclose()
        return merged(found, together=not self.alone)

    @property
    def alone(self) -> bool:
        """Whether the play sends only one request."""
        point = self.point
        return point.company == 1 and not point.kept and point.after == "nothing" and point.among != "equal-joined"

    @property
    def exchange(self) -> Exchange:
        return exchange_of(self.api, self.point)

    async def _disturb(self, server: Server, kept: httpx.AsyncClient | None) -> None:
        """Sends the requests that come just before: requests whose clients leave, or a wrong request."""
        point, api = self.point, self.api
        if point.after in ("left", "left-held"):
            # With `left-held`, the stop is a copy of the answer from the last character of its first token on,
            # followed by a "#" that never comes. So the server holds all text of the copy when the clients leave.
            held = script("paced").text[script("paced").starts[1] - 1 :][:1100] + "#"
            left = exchange_of(api, Point(script="paced", place=None, stream=True))
            stops = {"stop": [held if point.after == "left-held" else "@never@"]} if api.stops else {}
            await leave(server, api, replace(left.request, stops=stops), 3)
            await asyncio.sleep(0.06)  # until the server has noticed that the clients left
        elif point.after in ("refused", "broken", "refused-stops"):
            early = script(point.script).at(0, 0, 2)
            stop: Any = {"refused": [early, 5], "broken": 5}.get(point.after, [early])
            wrong = Said({"temperature": "hot"}) if point.after == "refused-stops" else Said()
            request = replace(exchange_of(api, Point()).request, stops={"stop": stop}, said=wrong)
            await ask(server, api, request, kept=kept)


async def together(runs: Sequence[Awaitable[Findings]]) -> list[Findings]:
    """Waits for all `runs` at once, and returns their results. If one raises, raises its error when all have ended."""
    found: list[Findings] = []
    for one in await asyncio.gather(*runs, return_exceptions=True):
        if isinstance(one, BaseException):
            raise one
        found.append(one)
    return found


@lru_cache(500)  # the same point is often needed: beside others, and by tests/measure.py for each server
def exchange_of(api: Api, point: Point) -> Exchange:
    """Returns the request of `point` itself, without those before or beside it, and the answer that must come."""
    if not api.stops:
        point = replace(point, among="none")
    words = said(point.says, api.name, stop_of(point))
    assert words is not None, (api.name, point)
    found = exchange(api, point.stream, asked_of(point), words)
    usage = {"asked": True, "not-asked": False, "false": None}[point.usage]
    return replace(found, request=replace(found.request, usage=usage))


def limited(api: Api, point: Point, limit: int) -> Exchange:
    """Returns the request of `point`, as `exchange_of` does, with another limit of tokens."""
    words = said(point.says, api.name, stop_of(point))
    return exchange(api, point.stream, replace(asked_of(point), max_tokens=limit), words or Said())


def asked_of(point: Point) -> Asked:
    one = script(point.script)
    stops = stops_of(point)
    if point.says == "prompt-begins-the-stop" and stops:
        stops = ["]" + one.text[:2], *stops]
    whole = Asked(one.name, one.pieces, stops or MISSING, stop_pieces_of(point), max_tokens=None)
    return replace(whole, max_tokens=_limit(point, whole))


def _limit(point: Point, whole: Asked) -> int | None:
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
    """Yields the points whose requests run beside the request of `point`. Three kinds of points alternate: one with the
    script `deep`, one with a script `looks-…`, and a copy of `point` without company."""
    alone = replace(point, company=1, kept=0, after="nothing")
    for number in range(1, point.company):
        if number % 3 == 0:
            yield alone
        elif number % 3 == 1:
            yield Point(place=4 + number % 17, length=3 + number % 4, stream=number % 2 == 0)
        else:
            yield Point(script=LOOKS[number % len(LOOKS)], stream=number % 2 == 1)


# Several requests.


def at_once(every: Sequence[Play]) -> Play:
    """Returns a play that runs the plays at the same time."""

    async def play(server: Server) -> Findings:
        return merged(await together([one(server) for one in every]))

    return play


def in_turn(every: Sequence[Play]) -> Play:
    """Returns a play that runs the plays one after another, until one finds something wrong. After a request without an
    answer, each later one would only wait for its timeout."""

    async def play(server: Server) -> Findings:
        found: list[Findings] = []
        for one in every:
            found.append(await one(server))
            if any(found[-1].values()):
                break
        return merged(found)

    return play


def on_one_connection(every: Sequence[Exchange]) -> Play:
    """Returns a play of the exchanges one after another, on a connection that stays open."""

    async def play(server: Server) -> Findings:
        async with server.connect() as kept:
            return merged([await one.run(server, kept) for one in every])

    return play


async def leave(server: Server, api: Api, request: Request, clients: int, pieces: int = 1) -> None:
    """Sends the request from `clients` clients that leave after `pieces` pieces of text. Raises `NotSupported` if the
    answers have ended by then."""
    left = await asyncio.gather(*(ask(server, api, request, leave=pieces) for _ in range(clients)))
    if all(one.end is not None for one in left):
        raise NotSupported(TOO_FAST)


def leaving(left: Exchange, pieces: int = 1) -> Play:
    """Returns a play in which several clients ask for a stream and leave after `pieces` pieces of text."""

    async def play(server: Server) -> Findings:
        await leave(server, left.api, left.request, LEAVING, pieces)
        return {}

    return play


def leaving_early(left: Exchange, short: Exchange) -> Play:
    """Returns a play in which several clients ask for a long answer and leave while it is generated, before they have
    read anything: after more than the time that the answer to `short` takes."""

    async def play(server: Server) -> Findings:
        answer = await ask(server, short.api, short.request)
        tasks = [asyncio.ensure_future(ask(server, left.api, left.request)) for _ in range(LEAVING)]
        await asyncio.wait(tasks, timeout=max(EARLY, LEAVING * answer.seconds))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return {}

    return play


def prompted_twice(exchange: Exchange, before: str = "") -> Play:
    """Returns a play that sends the request twice, the second time with `before` in front of the prompt. The answers
    must have different ids. The longer prompt must have more tokens; without `before`, both must have equally many."""

    async def play(server: Server) -> Findings:
        if before and not (await probe(server, exchange.api)).count_prompt:
            raise NotSupported("the server does not count prompt tokens")
        heads = []
        for prompt in (exchange.request.prompt, before + exchange.request.prompt):
            answer = await ask(server, exchange.api, replace(exchange.request, prompt=prompt))
            if answer.error is not None:
                return replace(exchange, optional=bool(before)).judged(answer)
            heads.append(answer.head)
        same = "id" in heads[0] and heads[0]["id"] == heads[1].get("id")
        short, other = (head.get("prompt") for head in heads)
        right = 0 < (short or 0) < (other or 0) if before else short == other
        # Ollama counts the tokens that were evaluated: fewer, if a cache had some.
        right = right or not (before or RULES["prompt-tokens"].level_of(exchange.api) == "documented")
        more = f"{other} tokens of a prompt that is longer than one of {short}"
        return {
            "form": f"two answers have the id {heads[0]['id']!r}" if same else None,
            "prompt-tokens": None if right else more if before else f"{short} and {other} tokens of the same prompt",
        }

    return play


# Several answers of one request.


@dataclass(frozen=True, eq=False)
class Rows:
    """Sends one request for several answers, by `n` or by several prompts. Judges each by its exchange in `rows`."""

    api: Api
    rows: Sequence[Exchange]
    prompts: bool = False

    def body(self, model: str) -> dict[str, Any]:
        body = self.api.body(model, self.rows[0].request)
        return body | ({"prompt": [row.request.prompt for row in self.rows]} if self.prompts else {"n": len(self.rows)})

    async def __call__(self, server: Server) -> Findings:
        can = await probe(server, self.api)
        answer = await ask(server, self.api, self.rows[0].request, body=self.body(server.model))
        if answer.refused:
            raise NotSupported(answer.error)
        if answer.error is not None:
            return {"rows": f"no answer: {answer.error}"}
        return self.judged(answer, can)

    def judged(self, answer: Answer, can: Can = Can()) -> Findings:  # noqa: B008
        """Returns what is wrong with the rows."""
        rows: dict[int, Answer] = {}
        for part in self.api.read(answer.wire, self.rows[0].request):
            if part.row is not None:
                rows.setdefault(part.row, Answer()).add(part)
        if {*rows} != {*range(len(self.rows))}:
            return {"rows": f"there are the rows {[*rows]}, not {len(self.rows)}"}
        found = [
            judge(replace(rows[index], head={}, faults=[]), one.expected, stream=False, can=can)
            for index, one in enumerate(self.rows)
        ]
        text = [f"row {at}: {one['text']}" for at, one in enumerate(found) if one.get("text")]
        ends = merged([{k: v for k, v in one.items() if k not in ("text", "form", "usage")} for one in found])
        every = [row.expected for row in self.rows]
        tokens = tuple(sum(one(row.tokens) for row in every) for one in (max, min))
        least, most = sum(row.least for row in every), sum(row.most for row in every)
        stopped = any(row.stopped for row in every)
        total = replace(every[0], tokens=tokens, stopped=stopped, least=least, most=most)
        return {"rows": "; ".join(text) or None, **ends, **judge_usage(answer.head.get("tokens"), total)}


# Requests that are wrong on purpose. A correct server answers with a status of 4xx.

Change = Callable[[Api, "dict[str, Any]"], Any]  # returns the changed body of a request


def _option(name: str, value: Any) -> Change:
    return lambda api, body: api.with_option(body, getattr(api, name, name), value)


WRONG: Mapping[str, Change] = {
    "a-stop-that-is-a-number": _option("stop", 5),
    "a-stop-that-is-an-object": _option("stop", {"text": "END"}),
    "stops-that-are-numbers": _option("stop", [1, 2]),
    "a-stop-among-numbers": _option("stop", ["END", 5]),
    "a-limit-that-is-text": _option("limit", "many"),
    "a-temperature-that-is-text": _option("temperature", "hot"),
    "no-content": lambda api, body: {key: value for key, value in body.items() if key != api.content},
    "a-list": lambda api, body: [body],
    "no-json": lambda api, body: '{"model": ',
}


@dataclass(frozen=True, eq=False)
class Wrong:
    """A play that sends one request after `change` has made it wrong."""

    api: Api
    request: Request
    change: Change

    def body(self, model: str) -> Any:
        """Returns the body of the request. A string is sent as it is."""
        return self.change(self.api, self.api.body(model, self.request))

    async def __call__(self, server: Server) -> Findings:
        body = self.body(server.model)
        answer = await ask(server, self.api, self.request, body=body)
        status = answer.wire.status
        if status is None:
            return {"wrong-request": f"a wrong request gets no answer: {answer.error}"}
        if status == 501:
            raise NotSupported(answer.error)
        wrong = f"a wrong request gets {status}, not 400: {(body if isinstance(body, str) else json.dumps(body))[:120]}"
        return {"wrong-request": None if 400 <= status < 500 else wrong}


@dataclass(frozen=True, eq=False)
class Odd:
    """A play that sends a list of stops with a wrong entry. The server may refuse the list or ignore the entry."""

    exchange: Exchange

    async def __call__(self, server: Server) -> Findings:
        try:
            found = await self.exchange.run(server)
        except NotSupported:
            return {"odd-stops": None}
        wrong = [f"{fault}" for rule, fault in found.items() if fault and rule in ("text", "form", "competing-stops")]
        return {"odd-stops": "; ".join(wrong) or None}


def odd_stops(exchange: Exchange) -> Iterator[tuple[str, Odd]]:
    """Yields two plays with names: null, or an empty string, is put in front of the exchange's stops."""
    for name, odd in (("null-among-stops", None), ("an-empty-stop-among-stops", "")):
        stops = [odd, *exchange.request.stops["stop"]]
        yield name, Odd(replace(exchange, request=replace(exchange.request, stops={"stop": stops}), optional=True))
