"""Generates an answer: decodes and scans the tokens of the model, and separates the reasoning from the answer."""

from __future__ import annotations

import asyncio
import codecs
import time
from collections.abc import AsyncIterator, Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING
from uuid import uuid4

from stopscan import StopScanner, StopSet
from stopscan_conformance.reciter import THINKING, Reciter

if TYPE_CHECKING:
    from staged.app import Staged
    from staged.request import Ask

CHECKPOINT = Reciter()
PACE_SECONDS = 2e-3  # the wait for each token of the script "paced", whose streams are judged by their pace
STEP_SECONDS = 60e-6  # the wait for each token of the scripts in cases that compare the times of requests
PART_OF = {b"<think>": "reasoning", b"</think>": "answer"}
EOS = b""

Piece = tuple[int, bytes]


async def step(script: str, slower: int = 1) -> None:
    """Waits as long as a model takes to generate a token. Some cases compare the times of requests. For their scripts,
    the wait blocks the event loop, so that simultaneous answers slow each other down."""
    blocks = "stream" in script or script == "thought"
    await asyncio.sleep(PACE_SECONDS * (0 if blocks else slower if script == "paced" else slower - 1))
    end = time.perf_counter() + (STEP_SECONDS * slower if blocks else 0)
    while time.perf_counter() < end:
        pass


class Scanner:
    """The scanner of a correct server: stopscan's `StopScanner`, with only the methods that `Generation` needs."""

    def __init__(self, stops: list[str]) -> None:
        self._scanner = StopScanner(StopSet(stops, protect=[THINKING]))

    def feed(self, text: str) -> str:
        return self._scanner.feed(text)

    def flush(self) -> str:
        return self._scanner.flush()

    @property
    def match(self) -> str | None:
        return self._scanner.match and self._scanner.match.sequence


class Generation:
    """Generates one answer. A loop over the object yields the pieces of the text, each as `(kind, text)`. After the
    loop, `end` says why the answer ended, and `tokens` is the count of its tokens."""

    def __init__(self, staged: Staged, ask: Ask) -> None:
        self.staged = staged
        self.ask = ask
        self.tokens = 0
        self.spelled: list[str] = []  # the text of each token so far, for the log probabilities
        self.end: tuple[str, str | int | None] = ("eos", None)
        name = ask.prompt.rpartition("[")[2].removesuffix("]")
        self.script = name
        self.prompt_tokens = len(ask.prompt) - len(name) - 1
        self.scanner = staged.scanner(ask.stops)
        self.id = f"id-{uuid4().hex}"
        self.created = int(time.time())

    @cached_property
    def rows(self) -> list[Generation]:
        """All generations of the request: `ask.rows` of them for each prompt. `self` is the first."""
        asks = [replace(self.ask, prompt=prompt) for prompt in self.ask.prompts or [self.ask.prompt]]
        asks = [ask for ask in asks for _ in range(ask.rows)]
        return [self, *(type(self)(self.staged, ask) for ask in asks[1:])]

    @property
    def told(self) -> tuple[str, str | int | None]:
        return self.staged.told(self)

    @property
    def counted(self) -> int:
        return self.staged.counted(self)

    def pieces(self) -> Iterator[Piece]:
        ids = CHECKPOINT.token_ids(self.script)
        script = list(zip(ids, (CHECKPOINT.tokens[token] for token in ids), strict=True))
        return chain(script, repeat((CHECKPOINT.eos_token_id, EOS)))

    async def steps(self) -> AsyncIterator[Piece]:
        """Yields the model's tokens."""
        for piece in self.pieces():
            await step(self.script, self.ask.slower)
            self.tokens += 1
            self.spelled += [piece[1].decode(errors="replace")] if piece[1] else []
            yield piece

    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        """Yields the pieces of text as pairs. Each pair has the kind of the text ("answer" or "reasoning"), and then
        the text. Sets `end` to why the answer ended."""
        decoder = self.staged.decoder()
        kind = "answer"
        async for token, piece in self.steps():
            if piece == EOS:
                break
            if piece in PART_OF and self.ask.apart:
                yield kind, decoder.decode(b"", True) + (self.scanner.flush() if kind == "answer" else "")
                kind = PART_OF[piece]
            elif kind == "reasoning":
                yield kind, decoder.decode(piece)
            else:
                for text in self.answer(token, decoder.decode(piece)):
                    yield kind, text
                if self.end[0] != "eos":
                    return
            if self.tokens == self.ask.max_tokens:
                self.end = ("length", None)
                break
        yield kind, self.scanner.feed(decoder.decode(b"", True)) + self.scanner.flush()

    def answer(self, token: int, text: str) -> Iterator[str]:
        """Yields the text that a token adds to the answer. Sets `end` if the token ends the answer."""
        stops_here = token in self.ask.stop_token_ids
        before = deepcopy(self.scanner) if stops_here else self.scanner
        out = self.scanner.feed(text)
        if self.scanner.match is not None:
            self.end = ("stop_sequence", self.scanner.match)
        elif stops_here:
            self.end = ("stop_token", token)
            out = before.flush()
        yield out

    async def __aiter__(self) -> AsyncIterator[tuple[str, str]]:
        async for kind, text in self.staged.chunks(self):
            if text:
                yield kind, text


def right_decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="replace")


def joined_bursts(count: int) -> Callable[[Generation], AsyncIterator[tuple[str, str]]]:
    """Returns a function that sends the text of `count` tokens in one chunk, as happens with speculative decoding or a
    slow connection."""

    async def chunks(made: Generation) -> AsyncIterator[tuple[str, str]]:
        waiting: list[tuple[str, str]] = []
        async for part in made.texts():
            if waiting and (len(waiting) == count or waiting[0][0] != part[0]):
                yield waiting[0][0], "".join(text for _, text in waiting)
                waiting = []
            waiting.append(part)
        if waiting:
            yield waiting[0][0], "".join(text for _, text in waiting)

    return chunks
