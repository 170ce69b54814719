"""When text comes, and what goes on that nobody reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from staged.defects.costs import GoesOnUncounted
from staged.dimensions.mutant import Around, mutant
from staged.generation import Generation

Parts = AsyncIterator[tuple[str, str]]


async def replayed(made: Generation) -> Parts:
    """All is generated, then sent as if it came just now."""
    for part in [part async for part in made.texts()]:
        await asyncio.sleep(0)
        yield part


async def replayed_slowly(made: Generation) -> Parts:
    began = time.perf_counter()
    parts = [part async for part in made.texts()]
    pause = (time.perf_counter() - began) / max(1, len(parts))
    for part in parts:
        yield part
        await asyncio.sleep(pause)


def bursts(full: Callable[[list[tuple[str, str]], float], bool]) -> Callable[[Generation], Parts]:
    """Sends what waits when there is enough of it, or it has waited long enough."""

    async def chunks(made: Generation) -> Parts:
        waiting: list[tuple[str, str]] = []
        since = time.perf_counter()
        async for part in made.texts():
            waiting.append(part)
            if full(waiting, time.perf_counter() - since):
                for one in waiting:
                    yield one
                waiting, since = [], time.perf_counter()
        for one in waiting:
            yield one

    return chunks


def joined_bursts(count: int) -> Callable[[Generation], Parts]:
    """So many tokens in a chunk."""

    async def chunks(made: Generation) -> Parts:
        waiting: list[tuple[str, str]] = []
        async for part in made.texts():
            if waiting and (len(waiting) == count or waiting[0][0] != part[0]):
                yield waiting[0][0], "".join(text for _, text in waiting)
                waiting = []
            waiting.append(part)
        if waiting:
            yield waiting[0][0], "".join(text for _, text in waiting)

    return chunks


def delayed(count: int) -> Callable[[Generation], Parts]:
    """Each token's text comes so many tokens later."""

    async def chunks(made: Generation) -> Parts:
        waiting: list[tuple[str, str]] = []
        async for part in made.texts():
            waiting.append(part)
            if len(waiting) > count:
                yield waiting.pop(0)
        for one in waiting:
            yield one

    return chunks


class GivesUp(Around):
    """What was held for so many tokens is sent, although it may become a stop."""

    limit = 24

    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops)
        self.waiting = 0

    def read(self, text: str) -> str:
        out = self.inner.feed(text)
        self.waiting = 0 if out or not text else self.waiting + 1
        return out + self.restart() if self.waiting > self.limit and self.match is None else out


class GivesUpSoon(GivesUp):
    limit = 6


class GivesUpInTime(Around):
    seconds = 0.0005

    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops)
        self.since = time.perf_counter()

    def read(self, text: str) -> str:
        out = self.inner.feed(text)
        now = time.perf_counter()
        if out:
            self.since = now
        elif now - self.since > self.seconds and self.match is None:
            return self.restart()
        return out


class LateAfterAHold(Around):
    """What turns out to be no stop comes with the next token."""

    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops)
        self.owed = ""
        self.held = False

    def read(self, text: str) -> str:
        out = self.inner.feed(text)
        owed, self.owed = self.owed, ""
        if self.held and out and self.match is None:
            out, self.owed = "", out
        self.held = not out and not self.owed
        return owed + out

    def flush(self) -> str:
        return self.owed + self.inner.flush()


class GoesOnAfterTheSecond(GoesOnUncounted):
    """Stop of the list; the first ends the generation."""

    async def rest(self) -> None:
        if self.end[1] != self.ask.stops[0]:
            await super().rest()


class GoesOnIfHeld(Generation):
    """For a client that went away while text was held."""

    async def texts(self) -> Parts:
        ended = False
        try:
            async for part in super().texts():
                yield part
            ended = True
        finally:
            if not ended and self.scanner.flush():
                _go_on(self)


class GoesOnInReasoning(Generation):
    """For a client that went away before the answer began."""

    async def texts(self) -> Parts:
        ended, last = False, ""
        try:
            async for part in super().texts():
                last = part[0] if part[1] else last
                yield part
            ended = True
        finally:
            if not ended and last == "reasoning":
                _go_on(self)


TASKS: set[asyncio.Task[None]] = set()


def _go_on(made: Generation) -> None:
    async def rest() -> None:
        async for _, piece in Generation(made.staged, made.ask).steps():
            if not piece:
                return

    task = asyncio.get_event_loop().create_task(rest())
    TASKS.add(task)
    task.add_done_callback(TASKS.discard)


async def late_end(made: Generation) -> Parts:
    """The last part waits."""
    before = None
    async for part in made.texts():
        if before:
            yield before
        before = part
    await asyncio.sleep(0.3)
    if before:
        yield before


def size(waiting: list[tuple[str, str]]) -> int:
    return sum(len(text.encode()) for _, text in waiting)


MUTANTS = [
    mutant("all is generated, then replayed", chunks=replayed),
    mutant("all is generated, then replayed in Ollama", "ollama-chat", chunks=replayed),
    mutant("all is generated, then replayed slowly", chunks=replayed_slowly),
    mutant("all is generated, then replayed slowly in Anthropic", "anthropic", chunks=replayed_slowly),
    mutant("bursts of 24 tokens", chunks=bursts(lambda waiting, _: len(waiting) >= 24)),
    mutant("bursts of 40 tokens in sglang", "generate", chunks=bursts(lambda waiting, _: len(waiting) >= 40)),
    mutant("bursts of 512 bytes", "openai-completions", chunks=bursts(lambda waiting, _: size(waiting) >= 512)),
    mutant("bursts of 20 milliseconds", chunks=bursts(lambda _, waited: waited > 0.02)),
    mutant("chunks of 24 tokens", chunks=joined_bursts(24)),
    mutant("chunks of 16 tokens in Responses", "responses-with-stop", chunks=joined_bursts(16)),
    mutant("each token comes 3 tokens later", chunks=delayed(3)),
    mutant("each token comes 8 tokens later in completions", "openai-completions", chunks=delayed(8)),
    mutant("each token comes 24 tokens later", chunks=delayed(24)),
    mutant("each token comes 40 tokens later in Anthropic", "anthropic", chunks=delayed(40)),
    mutant("what was held for 24 tokens is sent", scanner=GivesUp),
    mutant("what was held for 6 tokens is sent", "anthropic", scanner=GivesUpSoon),
    mutant("what was held for some time is sent", scanner=GivesUpInTime),
    mutant("after a hold text comes a token late", scanner=LateAfterAHold),
    mutant("generation goes on after the second of two stops", generation=GoesOnAfterTheSecond),
    mutant("generation goes on for who left while text was held", generation=GoesOnIfHeld),
    mutant("generation goes on for who left in the reasoning", generation=GoesOnInReasoning),
    mutant("the last text waits", chunks=late_end),
]  # fmt: skip
