"""What one request leaves for others: answers that are cached or merged, stops that stay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from staged.app import Staged
from staged.faults.fault import Asked, fault
from staged.generation import Generation
from staged.request import Ask, right_stops

Parts = AsyncIterator[tuple[str, str]]
Key = Callable[[Ask], Any]


def but(*names: str) -> Key:
    """What tells requests apart, without these."""
    fields = [name for name in ("prompt", "stops", "stop_token_ids", "max_tokens", "stream") if name not in names]
    return lambda ask: str([getattr(ask, name) for name in fields])


def cached(key: Key, *, partial: bool = False, end: bool = True) -> Callable[[Generation], Parts]:
    """Answers are cached by `key`; if `partial`, also those whose client went away; without their end, if not `end`."""

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


def merged(key: Key) -> Callable[[Generation], Parts]:
    """A request with the key of one that is running gets its answer."""

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
        read = 0
        while not flight.over or read < len(flight.parts):
            if read < len(flight.parts):
                read += 1
                yield flight.parts[read - 1]
            else:
                await asyncio.sleep(0.0005)
        made.end, made.tokens = flight.made.end, flight.made.tokens

    return chunks


class StopsStayWithAConnection(Generation):
    """For a request that has none."""

    def __init__(self, staged: Staged, ask: Ask) -> None:
        known = staged.memory.setdefault("stops", {})
        known[ask.client] = ask.stops or known.get(ask.client, [])
        super().__init__(staged, replace(ask, stops=known[ask.client]))


class AConnectionAddsIds(Generation):
    def __init__(self, staged: Staged, ask: Ask) -> None:
        known = staged.memory.setdefault("ids", {})
        known[ask.client] = [*known.get(ask.client, []), *ask.stop_token_ids]
        super().__init__(staged, replace(ask, stop_token_ids=known[ask.client]))


class LeftByARefusal:
    """A request that is refused for its limit or its temperature leaves its stops to the next that has none."""

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


class NullIsTheLast:
    """`stop: null` means the stops of the request before."""

    def __init__(self) -> None:
        self.last: list[str] = []

    def __call__(self, given: Any) -> list[str]:
        if given is not None:
            self.last = right_stops(given)
        return self.last


class LimitStays:
    """For a request that names none."""

    def __init__(self) -> None:
        self.last = 8192

    def __call__(self, ask: Ask) -> Ask:
        if ask.max_tokens != 8192:
            self.last = ask.max_tokens
        return replace(ask, max_tokens=self.last)


class IdsStay:
    """For a request that names none."""

    def __init__(self) -> None:
        self.last: list[int] = []

    def __call__(self, ask: Ask) -> Ask:
        self.last = ask.stop_token_ids or self.last
        return replace(ask, stop_token_ids=self.last)


async def leaves_what_the_limit_held(made: Generation) -> Parts:
    """To the next request."""
    yield "answer", made.staged.memory.pop("held", "")
    last = ""
    async for kind, last in made.texts():
        yield kind, last
    if made.end[0] == "length":  # then the last part is what was held
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


GHOSTS: set[asyncio.Task[None]] = set()


async def generates_for_who_left_the_queue(made: Generation) -> Parts:
    """One at a time; a request whose client leaves while it waits is answered all the same."""
    lock: asyncio.Lock = made.staged.memory.setdefault("lock", asyncio.Lock())

    async def ghost() -> None:
        async with lock:
            async for _, piece in made.steps():
                if not piece:
                    return

    try:
        await lock.acquire()
    except asyncio.CancelledError:
        task = asyncio.create_task(ghost())
        GHOSTS.add(task)
        task.add_done_callback(GHOSTS.discard)
        raise
    try:
        async for part in made.texts():
            yield part
    finally:
        lock.release()


BARE, AT_5 = Asked(), Asked(stop=["5"])
LEFT = Asked("late", stream=True, leaves=3)
REFUSED = Asked(stop=["5"], limit=0)

FAULTS = [
    fault("answers are cached without their stops", "documented", "openai-chat", AT_5, BARE,
          chunks=cached(but("stops"))),
    fault("answers are cached without their stops in Anthropic", "documented", "anthropic", BARE, AT_5,
          chunks=cached(but("stops"))),
    fault("answers are cached without their limit", "documented", "openai-completions", Asked(limit=3), BARE,
          chunks=cached(but("max_tokens"))),
    fault("answers are cached without their ids", "usual", "openai-chat", Asked(ids=("5",)), BARE,
          chunks=cached(but("stop_token_ids"))),
    fault("cached answers end a turn", "documented", "anthropic", AT_5, AT_5, chunks=cached(but(), end=False)),
    fault("cached answers end a turn in Ollama", "documented", "ollama-chat", Asked(limit=3), Asked(limit=3),
          chunks=cached(but(), end=False)),
    fault("a part of an answer is cached when its client leaves", "documented", "openai-chat",
          LEFT, Asked("late", stream=True), chunks=cached(but(), partial=True)),
    fault("requests in flight are merged by all but their ids", "usual", "openai-chat",
          Asked("late"), Asked("late", ids=(" fox",)), together=True, chunks=merged(but("stop_token_ids"))),
    fault("requests in flight are merged by all but their stops", "documented", "openai-completions",
          Asked("late"), Asked("late", stop=["fox"]), together=True, chunks=merged(but("stops"))),
    fault("requests in flight are merged by all but their limit", "documented", "anthropic",
          Asked("late"), Asked("late", limit=3), together=True, chunks=merged(but("max_tokens"))),
    fault("stops stay with a connection", "documented", "openai-chat", AT_5, BARE,
          generation=StopsStayWithAConnection),
    fault("stops stay with a connection in Anthropic", "documented", "anthropic", AT_5, BARE,
          generation=StopsStayWithAConnection),
    fault("ids stay with a connection", "usual", "openai-chat", Asked(ids=("5",)), BARE,
          generation=AConnectionAddsIds),
    fault("stops stay of a request whose limit is refused", "documented", "openai-chat", REFUSED, BARE,
          body=LeftByARefusal("stop")),
    fault("stops stay of a request whose limit is refused in Anthropic", "documented", "anthropic", REFUSED, BARE,
          body=LeftByARefusal("stop_sequences")),
    fault("null is the last stops", "documented", "openai-chat", AT_5, Asked(stop=None), stops=NullIsTheLast()),
    fault("a limit stays", "documented", "ollama-chat", Asked(limit=3), Asked(limit=None), ask=LimitStays()),
    fault("ids stay", "usual", "openai-completions", Asked(ids=("5",)), BARE, ask=IdsStay()),
    fault("what the limit held comes with the next answer", "documented", "openai-chat",
          Asked("held", stop=["STOP"], limit=5), BARE, chunks=leaves_what_the_limit_held),
    fault("ids end all that run", "usual", "openai-chat", Asked("late"), Asked("late", ids=(" fox",)), together=True,
          generation=IdsOfAllThatRun),
    fault("who left the queue is answered", "advice", "openai-chat", chunks=generates_for_who_left_the_queue),
]  # fmt: skip
