"""Servers that answer one request rightly, but are wrong if several come at once or in turn, or after a client left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from staged.generation import Generation
from staged.request import Ask, Refusal, right_stops
from staged.scanners import Simple
from staged.wrong.table import Parts, wrong

Chunks = Callable[[Generation], Parts]
Key = Callable[[Ask], Any]


@dataclass
class Shared:
    """The state that all requests of a server share."""

    running: int = 0
    stopped: int = 0
    left: int = 0
    tokens: int = 0
    held: str = ""
    requests: Counter[Any] = field(default_factory=Counter)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    last: tuple[str, Any] = ("eos", None)


def shared(made: Generation) -> Shared:
    found: Shared = made.staged.memory.setdefault("shared", Shared())
    return found


def kept(name: str, then: Callable[[Any, Any], Any], *, by_connection: bool = False) -> Callable[[Ask], Ask]:
    """Returns a function that lets a request inherit a field from the previous request: the field `name` becomes
    `then(previous value, value of this request)`."""
    known: dict[Any, Any] = {}

    def ask(ask: Ask) -> Ask:
        key, mine = ask.client if by_connection else None, getattr(ask, name)
        known[key] = then(known[key], mine) if key in known else mine
        return replace(ask, **{name: known[key]})

    return ask


def or_before(before: Any, mine: Any) -> Any:
    """Returns `mine`, the value of this request. If that is empty, returns `before`, the value of the previous
    request."""
    return mine or before


class OneScanner:
    """Defect: uses one scanner for all requests."""

    def __init__(self) -> None:
        self.current = Simple([])

    def __call__(self, stops: list[str]) -> Simple:
        self.current.stops, self.current.match = stops, None
        return self.current


class OneListOfStops:
    """Defect: all running requests use the stops of the newest request."""

    def __init__(self) -> None:
        self.stops: list[str] = []

    def __call__(self, stops: list[str]) -> Simple:
        self.stops[:] = stops
        scanner = Simple([])
        scanner.stops = self.stops
        return scanner


class NullIsTheLast:
    """Defect: `stop: null` means the stops of the latest request that had stops."""

    def __init__(self) -> None:
        self.last: list[str] = []

    def __call__(self, given: Any) -> list[str]:
        self.last = right_stops(given) or self.last
        return self.last if given is None else right_stops(given)


class AfterARefusal:
    """Defect: remembers the stops of a request that was refused because of them. The next request gets the stops
    `then(refused stops, stops of this request)`."""

    def __init__(self, then: Callable[[Any, list[str]], list[str]]) -> None:
        self.then = then
        self.refused: Any = None

    def __call__(self, given: Any) -> list[str]:
        try:
            stops = right_stops(given)
        except Refusal:
            self.refused = given
            raise
        refused, self.refused = self.refused, None
        return stops if refused is None else self.then(refused, stops)


def with_refused(refused: Any, stops: list[str]) -> list[str]:
    listed = refused if isinstance(refused, list) else []
    return [*(stop for stop in listed if stop and isinstance(stop, str)), *stops]


class LeftByARefusal:
    """Defect: remembers the stops of a request that was refused because of its limit or temperature. If the next
    request has no stops, it gets these."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.left: Any = None

    def __call__(self, body: Any) -> Any:
        limit, temperature = body.get("max_tokens"), body.get("temperature", 1)
        if (limit is not None and (type(limit) is not int or limit < 1)) or isinstance(temperature, str):
            self.left = body.get(self.name)
            return body
        owed, self.left = self.left, None
        return body if body.get(self.name) or not owed else {**body, self.name: owed}


# Defects that only some requests have.


def beyond(count: int, then: Chunks) -> Chunks:
    """Returns a function that answers with `then` while more than `count` requests run."""

    async def chunks(made: Generation) -> Parts:
        here = shared(made)
        here.running += 1
        try:
            async for part in then(made) if here.running > count else made.texts():
                yield part
        finally:
            here.running -= 1

    return chunks


def nth(which: Callable[[int], bool], then: Chunks, *, by_connection: bool = False) -> Chunks:
    """Returns a function that counts requests. It answers the nth request with `then`, which has a defect, if
    `which(n)` is true, and correctly otherwise. If `by_connection` is true, it counts the requests of each connection
    separately."""

    async def chunks(made: Generation) -> Parts:
        here = shared(made)
        key = made.ask.client if by_connection else None
        here.requests[key] += 1
        async for part in then(made) if which(here.requests[key]) else made.texts():
            yield part

    return chunks


def after_leaving(then: Chunks, *, held: bool = False) -> Chunks:
    """Returns a function that uses `then`, which has a defect, for the next request after a client has left. It answers
    all other requests correctly. If `held` is true, clients that leave while no text is held change nothing."""

    async def chunks(made: Generation) -> Parts:
        here = shared(made)
        owed, here.left = here.left, 0
        ended = False
        try:
            async for part in then(made) if owed else made.texts():
                yield part
            ended = True
        finally:
            if not ended:
                here.left += not held or bool(made.scanner.flush())

    return chunks


async def without_stops(made: Generation) -> Parts:
    made.scanner = made.staged.scanner([])
    async for part in made.texts():
        yield part


async def fails(made: Generation) -> Parts:
    raise RuntimeError("too many rows")
    yield "answer", ""


async def loses_the_first(made: Generation) -> Parts:
    first = True
    async for kind, text in made.texts():
        yield kind, "" if first and text else text
        first = first and not text


async def reversed_words(made: Generation) -> Parts:
    async for kind, text in made.texts():
        yield kind, text[::-1]


async def nothing(made: Generation) -> Parts:
    yield "answer", ""


async def all_stop_with_one(made: Generation) -> Parts:
    here = shared(made)
    stopped = here.stopped
    async for part in made.texts():
        yield part
        if here.stopped != stopped:
            return
    here.stopped += made.end[0] == "stop_sequence"


async def all_leave_with_one(made: Generation) -> Parts:
    here = shared(made)
    left, ended = here.left, False
    try:
        async for part in made.texts():
            if here.left != left:
                return
            yield part
        ended = True
    finally:
        here.left += not ended


async def slots_are_lost(made: Generation) -> Parts:
    here = shared(made)
    await here.slots.acquire()
    async for part in made.texts():
        yield part
    here.slots.release()


async def held_text_is_lost_and_found(made: Generation) -> Parts:
    here = shared(made)
    held, here.held = here.held, ""
    yield "answer", held
    ended, last = False, ""
    try:
        async for kind, text in made.texts():
            last = text or last
            yield kind, text
        ended = True
    finally:
        here.held = "" if ended else last


async def one_buffer(made: Generation) -> Parts:
    here = shared(made)
    async for kind, text in made.texts():
        here.held += text
        await asyncio.sleep(0)
        yield kind, here.held
        here.held = ""


def counts_all(made: Generation) -> int:
    here = shared(made)
    here.tokens += made.tokens
    return here.tokens


def names_the_last(made: Generation) -> tuple[str, Any]:
    """Defect: remembers the last stop that fired. If a later answer ends by EOS, reports that this stop ended it."""
    here = shared(made)
    if made.end[0] == "stop_sequence":
        here.last = made.end
    return here.last if made.end[0] == "eos" and here.last[1] is not None else made.end


# Defects: the answer to one request is used again for another.


def but(*names: str) -> Key:
    """Returns a function that makes the key under which a request's answer is cached. The key has all fields of the
    request except `names`, so requests that differ only in `names` wrongly get the same answer."""
    fields = [name for name in ("prompt", "stops", "stop_token_ids", "max_tokens", "stream") if name not in names]
    return lambda ask: str([getattr(ask, name) for name in fields])


def cached(key: Key, *, partial: bool = False, end: bool = True) -> Chunks:
    """Returns a function that stores each answer, and sends it again if a later request has the same `key`. If
    `partial` is true, it also stores the answer if the client leaves before it is complete. If `end` is false, it
    forgets why a stored answer ended, and reports EOS."""

    async def chunks(made: Generation) -> Parts:
        answers: dict[Any, Any] = made.staged.memory.setdefault("answers", {})
        known = answers.get(key(made.ask))
        if known is not None:
            parts, ending, made.tokens = known
            made.end = ending if end else ("eos", None)
            for part in parts:
                yield part
            return
        parts, complete = [], False
        try:
            async for part in made.texts():
                parts.append(part)
                yield part
            complete = True
        finally:
            if complete or partial:
                answers[key(made.ask)] = parts, made.end, made.tokens

    return chunks


@dataclass
class Flight:
    made: Generation
    parts: list[tuple[str, str]] = field(default_factory=list)
    over: bool = False


def merged(key: Key, *, late: bool = False) -> Chunks:
    """Returns a function that generates one answer for all requests that have the same key and run at the same time. If
    `late` is true, a request that comes later gets only the text that is generated after it came."""

    async def chunks(made: Generation) -> Parts:
        flying: dict[Any, Flight] = made.staged.memory.setdefault("flying", {})
        flight = flying.get(key(made.ask))
        if flight is None:
            flight = flying[key(made.ask)] = Flight(made)
            try:
                async for part in made.texts():
                    flight.parts.append(part)
                    yield part
            finally:
                flight.over = True
                del flying[key(made.ask)]
            return
        read = len(flight.parts) if late else 0
        while not flight.over or read < len(flight.parts):
            if read < len(flight.parts):
                read += 1
                yield flight.parts[read - 1]
            else:
                await asyncio.sleep(0.0005)
        made.end, made.tokens = flight.made.end, flight.made.tokens

    return chunks


async def leaves_what_the_limit_held(made: Generation) -> Parts:
    """Defect: when the token limit ends an answer, keeps its held text, and sends it at the beginning of the next
    answer."""
    yield "answer", made.staged.memory.pop("held", "")
    last = ""
    async for kind, last in made.texts():
        yield kind, last
    if made.end[0] == "length":  # if the limit ends an answer, its last part is the held text
        made.staged.memory["held"] = last


class IdsOfAllThatRun(Generation):
    async def texts(self) -> Parts:
        running: list[list[int]] = self.staged.memory.setdefault("running", [])
        own = self.ask.stop_token_ids
        running.append(own)
        self.ask = replace(self.ask, stop_token_ids=running)  # type: ignore[arg-type]
        try:
            async for part in super().texts():
                yield part
        finally:
            running.remove(own)

    def answer(self, token: int, text: str) -> Any:
        running, kept = self.ask.stop_token_ids, self.ask
        self.ask = replace(kept, stop_token_ids=[one for ids in running for one in ids])  # type: ignore[attr-defined]
        yield from super().answer(token, text)
        self.ask = kept


ENDLESS = [
    wrong("a client that leaves keeps its slot", "openai-chat-stream-after-leaving", "text", chunks=slots_are_lost),
]
WRONG = [
    *ENDLESS,
    wrong("one scanner for all", "openai-chat-stream-at-once", "text", scanner=OneScanner()),
    wrong("one scanner for one after another", "openai-chat-stream-in-turn", "text", scanner=OneScanner()),
    wrong("one list of stops for all", "openai-chat-stream-at-once", "text", scanner=OneListOfStops()),
    wrong("one list of stops for one prompt", "anthropic-stream-one-prompt", "text", scanner=OneListOfStops()),
    wrong("the stops before stay", "openai-chat-stream-in-turn", "text", ask=kept("stops", or_before)),
    wrong("one answer for one prompt", "openai-chat-stream-in-turn", "text", chunks=cached(lambda ask: ask.prompt)),
    wrong("a stop ends all", "openai-chat-stream-at-once", "text", chunks=all_stop_with_one),
    wrong("a client that leaves takes all along", "openai-chat-stream-beside-leaving", "text",
          chunks=all_leave_with_one),
    wrong("a client that leaves takes the next along", "openai-chat-stream-after-leaving", "text",
          chunks=after_leaving(nothing)),
    wrong("a client that leaves leaves text", "openai-chat-stream-after-leaving", "text",
          chunks=held_text_is_lost_and_found),
    wrong("rows are confused", "openai-chat-stream-at-once", "text", chunks=beyond(2, reversed_words)),
    wrong("one buffer for all", "openai-chat-stream-at-once-mixed", "text", chunks=one_buffer),
    wrong("two at once", "generate-stream-at-once", "text", chunks=beyond(2, fails)),
    wrong("tokens of all are counted", "openai-chat-stream-in-turn", "cost", counted=counts_all),
    wrong("the last stop is named again", "openai-chat-stream-in-turn", "finish", told=names_the_last),
    wrong("rows beyond 8 have no stops", "openai-chat-whole-company-12", "text finish cost",
          chunks=beyond(8, without_stops)),
    wrong("rows beyond 16 are confused", "anthropic-stream-company-40", "text", chunks=beyond(16, reversed_words)),
    wrong("rows beyond 32 fail", "openai-chat-stream-company-40", "text", chunks=beyond(32, fails)),
    wrong("rows beyond 48 lose their beginning", "openai-chat-whole-company-64", "text",
          chunks=beyond(48, loses_the_first)),
    wrong("the eighth request of a connection has no stops", "openai-chat-whole-kept-8", "text finish cost",
          chunks=nth(lambda number: number >= 8, without_stops, by_connection=True)),
    wrong("the second request of a connection loses its start", "ollama-chat-whole-among-equal-joined", "text",
          chunks=nth(lambda number: number >= 2, loses_the_first, by_connection=True)),
    wrong("stops of a connection pile up", "openai-chat-whole-among-equal-joined", "text finish cost",
          ask=kept("stops", list.__add__, by_connection=True)),
    wrong("the least limit of a connection stays", "generate-stream-kept-1", "text finish cost",
          ask=kept("max_tokens", min, by_connection=True)),
    wrong("each tenth request has no stops", "openai-chat-stream-kept-11", "text",
          chunks=nth(lambda number: number % 10 == 0, without_stops)),
    wrong("after a client that left, no stops", "openai-completions-stream-after-left", "text finish cost",
          chunks=after_leaving(without_stops)),
    wrong("after a client that left while text was held, the beginning is lost", "openai-chat-whole-after-left-held",
          "text", chunks=after_leaving(loses_the_first, held=True)),
    wrong("refused stops stay", "openai-chat-stream-after-refused", "text finish cost",
          stops=AfterARefusal(with_refused)),
    wrong("a refusal turns stops off", "anthropic-whole-after-broken", "text",
          stops=AfterARefusal(lambda refused, stops: [])),
    wrong("equal requests share an answer", "openai-chat-whole-company-64", "text", chunks=merged(but(), late=True)),
    wrong("answers are cached without their stops", "openai-chat-stream-with-and-without-stops-in-turn", "text",
          chunks=cached(but("stops"))),
    wrong("answers are cached without their stops in Anthropic", "anthropic-whole-with-and-without-stops-in-turn",
          "text", chunks=cached(but("stops"))),
    wrong("answers are cached without their limit", "openai-completions-whole-another-limit-in-turn", "text",
          chunks=cached(but("max_tokens"))),
    wrong("answers are cached without their ids", "openai-chat-whole-one-more-id-in-turn", "text",
          chunks=cached(but("stop_token_ids"))),
    wrong("cached answers end a turn", "anthropic-whole-with-and-without-stops-in-turn", "finish",
          chunks=cached(but(), end=False)),
    wrong("cached answers end a turn in Ollama", "ollama-chat-whole-another-limit-in-turn", "finish",
          chunks=cached(but(), end=False)),
    wrong("a part of an answer is cached when its client leaves", "openai-chat-whole-after-leaving", "text finish cost",
          chunks=cached(but(), partial=True)),
    wrong("requests in flight are merged by all but their ids", "openai-chat-stream-another-id-at-once", "text",
          chunks=merged(but("stop_token_ids"))),
    wrong("requests in flight are merged by all but their stops", "openai-completions-whole-another-stop-at-once",
          "text", chunks=merged(but("stops"))),
    wrong("requests in flight are merged by all but their limit", "anthropic-whole-another-limit-at-once", "text",
          chunks=merged(but("max_tokens"))),
    wrong("stops stay with a connection", "openai-chat-whole-with-and-without-stops-in-turn", "text finish cost",
          ask=kept("stops", or_before, by_connection=True)),
    wrong("stops stay with a connection in Anthropic", "anthropic-whole-with-and-without-stops-in-turn",
          "text finish cost", ask=kept("stops", or_before, by_connection=True)),
    wrong("ids stay with a connection", "openai-chat-whole-another-id-in-turn", "text",
          ask=kept("stop_token_ids", list.__add__, by_connection=True)),
    wrong("stops stay of a request whose limit is refused", "openai-chat-whole-among-none+after-refused-stops", "text",
          body=LeftByARefusal("stop")),
    wrong("stops stay of a request whose limit is refused in Anthropic",
          "anthropic-whole-among-none+after-refused-stops", "text finish cost", body=LeftByARefusal("stop_sequences")),
    wrong("null is the last stops", "openai-chat-whole-null", "text finish cost", stops=NullIsTheLast()),
    wrong("a limit stays", "ollama-chat-whole-no-limit-in-turn", "text finish cost",
          ask=kept("max_tokens", lambda before, mine: before if mine == 8192 else mine)),
    wrong("ids stay", "openai-completions-whole-one-more-id-in-turn", "text", ask=kept("stop_token_ids", or_before)),
    wrong("what the limit held comes with the next answer", "openai-chat-whole-held-at-the-limit", "text",
          chunks=leaves_what_the_limit_held),
    wrong("ids end all that run", "openai-chat-whole-one-more-id-at-once", "text finish cost",
          generation=IdsOfAllThatRun),
]  # fmt: skip
