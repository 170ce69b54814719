"""The right stop, and the wrong text: lost, doubled, leaked, cut at the wrong place, or decoded wrongly."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import AsyncIterator, Callable, Iterator

from staged.defects.defect import wrong
from staged.generation import EOS, Generation, Piece
from staged.scanners import Found, Simple


class KeepsTheStop(Simple):
    def find(self, before: int) -> Found | None:
        found = super().find(before)
        return found and (found[0] + len(found[1]), found[1])


class LeaksTheRest(Simple):
    def find(self, before: int) -> Found | None:
        found = super().find(before)
        if found:
            self.text = self.text[: found[0]] + self.text[found[0] + len(found[1]) :]
        return found and (len(self.text), found[1])


class DeletesTheStop(Simple):
    """And goes on."""

    def find(self, before: int) -> Found | None:
        if found := super().find(before):
            self.text = self.text[: found[0]] + self.text[found[0] + len(found[1]) :]
        return None


class HoldsNothing(Simple):
    def hold(self) -> int:
        return 0


class LosesWhatIsHeld(Simple):
    def flush(self) -> str:
        return ""


class DoublesWhatIsHeld(Simple):
    def flush(self) -> str:
        held = super().flush()
        return held + held


class ReadsAgainWhatWasHeld(Simple):
    def feed(self, delta: str) -> str:
        held = self.text[self.sent :]
        out = super().feed(delta)
        return out + held if held and out.startswith(held) else out


class OneTooFew(Simple):
    def find(self, before: int) -> Found | None:
        found = super().find(before)
        return found and (max(self.sent, found[0] - 1), found[1])


class CountsBytes(Simple):
    """Searches the characters, and cuts the bytes."""

    def find(self, before: int) -> Found | None:
        found = super().find(before)
        self.text = self.text.encode()[: found[0]].decode(errors="ignore") if found else self.text
        return found and (max(self.sent, len(self.text)), found[1])


class CountsUnits(Simple):
    """Searches UTF-16, and cuts characters."""

    def find(self, before: int) -> Found | None:
        found = super().find(before)
        return found and (len(self.text[: found[0]].encode("utf-16-le")) // 2, found[1])


class EachTokenAlone:
    def decode(self, piece: bytes, final: bool = False) -> str:
        return piece.decode(errors="replace")


class LosesTheHalfAtTheEnd(codecs.getincrementaldecoder("utf-8")):  # type: ignore[misc]
    def decode(self, piece: bytes, final: bool = False) -> str:
        return "" if final else super().decode(piece)


class Latin(EachTokenAlone):
    def decode(self, piece: bytes, final: bool = False) -> str:
        return piece.decode("latin-1")


class LimitTooFar(Generation):
    async def steps(self) -> AsyncIterator[Piece]:
        self.ask.max_tokens += 1
        async for step in super().steps():
            yield step


class LimitTooNear(Generation):
    async def steps(self) -> AsyncIterator[Piece]:
        self.ask.max_tokens -= 1
        async for step in super().steps():
            yield step


class NoLimit(Generation):
    async def steps(self) -> AsyncIterator[Piece]:
        self.ask.max_tokens = 2000
        async for step in super().steps():
            yield step


async def stops_in_reasoning(made: Generation) -> AsyncIterator[tuple[str, str]]:
    """Without a notion of reasoning, but for the field that it is in."""
    thought = ""
    async for kind, text in made.texts():
        if kind == "reasoning":
            thought += text
            continue
        for stop in made.ask.stops:
            if stop in thought:
                made.end = ("stop_sequence", stop)
                yield "reasoning", thought.partition(stop)[0]
                return
        if thought:
            yield "reasoning", thought
            thought = ""
        yield kind, text


class Unprotected(Simple):
    """Without a notion of reasoning."""


class TextOfTheStopToken(Generation):
    def answer(self, token: int, text: str) -> Iterator[str]:
        yield from super().answer(token, text)
        if self.end[0] == "stop_token":
            yield text


class TokenBeforeString(Generation):
    def answer(self, token: int, text: str) -> Iterator[str]:
        if token in self.ask.stop_token_ids:
            self.end = ("stop_token", token)
            yield self.scanner.flush()
        else:
            yield from super().answer(token, text)


class LimitBeforeStop(Generation):
    def answer(self, token: int, text: str) -> Iterator[str]:
        yield from super().answer(token, text)
        if self.tokens == self.ask.max_tokens:
            self.end = ("length", None)


class NoStopAfterReasoning(Generation):
    async def steps(self) -> AsyncIterator[Piece]:
        async for step in super().steps():
            if step[1] == b"<think>":
                self.scanner = Simple([])
            yield step


class AcrossTheEdge(Generation):
    """The scanner reads the reasoning, too, and only what it finds there does not count."""

    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        kind, text = "answer", ""
        async for _, piece in self.steps():
            if piece == EOS:
                break
            if piece in (b"<think>", b"</think>"):
                kind = "reasoning" if piece == b"<think>" else "answer"
                continue
            text += piece.decode()
            if kind == "answer" and (stop := next((stop for stop in self.ask.stops if stop in text), None)):
                self.end = ("stop_sequence", stop)
                return
            yield kind, piece.decode()


class ScansThePrompt(Simple):
    def __init__(self, stops: list[str]) -> None:
        super().__init__([stop for stop in stops if stop != "split"])
        if "split" in stops:
            self.match = "split"


def parts(change: Callable[[str], str]) -> Callable[[Generation], AsyncIterator[tuple[str, str]]]:
    """The text of each part changed."""

    async def changed(made: Generation) -> AsyncIterator[tuple[str, str]]:
        async for kind, text in made.texts():
            yield kind, change(text)

    return changed


def joined(change: Callable[[str], str]) -> Callable[[Generation], AsyncIterator[tuple[str, str]]]:
    """The text of the whole answer changed."""

    async def changed(made: Generation) -> AsyncIterator[tuple[str, str]]:
        yield "answer", change("".join([text async for kind, text in made.texts() if kind == "answer"]))

    return changed


async def echoes(made: Generation) -> AsyncIterator[tuple[str, str]]:
    yield "answer", made.ask.prompt
    async for part in made.texts():
        yield part


async def loses_the_last(made: Generation) -> AsyncIterator[tuple[str, str]]:
    before = None
    async for part in made.texts():
        if part[1] and before is not None:
            yield before
        before = part if part[1] else before


async def twice_the_first(made: Generation) -> AsyncIterator[tuple[str, str]]:
    first = True
    async for part in made.texts():
        yield part
        if first:
            yield part
        first = False


DEFECTS = [
    wrong("the stop stays", "split", "text", scanner=KeepsTheStop),
    wrong("what follows the stop in its token leaks", "inside", "text", scanner=LeaksTheRest),
    wrong("the stop is deleted and nothing ends", "three-tokens", "text cost", scanner=DeletesTheStop),
    wrong("nothing is held", "split", "text", scanner=HoldsNothing),
    wrong("held text is lost at EOS", "held-at-eos", "text", scanner=LosesWhatIsHeld),
    wrong("held text is lost at the limit", "held-at-the-limit", "text", whole=True, scanner=LosesWhatIsHeld),
    wrong("held text comes twice at the end", "held-at-eos", "text", scanner=DoublesWhatIsHeld),
    wrong("held text comes twice", "never", "text", scanner=ReadsAgainWhatWasHeld),
    wrong("one character too few", "inside", "text", "anthropic", scanner=OneTooFew),
    wrong("bytes for characters", "inside-wide", "text", scanner=CountsBytes),
    wrong("UTF-16 for characters", "emoji-stop", "text", scanner=CountsUnits),
    wrong("tokens decoded alone", "half-characters", "text finish cost", decoder=EachTokenAlone),
    wrong("half a character at the end is lost", "half-a-character-at-eos", "text", decoder=LosesTheHalfAtTheEnd),
    wrong("Latin-1", "half-characters", "text finish cost", decoder=Latin),
    wrong("one token too many", "no-stop-limit", "text cost", generation=LimitTooFar),
    wrong("one token too few", "no-stop-limit", "text cost", "generate", generation=LimitTooNear),
    wrong("no limit", "no-stop-limit", "text finish cost", "ollama-chat", generation=NoLimit),
    wrong("stops in reasoning", "think", "text", "ollama-generate", chunks=stops_in_reasoning),
    wrong("no stops after reasoning", "think", "text finish cost", generation=NoStopAfterReasoning),
    wrong("stops across the edge of reasoning", "think-edge", "text finish cost", generation=AcrossTheEdge),
    wrong("the stop token's text stays", "ids", "text", generation=TextOfTheStopToken),
    wrong("a stop token before its string", "string-5-id-5", "finish", generation=TokenBeforeString),
    wrong("the limit before the stop", "stop-in-the-last-token", "finish", generation=LimitBeforeStop),
    wrong("the prompt is scanned", "the-prompt-is-not-scanned", "text finish cost", scanner=ScansThePrompt),
    wrong("the prompt comes first", "no-stop", "text", "openai-completions", chunks=echoes),
    wrong("the last piece is lost", "no-stop", "text", chunks=loses_the_last),
    wrong("the first piece comes twice", "no-stop", "text", chunks=twice_the_first),
    wrong("text trimmed at the end", "split", "text", whole=True, chunks=joined(str.rstrip)),
    wrong("text trimmed at the start", "spaces-at-eos", "text", whole=True, chunks=joined(str.lstrip)),
    wrong("pieces trimmed", "no-stop", "text", chunks=parts(str.strip)),
    wrong("line ends changed", "crlf-kept", "text", whole=True, chunks=joined(lambda text: text.replace("\r\n", "\n"))),
    wrong("blanks made one", "spaces-at-eos", "text", whole=True, chunks=joined(lambda text: re.sub(" +", " ", text))),
    wrong("markup escaped", "markup-entity-never", "text", chunks=parts(html.escape)),
    wrong(
        "markup removed",
        "markup-entity-never",
        "text",
        whole=True,
        chunks=joined(lambda text: re.sub("<[^>]*>", "", text)),
    ),
    wrong(
        "the answer cut after 4,000 characters",
        "long-text-never",
        "text",
        whole=True,
        chunks=joined(lambda t: t[:4000]),
    ),
]
