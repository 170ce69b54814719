"""Wrong servers that send the right text too late or too early, keep generating when no client reads the answer, or
count the tokens wrongly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from staged.generation import Generation, joined_bursts
from staged.scanners import Around, Make, Simple, holding
from staged.wrong.table import Parts, wrong

Chunks = Callable[[Generation], Parts]


def before_a_first_letter(one: Simple) -> int:
    waiting = one.text[one.sent :]
    begins = [waiting.find(stop[0]) for stop in one.stops if stop[0] in waiting]
    return len(waiting) - min(begins, default=len(waiting))


def cut(at: Callable[[str], int]) -> Chunks:
    """Returns a function that collects the text that is not sent yet. After each part of the answer, it sends the first
    `at(text)` characters of the collected text, and keeps the rest."""

    async def chunks(made: Generation) -> Parts:
        waiting, last = "", "answer"
        async for kind, text in made.texts():
            if kind != last and waiting:
                yield last, waiting
                waiting = ""
            waiting, last = waiting + text, kind
            end = at(waiting)
            yield kind, waiting[:end]
            waiting = waiting[end:]
        yield last, waiting

    return chunks


TASKS: set[asyncio.Task[None]] = set()


def go_on(made: Generation, lock: AbstractAsyncContextManager[Any] = nullcontext()) -> None:  # noqa: B008
    """Defect: generates the same answer again in the background. Nobody reads it."""

    async def rest() -> None:
        async with lock:
            async for _, piece in Generation(made.staged, made.ask).steps():
                if not piece:
                    return

    task = asyncio.get_event_loop().create_task(rest())
    TASKS.add(task)
    task.add_done_callback(TASKS.discard)


class GoesOn(Generation):
    """Defect: keeps generating after a stop, until EOS or the limit, and counts these tokens."""

    limit = 2000

    async def rest(self) -> None:
        async for _, piece in self.steps():
            if not piece or self.tokens >= min(self.ask.max_tokens, self.limit):
                return

    async def texts(self) -> Parts:
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
    async def rest(self) -> None:
        go_on(self)


class LooksEveryEight(GoesOn):
    async def rest(self) -> None:
        async for _ in self.steps():
            if self.tokens % 8 == 0:
                return


async def all_first(made: Generation) -> Parts:
    """Defect: generates the whole answer first, and then sends its parts as if they had just been generated."""
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


def bursts(full: Callable[[list[tuple[str, str]], float], bool]) -> Chunks:
    """Returns a function that collects parts of the answer. It sends all of them when `full(parts, seconds)` is true,
    where `seconds` is the time since it last sent parts."""

    async def chunks(made: Generation) -> Parts:
        waiting: list[tuple[str, str]] = []
        since = time.perf_counter()
        async for part in made.texts():
            waiting.append(part)
            if full(waiting, (time.perf_counter() - since) / made.ask.slower):
                for one in waiting:
                    yield one
                waiting, since = [], time.perf_counter()
        for one in waiting:
            yield one

    return chunks


def rest_at_once(after: int) -> Chunks:
    """Returns a function that sends `after` pieces of text as they come. It sends all later text as one piece, at the
    end."""

    async def chunks(made: Generation) -> Parts:
        number, rest = 0, ""
        async for kind, text in made.texts():
            number += bool(text)
            if number <= after:
                yield kind, text
            else:
                rest += text
        yield "answer", rest

    return chunks


def delayed(count: int) -> Chunks:
    """Returns a function that sends each token's text `count` tokens late."""

    async def chunks(made: Generation) -> Parts:
        waiting: list[tuple[str, str]] = []
        async for part in made.texts():
            waiting.append(part)
            if len(waiting) > count:
                yield waiting.pop(0)
        for one in waiting:
            yield one

    return chunks


def gives_up(limit: int) -> Make:
    """Makes scanners that hold text for at most `limit` tokens, and then send it, although it may still become a
    stop."""

    class GivesUp(Around):
        waiting = 0

        def read(self, text: str) -> str:
            out = self.inner.feed(text)
            self.waiting = 0 if out or not text else self.waiting + 1
            return out + self.restart() if self.waiting > limit and self.match is None else out

    return GivesUp


class LateAfterAHold(Around):
    """Defect: when held text turns out not to be a stop, sends it one token too late."""

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
    """Defect: keeps generating after a stop, unless the stop is the first in the request's list."""

    async def rest(self) -> None:
        if self.end[1] != self.ask.stops[0]:
            await super().rest()


def goes_on_if(which: Callable[[Generation, str], Any]) -> Chunks:
    """Returns a function that keeps generating when the client leaves, if `which(generation, last)` is true. `last` is
    the kind of the text that was sent last: "answer" or "reasoning"."""

    async def chunks(made: Generation) -> Parts:
        ended, last = False, ""
        try:
            async for part in made.texts():
                last = part[0] if part[1] else last
                yield part
            ended = True
        finally:
            if not ended and which(made, last):
                go_on(made)

    return chunks


def goes_on_by_its_own_clock(made: Generation) -> None:
    """Defect: keeps generating after the client has left, with pauses. The kit measures how long another answer takes
    meanwhile. If this answer comes during a pause, it takes no longer than usual, so one measurement may miss the
    defect."""

    async def rest() -> None:
        for burst in range(8):
            await asyncio.sleep(0.004 * made.ask.slower * (1 + (burst + TICKS[0]) % 3))
            end = time.perf_counter() + 0.012 * made.ask.slower
            while time.perf_counter() < end:
                pass

    TICKS[0] += 1
    task = asyncio.get_event_loop().create_task(rest())
    TASKS.add(task)
    task.add_done_callback(TASKS.discard)


TICKS = [0]


async def left_by_the_clock(made: Generation) -> Parts:
    ended = False
    try:
        async for part in made.texts():
            yield part
        ended = True
    finally:
        if not ended:
            goes_on_by_its_own_clock(made)


async def who_left_the_queue_is_answered(made: Generation) -> Parts:
    """Defect: answers one request at a time. If a client leaves while its request waits, still generates the answer."""
    lock: asyncio.Lock = made.staged.memory.setdefault("lock", asyncio.Lock())
    try:
        await lock.acquire()
    except asyncio.CancelledError:
        go_on(made, lock)
        raise
    try:
        async for part in made.texts():
            yield part
    finally:
        lock.release()


async def late_end(made: Generation) -> Parts:
    """Defect: sends the last part after a pause."""
    before = None
    async for part in made.texts():
        if before:
            yield before
        before = part
    await asyncio.sleep(0.3 * made.ask.slower)
    if before:
        yield before


def size(waiting: list[tuple[str, str]]) -> int:
    return sum(len(text.encode()) for _, text in waiting)


WRONG = [
    wrong("the longest stop less one is held", "openai-chat-stream-never-in-seventeen", "late",
          scanner=holding(lambda one: max(map(len, one.stops), default=1) - 1)),
    wrong("the longest stop less one is held, as in vLLM", "openai-completions-stream-long", "late",
          scanner=holding(lambda one: max(map(len, one.stops), default=1) - 1)),
    wrong("the longest stop is held", "anthropic-stream-long", "late",
          scanner=holding(lambda one: max(map(len, one.stops), default=0))),
    wrong("one character more is held", "responses-with-stop-stream-released", "late",
          scanner=holding(lambda one: Simple.hold(one) + 1 if one.stops else 0)),
    wrong("all is held while a stop may begin", "openai-chat-stream-streams-while-held", "late",
          scanner=holding(lambda one: len(one.text) - one.sent if Simple.hold(one) else 0)),
    wrong("all is held in a run", "ollama-chat-stream-streams-a-run", "late",
          scanner=holding(lambda one: len(one.text) - one.sent if Simple.hold(one) else 0)),
    wrong("letters of stops are held", "generate-stream-released", "late",
          scanner=holding(lambda one: len(one.text) - len(one.text.rstrip("".join(one.stops) or None)))),
    wrong("bytes are held for characters", "openai-chat-stream-wide", "late",
          scanner=holding(lambda one: len(one.text[len(one.text) - Simple.hold(one):].encode()))),
    wrong("all from a stop's first letter is held", "openai-chat-stream-released-in-part", "late",
          scanner=holding(before_a_first_letter)),
    wrong("stops that never fire are held for", "anthropic-stream-pruned", "late", scanner=Simple),
    wrong("with stops all is held", "openai-chat-stream-streams-with-a-stop", "late",
          scanner=holding(lambda one: len(one.text) - one.sent if one.stops else 0)),
    wrong("a first character is not held", "openai-chat-stream-streams-while-held", "late",
          scanner=holding(lambda one: Simple.hold(one) if Simple.hold(one) > 1 else 0)),
    wrong("more than four characters are not held", "openai-chat-stream-released", "late",
          scanner=holding(lambda one: min(Simple.hold(one), 4))),
    wrong("one chunk for all", "openai-chat-stream-streams", "late", chunks=cut(lambda waiting: 0)),
    wrong("one chunk for all in Anthropic", "anthropic-stream-streams", "late", chunks=cut(lambda waiting: 0)),
    wrong("one chunk for all in Responses", "responses-with-stop-stream-streams", "late",
          chunks=cut(lambda waiting: 0)),
    wrong("one chunk for all in Ollama", "ollama-generate-stream-streams", "late", chunks=cut(lambda waiting: 0)),
    wrong("one chunk for all in sglang", "generate-stream-streams", "late", chunks=cut(lambda waiting: 0)),
    wrong("the first piece and the rest", "openai-chat-stream-streams", "late", chunks=rest_at_once(1)),
    wrong("words", "openai-chat-stream-streams", "late", chunks=cut(lambda waiting: waiting.rfind(" ") + 1)),
    wrong("lines", "openai-chat-stream-streams", "late", chunks=cut(lambda waiting: waiting.rfind("\n") + 1)),
    wrong("sentences", "generate-stream-streams", "late", chunks=cut(lambda waiting: waiting.rfind(". ") + 1)),
    wrong("ten characters each", "openai-chat-stream-streams", "late",
          chunks=cut(lambda waiting: len(waiting) // 10 * 10)),
    wrong("generation goes on after the stop", "openai-chat-stream-split", "cost", generation=GoesOn),
    wrong("generation goes on after the stop of an answer", "anthropic-whole-split", "cost", generation=GoesOn),
    wrong("generation goes on, uncounted", "openai-chat-stream-cost-of-a-stop", "cost", generation=GoesOnUncounted),
    wrong("generation goes on, uncounted, for an answer", "openai-chat-whole-cost-of-a-stop", "cost",
          generation=GoesOnUncounted),
    wrong("generation goes on in the background", "openai-chat-stream-cost-for-the-next", "cost",
          generation=GoesOnInTheBackground),
    wrong("generation goes on in the background of an answer", "generate-whole-cost-for-the-next", "cost",
          generation=GoesOnInTheBackground),
    wrong("stops are looked for every eight tokens", "openai-chat-stream-split", "cost", generation=LooksEveryEight),
    wrong("generation goes on without a reader", "openai-chat-stream-cost-for-the-next", "cost", on_leaving="go on"),
    wrong("generation goes on without a client", "openai-chat-whole-cost-for-the-next", "cost", on_leaving="go on"),
    wrong("generation goes on without a reader in Ollama", "ollama-chat-stream-cost-for-the-next", "cost",
          on_leaving="go on"),
    wrong("one token too many is counted", "openai-chat-stream-split", "cost", counted=lambda made: made.tokens + 1),
    wrong("the stop's tokens are not counted", "responses-with-stop-stream-three-tokens", "cost",
          counted=lambda made: made.tokens - 3),
    wrong("the prompt is counted", "generate-stream-split", "cost",
          counted=lambda made: made.tokens + made.prompt_tokens),
    wrong("nothing is counted", "anthropic-stream-split", "cost", counted=lambda made: 0),
    wrong("the limit is counted", "ollama-chat-stream-split", "cost", counted=lambda made: made.ask.max_tokens),
    wrong("pieces of text are counted", "openai-chat-stream-half-characters", "cost",
          counted=lambda made: made.tokens - 1),
    wrong("all is generated, then replayed", "openai-chat-stream-pace", "late", chunks=all_first),
    wrong("all is generated, then replayed in Ollama", "ollama-chat-stream-pace", "late", chunks=all_first),
    wrong("all is generated, then replayed slowly", "openai-chat-stream-pace-with-stops", "late",
          chunks=replayed_slowly),
    wrong("all is generated, then replayed slowly in Anthropic", "anthropic-stream-pace-with-stops", "late",
          chunks=replayed_slowly),
    wrong("bursts of 24 tokens", "openai-chat-stream-pace-while-held", "late",
          chunks=bursts(lambda waiting, _: len(waiting) >= 24)),
    wrong("bursts of 40 tokens in sglang", "generate-stream-pace", "late",
          chunks=bursts(lambda waiting, _: len(waiting) >= 40)),
    wrong("bursts of 512 bytes", "openai-completions-stream-pace", "late",
          chunks=bursts(lambda waiting, _: size(waiting) >= 512)),
    wrong("bursts of 30 milliseconds", "openai-chat-stream-pace-with-stops", "late",
          chunks=bursts(lambda _, waited: waited > 0.03)),
    wrong("chunks of 24 tokens", "openai-chat-stream-pace", "late", chunks=joined_bursts(24)),
    wrong("chunks of 16 tokens in Responses", "responses-with-stop-stream-pace", "late", chunks=joined_bursts(16)),
    wrong("each token comes 5 tokens later", "openai-chat-stream-pace", "late", chunks=delayed(5)),
    wrong("each token comes 8 tokens later in completions", "openai-completions-stream-pace", "late",
          chunks=delayed(8)),
    wrong("each token comes 24 tokens later", "openai-chat-stream-pace", "late", chunks=delayed(24)),
    wrong("each token comes 40 tokens later in Anthropic", "anthropic-stream-pace", "late", chunks=delayed(40)),
    wrong("what was held for 24 tokens is sent", "openai-chat-stream-length-140", "text", scanner=gives_up(24)),
    wrong("what was held for 6 tokens is sent", "anthropic-stream-length-30", "text", scanner=gives_up(6)),
    wrong("after a hold text comes a token late", "openai-chat-stream-pace-while-held", "late", scanner=LateAfterAHold),
    wrong("generation goes on after the second of two stops", "openai-chat-stream-cost-of-a-stop", "cost",
          generation=GoesOnAfterTheSecond),
    wrong("generation goes on for who left while text was held", "openai-chat-stream-cost-for-the-next", "cost",
          chunks=goes_on_if(lambda made, last: made.scanner.flush())),
    wrong("generation goes on for who left in the reasoning", "openai-chat-stream-cost-for-the-next", "cost",
          chunks=goes_on_if(lambda made, last: last == "reasoning")),
    wrong("the last text waits", "openai-chat-stream-pace", "late", chunks=late_end),
    wrong("the rest comes at once after 200 pieces", "openai-chat-stream-pace", "late", chunks=rest_at_once(200)),
    wrong("the rest comes at once after 64 pieces in Anthropic", "anthropic-stream-streams", "late",
          chunks=rest_at_once(64)),
    wrong("generation goes on by its own clock", "openai-chat-stream-cost-for-the-next", "cost",
          chunks=left_by_the_clock),
    wrong("who left the queue is answered", "openai-chat-whole-cost-for-the-next", "cost",
          chunks=who_left_the_queue_is_answered),
]  # fmt: skip
