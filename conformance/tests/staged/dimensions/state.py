"""What requests share: many at once, a connection that is kept, what ended badly before."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from staged.app import Staged
from staged.dimensions.mutant import mutant
from staged.generation import Generation
from staged.request import Ask, Refusal, right_stops

Parts = AsyncIterator[tuple[str, str]]


@dataclass
class Shared:
    """What all requests of a server find."""

    running: int = 0
    number: int = 0
    left: int = 0
    refused: list[str] = field(default_factory=list)
    on: Counter[Any] = field(default_factory=Counter)
    flying: dict[Any, list[tuple[str, str]]] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


def shared(made: Generation) -> Shared:
    found: Shared = made.staged.memory.setdefault("shared", Shared())
    return found


def beyond(count: int, then: Callable[[Generation], Parts]) -> Callable[[Generation], Parts]:
    """What happens with so many rows at once."""

    async def chunks(made: Generation) -> Parts:
        here = shared(made)
        here.running += 1
        try:
            async for part in then(made) if here.running > count else made.texts():
                yield part
        finally:
            here.running -= 1

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


def each_nth(count: int, then: Callable[[Generation], Parts], *, of: str = "server") -> Callable[[Generation], Parts]:
    """What happens to each nth request, of the server or of a connection."""

    async def chunks(made: Generation) -> Parts:
        here = shared(made)
        key = made.ask.client if of == "connection" else "all"
        here.on[key] += 1
        async for part in then(made) if here.on[key] % count == 0 else made.texts():
            yield part

    return chunks


def from_nth(count: int, then: Callable[[Generation], Parts]) -> Callable[[Generation], Parts]:
    """What happens from the nth request of a connection on."""

    async def chunks(made: Generation) -> Parts:
        here = shared(made)
        here.on[made.ask.client] += 1
        async for part in then(made) if here.on[made.ask.client] >= count else made.texts():
            yield part

    return chunks


def after_leaving(then: Callable[[Generation], Parts], *, held: bool = False) -> Callable[[Generation], Parts]:
    """What happens to the request after one whose client went away; with `held`, while text was held."""

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


class RefusedStopsStay:
    """A request that was refused leaves its stops to the next."""

    def __init__(self) -> None:
        self.left: list[str] = []

    def __call__(self, given: Any) -> list[str]:
        owed, self.left = self.left, []
        try:
            return [*owed, *right_stops(given)]
        except Refusal:
            self.left = [stop for stop in given if stop and isinstance(stop, str)] if isinstance(given, list) else []
            raise


class RefusalsTurnOff:
    """After a request that was refused, the next one has no stops."""

    def __init__(self) -> None:
        self.off = False

    def __call__(self, given: Any) -> list[str]:
        try:
            stops = right_stops(given)
        except Refusal:
            self.off = True
            raise
        off, self.off = self.off, self.off and not stops
        return [] if off else stops


async def equal_ones_share(made: Generation) -> Parts:
    """A request like one that is running gets what that has still to say."""
    here = shared(made)
    key = (made.ask.prompt, tuple(made.ask.stops), made.ask.max_tokens)
    if key in here.flying:
        async for part in made.texts():
            if part[1] and not (owed := here.flying.get(key, [])):
                yield part
            elif owed:
                owed.pop()
        return
    here.flying[key] = [("", "")] * 3
    try:
        async for part in made.texts():
            yield part
    finally:
        here.flying.pop(key, None)


async def equal_prompts_share_a_scanner(made: Generation) -> Parts:
    here = shared(made)
    key = made.ask.prompt
    if (key, 0) in here.flying:
        made.scanner = here.flying[key, 0][0][1]  # type: ignore[assignment]
    else:
        here.flying[key, 0] = [("scanner", made.scanner)]  # type: ignore[list-item]
    try:
        async for part in made.texts():
            yield part
    finally:
        here.flying.pop((key, 0), None)


class StreamsOnAKeptConnection(Generation):
    """A scanner for each connection: what was held is there for the next request."""

    def __init__(self, staged: Staged, ask: Ask) -> None:
        super().__init__(staged, ask)
        known = staged.memory.setdefault("stops", {})
        known[ask.client] = known.get(ask.client, []) + ask.stops
        self.scanner = staged.scanner(known[ask.client])


class LastLimitOfTheConnection(Generation):
    def __init__(self, staged: Staged, ask: Ask) -> None:
        known = staged.memory.setdefault("limits", {})
        least = known[ask.client] = min(ask.max_tokens, known.get(ask.client, 10**6))
        super().__init__(staged, replace(ask, max_tokens=least))


MUTANTS = [
    mutant("rows beyond 8 have no stops", chunks=beyond(8, without_stops)),
    mutant("rows beyond 16 are confused", "anthropic", chunks=beyond(16, reversed_words)),
    mutant("rows beyond 32 fail", chunks=beyond(32, fails)),
    mutant("rows beyond 48 lose their beginning", chunks=beyond(48, loses_the_first)),
    mutant("the eighth request of a connection has no stops", chunks=from_nth(8, without_stops)),
    mutant("the second request of a connection loses its start", "ollama-chat", chunks=from_nth(2, loses_the_first)),
    mutant("stops of a connection pile up", generation=StreamsOnAKeptConnection),
    mutant("the least limit of a connection stays", "generate", generation=LastLimitOfTheConnection),
    mutant("each tenth request has no stops", chunks=each_nth(10, without_stops)),
    mutant("after a client that left, no stops", "openai-completions", chunks=after_leaving(without_stops)),
    mutant("after a client that left while text was held, the beginning is lost",
           chunks=after_leaving(loses_the_first, held=True)),
    mutant("refused stops stay", stops=RefusedStopsStay()),
    mutant("a refusal turns stops off", "anthropic", stops=RefusalsTurnOff()),
    mutant("equal requests share an answer", chunks=equal_ones_share),
    mutant("equal prompts share a scanner", chunks=equal_prompts_share_a_scanner),
]  # fmt: skip
