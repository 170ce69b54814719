"""Where a stop, a half character or held text lies."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Iterator
from functools import cached_property
from itertools import takewhile

from staged.dimensions.mutant import Around, Make, mutant
from staged.generation import EOS, Generation, Piece


def only_first(*, tokens: int = 10**9, characters: int = 10**9) -> Make:
    """What comes later is not scanned."""

    class OnlyFirst(Around):
        def read(self, text: str) -> str:
            if self.tokens < tokens and self.characters < characters:
                return self.inner.feed(text)
            return self.restart() + text

    return OnlyFirst


def anew_every(*, tokens: int = 0, characters: int = 0, loses: bool = False) -> Make:
    """A stop across a border is not found; with `loses`, what was held there is gone."""

    class AnewEvery(Around):
        def read(self, text: str) -> str:
            before, after = text, ""
            if tokens and self.tokens and self.tokens % tokens == 0:
                before, after = "", text
            if characters and (self.characters + len(text)) // characters > self.characters // characters:
                border = characters - self.characters % characters
                before, after = text[:border], text[border:]
            out = self.inner.feed(before)
            if self.match is None and (after or before != text):
                held = self.restart()
                out += ("" if loses else held) + self.inner.feed(after)
            return out

    return AnewEvery


def window(size: int) -> Make:
    """A stop that spans more tokens is not found."""

    class Window(Around):
        def __init__(self, stops: list[str]) -> None:
            super().__init__(stops)
            self.held_for = 0

        def read(self, text: str) -> str:
            before = len(text)
            out = self.inner.feed(text)
            self.held_for = self.held_for + 1 if len(out) < before else 0
            if self.match is None and self.held_for > size:
                self.held_for = 0
                out += self.restart()
            return out

    return Window


class NotTheFirstToken(Around):
    def read(self, text: str) -> str:
        return self.inner.feed(text) if self.tokens else text


def decoded_anew_every(count: int) -> type:
    """Half a character across a border is lost."""

    class Anew(codecs.getincrementaldecoder("utf-8")):  # type: ignore[misc]
        number = 0

        def __init__(self) -> None:
            super().__init__(errors="replace")

        def decode(self, piece: bytes, final: bool = False) -> str:
            rest = ""
            if self.number and self.number % count == 0:
                rest = super().decode(b"", True)
                self.reset()
            self.number += 1
            return rest + super().decode(piece, final)

    return Anew


class NotTheLastToken(Generation):
    """Before the limit."""

    def answer(self, token: int, text: str) -> Iterator[str]:
        if self.tokens == self.ask.max_tokens and self.ask.stops:
            yield self.scanner.flush() + text
        else:
            yield from super().answer(token, text)


class NotTheTokenBeforeEos(Generation):
    @cached_property
    def length(self) -> int:
        return len([*takewhile(lambda one: one[1] != EOS, self.pieces())])

    def answer(self, token: int, text: str) -> Iterator[str]:
        if self.tokens == self.length:
            yield self.scanner.flush() + text
        else:
            yield from super().answer(token, text)


class NotTheFirstAfterReasoning(Generation):
    after = False

    async def steps(self) -> AsyncIterator[Piece]:
        async for step in super().steps():
            self.after, self.was_edge = getattr(self, "was_edge", False), step[1] == b"</think>"
            yield step

    def answer(self, token: int, text: str) -> Iterator[str]:
        if self.after:
            yield self.scanner.flush() + text
        else:
            yield from super().answer(token, text)


def ends_after(count: int) -> type[Generation]:
    """By the limit, whatever was asked."""

    class EndsAfter(Generation):
        async def steps(self) -> AsyncIterator[Piece]:
            self.ask.max_tokens = min(self.ask.max_tokens, count)
            async for step in super().steps():
                yield step

    return EndsAfter


def at_token(count: int, change: str) -> type[Generation]:
    """A token's text is lost or comes twice."""

    class At(Generation):
        def answer(self, token: int, text: str) -> Iterator[str]:
            times = {"lost": 0, "twice": 2}[change] if self.tokens == count else 1
            yield from super().answer(token, text * times)

    return At


MUTANTS = [
    mutant("the first token is not scanned", scanner=NotTheFirstToken),
    *(mutant(f"only {count} tokens are scanned", scanner=only_first(tokens=count)) for count in (64, 400, 1024, 3000)),
    *(mutant(f"only {count} characters are scanned", "openai-completions", scanner=only_first(characters=count))
      for count in (2048, 4096, 16384, 65536)),
    mutant("a window of 24 tokens", scanner=window(24)),
    mutant("a window of 8 tokens", "anthropic", scanner=window(8)),
    *(mutant(f"stops across {count} tokens are not found", "generate", scanner=anew_every(tokens=count))
      for count in (128, 256, 1024)),
    *(mutant(f"stops across {count} characters are not found", scanner=anew_every(characters=count))
      for count in (2048, 4096, 65536)),
    mutant("held text is lost at 128 tokens", scanner=anew_every(tokens=128, loses=True)),
    mutant("held text is lost at 2048 characters", "ollama-chat", scanner=anew_every(characters=2048, loses=True)),
    *(mutant(f"half a character is lost at {count} tokens", decoder=decoded_anew_every(count)) for count in (128, 256)),
    mutant("the last token before the limit is not scanned", generation=NotTheLastToken),
    mutant("the last token before EOS is not scanned", generation=NotTheTokenBeforeEos),
    mutant("the first token after reasoning is not scanned", generation=NotTheFirstAfterReasoning),
    mutant("an answer ends at 4096 tokens", generation=ends_after(4096)),
    mutant("a token is lost at 1000", generation=at_token(1000, "lost")),
    mutant("a token comes twice at 512", "responses-with-stop", generation=at_token(512, "twice")),
]  # fmt: skip
