"""Where a stop, a limit or a character lies."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from staged.dimensions.mutant import Around, Make
from staged.faults.fault import Asked, fault
from staged.generation import EOS, Generation, Piece
from stopscan_conformance.reciter import EOS as EOS_TEXT

Parts = AsyncIterator[tuple[str, str]]
THINK, UNTHINK = b"<think>", b"</think>"


class JoinsAcrossTheEdge(Around):
    """What was held before the reasoning may go on after it."""

    at_edge = False

    def flush(self) -> str:
        return "" if self.at_edge else self.inner.flush()


class TellsTheEdge(Generation):
    async def steps(self) -> AsyncIterator[Piece]:
        async for step in super().steps():
            self.scanner.at_edge = step[1] in (THINK, UNTHINK)
            yield step


def far_inside(*, tokens: int = 10**9, characters: int = 10**9) -> Make:
    """From there on a stop is looked for where tokens meet: one within a token, with text around it, is missed."""

    class FarInside(Around):
        def read(self, text: str) -> str:
            far = self.tokens >= tokens or self.characters >= characters
            if far and any(stop in text[1:-1] for stop in self.stops):
                return self.restart() + text
            return self.inner.feed(text)

    return FarInside


def far_cut(tokens: int) -> Make:
    """From there on the text is cut where the token begins in which the stop completes."""

    class FarCut(Around):
        def read(self, text: str) -> str:
            out = self.inner.feed(text)
            return "" if self.inner.match is not None and self.tokens >= tokens else out

    return FarCut


class EqualHold(Around):
    """Where as much is held after a token as before, nothing seems to have happened: what became safe is lost."""

    late = False

    def __init__(self, stops: list[str]) -> None:
        super().__init__(stops)
        self.held = 0
        self.owed = ""

    def read(self, text: str) -> str:
        before, out = self.held, self.inner.feed(text)
        self.held += len(text) - len(out)
        if self.held == before and before and out and self.inner.match is None:
            self.owed += out if self.late else ""
            return ""
        owed, self.owed = self.owed, ""
        return owed + out

    def flush(self) -> str:
        owed, self.owed = self.owed, ""
        return owed + self.inner.flush()


class EqualHoldIsLate(EqualHold):
    """It comes with what follows."""

    late = True


def without_mark() -> Any:
    """U+FEFF at the beginning is taken for a byte order mark."""
    return codecs.getincrementaldecoder("utf-8-sig")(errors="replace")


async def no_mark_anywhere(made: Generation) -> Parts:
    async for kind, text in made.texts():
        yield kind, text.replace("\ufeff", "")


class LimitOnTheEos(Generation):
    """An EOS that is the last token of the limit is not seen."""

    async def texts(self) -> Parts:
        async for part in super().texts():
            yield part
        if self.end[0] == "eos" and self.tokens == self.ask.max_tokens:
            self.end = ("length", None)


def rest_at_once(after: int) -> Callable[[Generation], Parts]:
    """What follows so many pieces comes as one, at the end."""

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


class EndTokenIsScanned(Generation):
    """The text of the EOS is scanned as well; with `leaks`, what stands in it before the stop is text."""

    leaks = False

    async def texts(self) -> Parts:
        async for part in super().texts():
            yield part
        hit = next((stop for stop in self.ask.stops if stop in EOS_TEXT), None)
        if self.end[0] == "eos" and hit is not None:
            self.end = ("stop_sequence", hit)
            yield "answer", EOS_TEXT.partition(hit)[0] if self.leaks else ""


class EndTokenLeaks(EndTokenIsScanned):
    leaks = True


def marker_is_scanned(marker: bytes) -> type[Generation]:
    """A stop that is a piece of a marker fires in it, although the marker is one token."""

    class Scanned(Generation):
        async def steps(self) -> AsyncIterator[Piece]:
            async for token, piece in super().steps():
                hit = next((stop for stop in self.ask.stops if stop in piece.decode(errors="replace")), None)
                if piece == marker and hit is not None:
                    self.end = ("stop_sequence", hit)
                    yield token, EOS
                    return
                yield token, piece

    return Scanned


class StopsTakeThePlaceOfEos(Generation):
    """With stops of its own, a request has no EOS: the generation goes on to the limit."""

    async def steps(self) -> AsyncIterator[Piece]:
        self.ask.max_tokens = min(self.ask.max_tokens, 2000)
        async for token, piece in super().steps():
            yield token, piece or (EOS_TEXT.encode() if self.ask.stops else EOS)


class IdeographTwice(codecs.getincrementaldecoder("utf-8")):  # type: ignore[misc]
    """An ideograph beside half a character comes again with the next token."""

    def __init__(self) -> None:
        super().__init__(errors="replace")
        self.again = ""

    def decode(self, piece: bytes, final: bool = False) -> str:
        again, self.again = self.again, ""
        text = again + super().decode(piece, final)
        if self.getstate()[0] and "\u3000" <= text[-1:] <= "\u9fff":
            self.again = text[-1]
        return text


async def no_half_in_whole_answers(made: Generation) -> Parts:
    """The replacement of half a character at the end comes in streams alone."""
    text = ""
    async for kind, text in made.texts():
        yield kind, text if made.ask.stream else text.removesuffix("\ufffd")


async def short_answers_are_lost(made: Generation) -> Parts:
    """24 characters are held before the first are sent, and nobody asks for them at the end."""
    waiting = ""
    begun = False
    async for kind, text in made.texts():
        waiting = waiting if begun else waiting + text
        if begun or len(waiting) > 24:
            yield kind, text if begun else waiting
            begun = True


async def open_reasoning_is_said_again(made: Generation) -> Parts:
    """Reasoning that never ends is the answer, too."""
    thought, last = "", ""
    async for kind, text in made.texts():
        yield kind, text
        last = kind if text else last
        thought += text if kind == "reasoning" else ""
    if last == "reasoning":
        yield "answer", thought


async def cut_reasoning_is_the_answer(made: Generation) -> Parts:
    """Reasoning that the limit cuts."""
    parts = [part async for part in made.texts()]
    for kind, text in parts:
        cut = made.end[0] == "length" and all(one == "reasoning" or not said for one, said in parts)
        yield ("answer" if cut else kind), text


class HoldsIdsBack(Generation):
    """A token that ends the answer takes with it what was held."""

    def answer(self, token: int, text: str) -> Iterator[str]:
        out = list(super().answer(token, text))
        yield from ([] if self.end[0] == "stop_token" else out)


STRADDLE = ("I ", "E", "N", THINK, "so", UNTHINK, "D", " is it")
FAR_WORDS = ("far ", "away ") * 300
EQUAL = ("go ", "xST", "xST", "OP", " end")
MARKED = ("\ufeff", "A ", "\ufeff", "mark")
HALF = ("so", b"\xf0\x9f")
# U+4F60 beside the first bytes of U+597D, as a byte-level vocabulary cuts them.
WIDE = ("a", b"\xe4\xbd\xa0\xe5", b"\xa5\xbd", "b")


def inside(far: tuple[str, ...]) -> Asked:
    return Asked(f"inside-{len(far)}", stop=["END"], limit=None, pieces=(*far, "the WENDS of", " it"))


FAULTS = [
    fault("a stop around the reasoning fires", "advice", "openai-chat",
          Asked("around", stop=["END"], pieces=STRADDLE), scanner=JoinsAcrossTheEdge, generation=TellsTheEdge),
    fault("a stop inside a token is missed from 400 tokens on", "documented", "openai-chat", inside(FAR_WORDS),
          scanner=far_inside(tokens=400)),
    fault("a stop inside a token is missed from 1,000 tokens on", "documented", "anthropic", inside(FAR_WORDS * 2),
          scanner=far_inside(tokens=1000)),
    fault("a stop inside a token is missed from 2,500 characters on", "documented", "openai-completions",
          inside(FAR_WORDS), scanner=far_inside(characters=2500)),
    fault("text is cut where the token begins from 200 tokens on", "documented", "openai-chat", inside(FAR_WORDS),
          scanner=far_cut(200)),
    fault("what is safe is lost where as much is held", "documented", "openai-chat",
          Asked("equal", stop=["STOP"], pieces=EQUAL), scanner=EqualHold),
    fault("what is safe is lost where as much is held in Ollama", "documented", "ollama-generate",
          Asked("equal", stop=["STOP"], pieces=EQUAL), scanner=EqualHold),
    fault("what is safe is late where as much is held", "advice", "openai-chat", scanner=EqualHoldIsLate),
    fault("U+FEFF is a byte order mark", "documented", "openai-chat", Asked("marked", pieces=MARKED),
          decoder=without_mark),
    fault("U+FEFF is a byte order mark in Ollama", "documented", "ollama-chat", Asked("marked", pieces=MARKED),
          decoder=without_mark),
    fault("U+FEFF is lost", "documented", "anthropic", Asked("marked", pieces=MARKED), chunks=no_mark_anywhere),
    fault("an EOS at the limit is the limit", "documented", "openai-chat", Asked("held", limit=7),
          generation=LimitOnTheEos),
    fault("an EOS at the limit is the limit in Responses", "documented", "openai-responses", Asked("held", limit=7),
          generation=LimitOnTheEos),
    fault("the rest comes at once after 200 pieces", "advice", "openai-chat",
          Asked("far", limit=None, stream=True, pieces=FAR_WORDS), chunks=rest_at_once(200)),
    fault("the rest comes at once after 64 pieces in Anthropic", "advice", "anthropic",
          Asked("far", limit=None, stream=True, pieces=FAR_WORDS), chunks=rest_at_once(64)),
    fault("a piece of the EOS fires", "usual", "openai-chat", Asked("held", stop=["|"]),
          generation=EndTokenIsScanned),
    fault("a piece of the EOS fires in Anthropic", "usual", "anthropic", Asked("held", stop=["eos"]),
          generation=EndTokenIsScanned),
    fault("the EOS before a stop is text", "documented", "openai-completions", Asked("held", stop=["|>"]),
          generation=EndTokenLeaks),
    fault("a piece of an opening marker fires", "advice", "openai-chat", Asked("think", stop=["<"]),
          generation=marker_is_scanned(THINK)),
    fault("a piece of a closing marker fires", "advice", "anthropic", Asked("think", stop=["/"]),
          generation=marker_is_scanned(UNTHINK)),
    fault("stops take the place of the EOS", "documented", "ollama-chat", Asked("held", stop=["zzz"], limit=None),
          generation=StopsTakeThePlaceOfEos),
    fault("an ideograph comes twice beside half a character", "documented", "openai-chat", Asked("wide", pieces=WIDE),
          decoder=IdeographTwice),
    fault("half a character at the end is lost in whole answers", "advice", "openai-chat", Asked("half", pieces=HALF),
          chunks=no_half_in_whole_answers),
    fault("answers of 24 characters are empty", "documented", "ollama-generate", Asked("nested"),
          chunks=short_answers_are_lost),
    fault("reasoning that does not end is said again", "usual", "openai-chat", Asked("unclosed"),
          chunks=open_reasoning_is_said_again),
    fault("reasoning that the limit cuts is the answer", "usual", "anthropic", Asked("think", limit=4),
          chunks=cut_reasoning_is_the_answer),
    fault("an id takes what was held with it", "usual", "openai-chat", Asked("held", stop=["STOP"], ids=("O",)),
          generation=HoldsIdsBack),
]  # fmt: skip
