"""The right answer, and work that nobody reads; or a wrong count of the work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import ClassVar

from staged.defects.defect import wrong
from staged.generation import Generation


class GoesOn(Generation):
    """To EOS or the limit, and counts it."""

    limit = 2000

    async def rest(self) -> None:
        async for _, piece in self.steps():
            if not piece or self.tokens >= min(self.ask.max_tokens, self.limit):
                return

    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        async for part in super().texts():
            yield part
        if self.end[0] == "stop_sequence":
            await self.rest()


class GoesOnUncounted(GoesOn):
    async def rest(self) -> None:
        tokens = self.tokens
        await super().rest()
        self.tokens = tokens


class GoesOnInTheBackground(GoesOn):
    tasks: ClassVar[set[asyncio.Task[None]]] = set()

    async def rest(self) -> None:
        other = GoesOn(self.staged, self.ask)
        task = asyncio.create_task(other.rest())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class LooksEveryEight(GoesOn):
    async def rest(self) -> None:
        async for _ in self.steps():
            if self.tokens % 8 == 0:
                return


async def all_first(made: Generation) -> AsyncIterator[tuple[str, str]]:
    for part in [part async for part in made.texts()]:
        yield part


DEFECTS = [
    wrong("generation goes on after the stop", "split", "cost", generation=GoesOn),
    wrong(
        "generation goes on after the stop of an answer", "split", "cost", "anthropic", whole=True, generation=GoesOn
    ),
    wrong("generation goes on, uncounted", "cost-of-a-stop", "cost", generation=GoesOnUncounted),
    wrong(
        "generation goes on, uncounted, for an answer", "cost-of-a-stop", "cost", whole=True, generation=GoesOnUncounted
    ),
    wrong("generation goes on in the background", "cost-after-stops", "cost", generation=GoesOnInTheBackground),
    wrong(
        "generation goes on in the background of an answer",
        "cost-after-stops",
        "cost",
        "generate",
        whole=True,
        generation=GoesOnInTheBackground,
    ),
    wrong("stops are looked for every eight tokens", "split", "cost", generation=LooksEveryEight),
    wrong("generation goes on without a reader", "cost-after-leaving", "cost", on_leaving="go on"),
    wrong("generation goes on without a client", "cost-after-leaving", "cost", whole=True, on_leaving="go on"),
    wrong(
        "generation goes on without a reader in Ollama", "cost-after-leaving", "cost", "ollama-chat", on_leaving="go on"
    ),
    wrong("all is generated before the first event", "cost-of-the-first-text", "late", chunks=all_first),
    wrong(
        "all is generated before the first line", "cost-of-the-first-text", "late", "ollama-generate", chunks=all_first
    ),
    wrong("one token too many is counted", "split", "cost", counted=lambda made: made.tokens + 1),
    wrong(
        "the stop's tokens are not counted",
        "three-tokens",
        "cost",
        "responses-with-stop",
        counted=lambda made: made.tokens - 3,
    ),
    wrong("the prompt is counted", "split", "cost", "generate", counted=lambda made: made.tokens + made.prompt_tokens),
    wrong("nothing is counted", "split", "cost", "anthropic", counted=lambda made: 0),
    wrong("the limit is counted", "split", "cost", "ollama-chat", counted=lambda made: made.ask.max_tokens),
    wrong("pieces of text are counted", "half-characters", "cost", counted=lambda made: made.tokens - 1),
]
