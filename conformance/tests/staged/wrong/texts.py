"""Wrong servers that lose, repeat or leak text, cut it at the wrong place, decode it wrongly, or miss a stop. Some of
them do this only from some place in the text on, such as after 400 tokens, or only at one place."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

from staged.generation import CHECKPOINT, EOS, Generation, Piece
from staged.request import Ask
from staged.scanners import Around, Found, Make, Simple, cutting, finding, holding
from staged.wrong.table import Parts, wrong
from stopscan_conformance.reciter import EOS as EOS_TEXT


def without_the_stop(one: Simple, before: int) -> Found | None:
    """Defect: removes the stop, but also sends the text that follows the stop in the same token."""
    found = Simple.find(one, before)
    if found:
        one.text = one.text[: found[0]] + one.text[found[0] + len(found[1]) :]
    return found and (len(one.text), found[1])


class DeletesTheStop(Simple):
    """Defect: removes the stop from the text, and keeps generating."""

    def find(self, before: int) -> Found | None:
        if found := super().find(before):
            self.text = self.text[: found[0]] + self.text[found[0] + len(found[1]) :]
        return None


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


class CountsBytes(Simple):
    """Defect: cuts the text after as many bytes as there are characters before the stop."""

    def find(self, before: int) -> Found | None:
        found = super().find(before)
        self.text = self.text.encode()[: found[0]].decode(errors="ignore") if found else self.text
        return found and (max(self.sent, len(self.text)), found[1])


class EachTokenAlone:
    def decode(self, piece: bytes, final: bool = False) -> str:
        return piece.decode(errors="replace")


class LosesTheHalfAtTheEnd(codecs.getincrementaldecoder("utf-8")):  # type: ignore[misc]
    def decode(self, piece: bytes, final: bool = False) -> str:
        return "" if final else super().decode(piece)


class Latin(EachTokenAlone):
    def decode(self, piece: bytes, final: bool = False) -> str:
        return piece.decode("latin-1")


async def stops_in_reasoning(made: Generation) -> Parts:
    """Defect: lets stops fire in the reasoning. The reasoning is still sent in a field of its own."""
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
    """Defect: the scanner also reads the reasoning, so that a stop may begin there and end in the answer."""

    async def texts(self) -> Parts:
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


def parts(change: Callable[[str], str]) -> Callable[[Generation], Parts]:
    """Returns a function that yields the parts of an answer, each with `change(text)` in place of its text."""

    async def changed(made: Generation) -> Parts:
        async for kind, text in made.texts():
            yield kind, change(text)

    return changed


def joined(change: Callable[[str], str]) -> Callable[[Generation], Parts]:
    """Returns a function that collects the whole answer, and sends `change(answer)` in its place, in one part."""

    async def changed(made: Generation) -> Parts:
        yield "answer", change("".join([text async for kind, text in made.texts() if kind == "answer"]))

    return changed


async def echoes(made: Generation) -> Parts:
    yield "answer", made.ask.prompt
    async for part in made.texts():
        yield part


def only_first(*, tokens: int = 10**9, characters: int = 10**9) -> Make:
    """Makes scanners that scan only the first `tokens` tokens or `characters` characters, and send all later text
    unscanned."""

    class OnlyFirst(Around):
        def read(self, text: str) -> str:
            if self.tokens < tokens and self.characters < characters:
                return self.inner.feed(text)
            return self.restart() + text

    return OnlyFirst


def anew_every(*, tokens: int = 0, characters: int = 0, loses: bool = False) -> Make:
    """Makes scanners that start over after every `tokens` tokens or `characters` characters. So they miss a stop that
    has begun when they start over. If `loses` is true, they also lose the text that is held at this moment."""

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


def decoded_anew_every(count: int) -> type:
    """Makes decoders that start over every `count` tokens. So they lose a character if they have read only some of its
    bytes when they start over."""

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


def at(which: Callable[[Generation], Any], then: Callable[[Generation, int, str], Iterator[str]]) -> type[Generation]:
    """Returns a `Generation` class with one defect: it handles a token with `then` if `which(generation)` is true. It
    handles all other tokens correctly."""

    class At(Generation):
        def answer(self, token: int, text: str) -> Iterator[str]:
            return then(self, token, text) if which(self) else super().answer(token, text)

    return At


def unscanned(made: Generation, token: int, text: str) -> Iterator[str]:
    yield made.scanner.flush() + text


def sent_first(made: Generation, token: int, text: str) -> Iterator[str]:
    """Defect: sends all text of a token, although the scanner finds a stop in it."""
    for _ in Generation.answer(made, token, text):
        yield text


def lost(made: Generation, token: int, text: str) -> Iterator[str]:
    return Generation.answer(made, token, "")


def twice(made: Generation, token: int, text: str) -> Iterator[str]:
    return Generation.answer(made, token, text * 2)


def last_of_the_limit(made: Generation) -> Any:
    return made.tokens == made.ask.max_tokens and made.ask.stops


def last_before_eos(made: Generation) -> bool:
    return made.tokens == len(CHECKPOINT.token_ids(made.script))


def first_after_reasoning(made: Generation) -> bool:
    return made.tokens > 1 and CHECKPOINT.tokens[CHECKPOINT.token_ids(made.script)[made.tokens - 2]] == UNTHINK


def first_of_a_long_prompt(made: Generation) -> bool:
    """Whether the token is the first one after a long prompt. An engine may compute a long prompt with another kernel,
    so it may have a defect only at this token."""
    return made.tokens == 1 and len(made.ask.prompt) > 400


def limited(change: Callable[[int], int]) -> Callable[[Ask], Ask]:
    return lambda ask: replace(ask, max_tokens=change(ask.max_tokens))


THINK, UNTHINK = b"<think>", b"</think>"


class JoinsAcrossTheEdge(Around):
    """Defect: when `<think>` or `</think>` comes, goes on holding the text before it. So a stop may begin before this
    marker and end after it."""

    at_edge = False

    def flush(self) -> str:
        return "" if self.at_edge else self.inner.flush()


class TellsTheEdge(Generation):
    async def steps(self) -> AsyncIterator[Piece]:
        async for step in super().steps():
            self.scanner.at_edge = step[1] in (THINK, UNTHINK)
            yield step


def far_inside(*, tokens: int = 10**9, characters: int = 10**9) -> Make:
    """Makes scanners that are correct for the first `tokens` tokens or `characters` characters. After that, they miss
    a stop inside of a token that has other text before and after the stop."""

    class FarInside(Around):
        def read(self, text: str) -> str:
            far = self.tokens >= tokens or self.characters >= characters
            if far and any(stop in text[1:-1] for stop in self.stops):
                return self.restart() + text
            return self.inner.feed(text)

    return FarInside


def far_cut(tokens: int) -> Make:
    """Makes scanners that are correct for the first `tokens` tokens. If a stop fires later, they lose the text before
    the stop that is not sent yet."""

    class FarCut(Around):
        def read(self, text: str) -> str:
            out = self.inner.feed(text)
            return "" if self.inner.match is not None and self.tokens >= tokens else out

    return FarCut


class EqualHold(Around):
    """Defect: compares how many characters are held before a token and after it. If the counts are equal and not zero,
    loses the text that should be sent after this token."""

    held = 0

    def read(self, text: str) -> str:
        before, out = self.held, self.inner.feed(text)
        self.held += len(text) - len(out)
        return "" if self.held == before and before and out and self.inner.match is None else out


def without_mark() -> Any:
    """Defect: takes the character U+FEFF at the beginning of an answer for a byte order mark, and so loses it."""
    return codecs.getincrementaldecoder("utf-8-sig")(errors="replace")


def limit_on_the_eos(made: Generation) -> tuple[str, Any]:
    """Defect: reports the finish reason "length" if the EOS is the last token that the limit allows."""
    return ("length", None) if made.end[0] == "eos" and made.tokens == made.ask.max_tokens else made.end


class EndTokenIsScanned(Generation):
    """Defect: also looks for stops in the text of the EOS token, such as "<|eos|>". If `leaks` is true, also sends this
    text up to the stop."""

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
    """Returns a `Generation` class with one defect: a stop also fires if it is a part of `marker`. The marker, such as
    `<think>`, is a single token, and a correct server does not scan its text."""

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
    """Defect: if a request has stops, the EOS is ordinary text, and the generation goes on to the limit."""

    async def steps(self) -> AsyncIterator[Piece]:
        self.ask.max_tokens = min(self.ask.max_tokens, 2000)
        async for token, piece in super().steps():
            yield token, piece or (EOS_TEXT.encode() if self.ask.stops else EOS)


class IdeographTwice(codecs.getincrementaldecoder("utf-8")):  # type: ignore[misc]
    """Defect: if a token has an ideograph and then the first bytes of another character, sends the ideograph a second
    time, with the next token."""

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
    """Defect: sends U+FFFD for an incomplete last character only in streams, not in whole answers."""
    text = ""
    async for kind, text in made.texts():
        yield kind, text if made.ask.stream else text.removesuffix("\ufffd")


async def short_answers_are_lost(made: Generation) -> Parts:
    """Defect: holds the first 24 characters, and never sends them if no more follow."""
    waiting = ""
    begun = False
    async for kind, text in made.texts():
        waiting = waiting if begun else waiting + text
        if begun or len(waiting) > 24:
            yield kind, text if begun else waiting
            begun = True


async def open_reasoning_is_said_again(made: Generation) -> Parts:
    """Defect: if the reasoning has no end, sends it a second time, as the answer."""
    thought, last = "", ""
    async for kind, text in made.texts():
        yield kind, text
        last = kind if text else last
        thought += text if kind == "reasoning" else ""
    if last == "reasoning":
        yield "answer", thought


async def cut_reasoning_is_the_answer(made: Generation) -> Parts:
    """Defect: if the limit cuts the reasoning, sends the reasoning as the answer."""
    parts = [part async for part in made.texts()]
    for kind, text in parts:
        cut = made.end[0] == "length" and all(one == "reasoning" or not said for one, said in parts)
        yield ("answer" if cut else kind), text


class HoldsIdsBack(Generation):
    """Defect: loses the held text if a stop token ends the answer."""

    def answer(self, token: int, text: str) -> Iterator[str]:
        out = list(super().answer(token, text))
        yield from ([] if self.end[0] == "stop_token" else out)


WRONG = [
    wrong("the stop stays", "openai-chat-stream-split", "text",
          scanner=cutting(lambda one, begin, stop: begin + len(stop))),
    wrong("what follows the stop in its token leaks", "openai-chat-stream-inside", "text",
          scanner=finding(without_the_stop)),
    wrong("the stop is deleted and nothing ends", "openai-chat-stream-three-tokens", "text cost",
          scanner=DeletesTheStop),
    wrong("nothing is held", "openai-chat-stream-split", "text", scanner=holding(lambda one: 0)),
    wrong("held text is lost at EOS", "openai-chat-stream-held-at-eos", "text", scanner=LosesWhatIsHeld),
    wrong("held text is lost at the limit", "openai-chat-whole-held-at-the-limit", "text", scanner=LosesWhatIsHeld),
    wrong("held text comes twice at the end", "openai-chat-stream-held-at-eos", "text", scanner=DoublesWhatIsHeld),
    wrong("held text comes twice", "openai-chat-stream-never", "text", scanner=ReadsAgainWhatWasHeld),
    wrong("one character too few", "anthropic-stream-inside", "text",
          scanner=cutting(lambda one, begin, stop: begin - 1)),
    wrong("bytes for characters", "openai-chat-stream-inside-wide", "text", scanner=CountsBytes),
    wrong("UTF-16 for characters", "openai-chat-stream-emoji-stop", "text",
          scanner=cutting(lambda one, begin, stop: len(one.text[:begin].encode("utf-16-le")) // 2)),
    wrong("tokens decoded alone", "openai-chat-stream-half-characters", "text finish cost", decoder=EachTokenAlone),
    wrong("half a character at the end is lost", "openai-chat-stream-half-a-character-at-eos", "text",
          decoder=LosesTheHalfAtTheEnd),
    wrong("Latin-1", "openai-chat-stream-half-characters", "text finish cost", decoder=Latin),
    wrong("one token too many", "openai-chat-stream-no-stop-limit", "text cost", ask=limited(lambda limit: limit + 1)),
    wrong("one token too few", "generate-stream-no-stop-limit", "text cost", ask=limited(lambda limit: limit - 1)),
    wrong("no limit", "ollama-chat-stream-no-stop-limit", "text finish cost", ask=limited(lambda limit: 2000)),
    wrong("stops in reasoning", "ollama-generate-stream-think", "text", chunks=stops_in_reasoning),
    wrong("no stops after reasoning", "openai-chat-stream-think", "text finish cost", generation=NoStopAfterReasoning),
    wrong("stops across the edge of reasoning", "openai-chat-stream-think-edge", "text finish cost",
          generation=AcrossTheEdge),
    wrong("the stop token's text stays", "openai-chat-stream-ids", "text", generation=TextOfTheStopToken),
    wrong("a stop token before its string", "openai-chat-stream-string-5-id-5", "finish", generation=TokenBeforeString),
    wrong("the limit before the stop", "openai-chat-stream-stop-in-the-last-token", "finish",
          generation=LimitBeforeStop),
    wrong("the prompt is scanned", "openai-chat-stream-the-prompt-is-not-scanned", "text finish cost",
          scanner=ScansThePrompt),
    wrong("the prompt comes first", "openai-completions-stream-no-stop", "text", chunks=echoes),
    wrong("the last piece is lost", "openai-chat-stream-no-stop", "text", generation=at(last_before_eos, lost)),
    wrong("the first piece comes twice", "openai-chat-stream-no-stop", "text",
          generation=at(lambda made: made.tokens == 1, twice)),
    wrong("text trimmed at the end", "openai-chat-whole-split", "text", chunks=joined(str.rstrip)),
    wrong("text trimmed at the start", "openai-chat-whole-spaces-at-eos", "text", chunks=joined(str.lstrip)),
    wrong("pieces trimmed", "openai-chat-stream-no-stop", "text", chunks=parts(str.strip)),
    wrong("line ends changed", "openai-chat-whole-crlf-kept", "text",
          chunks=joined(lambda text: text.replace("\r\n", "\n"))),
    wrong("blanks made one", "openai-chat-whole-spaces-at-eos", "text",
          chunks=joined(lambda text: re.sub(" +", " ", text))),
    wrong("markup escaped", "openai-chat-stream-markup-entity-never", "text", chunks=parts(html.escape)),
    wrong("markup removed", "openai-chat-whole-markup-entity-never", "text",
          chunks=joined(lambda text: re.sub("<[^>]*>", "", text))),
    wrong("the answer cut after 4,000 characters", "openai-chat-whole-long-text-never", "text",
          chunks=joined(lambda t: t[:4000])),
    wrong("the first token is not scanned", "openai-chat-whole-place-0+length-2+says-long-message", "text finish cost",
          generation=at(lambda made: made.tokens == 1, unscanned)),
    wrong("only 64 tokens are scanned", "openai-chat-whole-place-63", "text finish cost",
          scanner=only_first(tokens=64)),
    wrong("only 400 tokens are scanned", "openai-chat-whole-place-400", "text finish cost",
          scanner=only_first(tokens=400)),
    wrong("only 1024 tokens are scanned", "openai-chat-whole-place-1022+length-12", "text finish cost",
          scanner=only_first(tokens=1024)),
    wrong("only 3000 tokens are scanned", "openai-chat-whole-place-4200", "text finish cost",
          scanner=only_first(tokens=3000)),
    wrong("only 2048 characters are scanned", "openai-completions-whole-place-1022+length-12", "text finish cost",
          scanner=only_first(characters=2048)),
    wrong("only 4096 characters are scanned", "openai-completions-whole-script-wide-deep+place-300+skip-5+length-4",
          "text finish cost", scanner=only_first(characters=4096)),
    wrong("only 16384 characters are scanned", "openai-completions-stream-script-wide-deep+place-1201+skip-49+length-8",
          "text finish cost", scanner=only_first(characters=16384)),
    wrong("only 65536 characters are scanned", "openai-completions-stream-script-wide-deep+place-1201+skip-49+length-8",
          "text finish cost", scanner=only_first(characters=65536)),
    wrong("stops across 128 tokens are not found", "generate-stream-place-126", "text finish cost",
          scanner=anew_every(tokens=128)),
    wrong("stops across 256 tokens are not found", "generate-stream-place-254", "text finish cost",
          scanner=anew_every(tokens=256)),
    wrong("stops across 1024 tokens are not found", "generate-whole-place-1022+length-12", "text finish cost",
          scanner=anew_every(tokens=1024)),
    wrong("stops across 2048 characters are not found", "openai-chat-whole-script-wide-deep+place-37+skip-37+length-8",
          "text finish cost", scanner=anew_every(characters=2048)),
    wrong("stops across 4096 characters are not found",
          "openai-chat-stream-script-wide-deep+place-75+skip-17+length-8", "text finish cost",
          scanner=anew_every(characters=4096)),
    wrong("stops across 65536 characters are not found",
          "openai-chat-stream-script-wide-deep+place-1201+skip-49+length-8", "text finish cost",
          scanner=anew_every(characters=65536)),
    wrong("held text is lost at 128 tokens", "openai-chat-stream-place-126", "text finish cost",
          scanner=anew_every(tokens=128, loses=True)),
    wrong("held text is lost at 2048 characters", "ollama-chat-whole-script-wide-deep+place-37+skip-37+length-8",
          "text finish cost", scanner=anew_every(characters=2048, loses=True)),
    wrong("half a character is lost at 128 tokens", "openai-chat-stream-place-126", "text finish cost",
          decoder=decoded_anew_every(128)),
    wrong("half a character is lost at 256 tokens", "openai-chat-stream-place-254", "text finish cost",
          decoder=decoded_anew_every(256)),
    wrong("the last token before the limit is not scanned", "openai-chat-whole-limit-at-the-stop", "text finish",
          generation=at(last_of_the_limit, unscanned)),
    wrong("the last token before EOS is not scanned", "openai-chat-whole-whole-answer", "text finish cost",
          generation=at(last_before_eos, unscanned)),
    wrong("the first token after reasoning is not scanned", "openai-chat-whole-script-thought+place-59+length-4",
          "text finish cost", generation=at(first_after_reasoning, unscanned)),
    wrong("an answer ends at 4096 tokens", "openai-chat-whole-place-4200", "text finish cost",
          ask=limited(lambda limit: min(limit, 4096))),
    wrong("a token is lost at 1000", "openai-chat-whole-place-1022+length-12", "text",
          generation=at(lambda made: made.tokens == 1000, lost)),
    wrong("a token comes twice at 512", "responses-with-stop-stream-script-wide-deep+place-1201+skip-49+length-8",
          "text", generation=at(lambda made: made.tokens == 512, twice)),
    wrong("a stop around the reasoning fires", "openai-chat-stream-think-between", "text", scanner=JoinsAcrossTheEdge,
          generation=TellsTheEdge),
    wrong("a stop inside a token is missed from 400 tokens on",
          "openai-chat-whole-script-wide-deep+place-1200+skip-5", "text", scanner=far_inside(tokens=400)),
    wrong("a stop inside a token is missed from 1,000 tokens on",
          "anthropic-whole-script-wide-deep+place-1200+skip-5", "text", scanner=far_inside(tokens=1000)),
    wrong("a stop inside a token is missed from 2,500 characters on",
          "openai-completions-stream-script-wide-deep+place-300+skip-5+length-4", "text",
          scanner=far_inside(characters=2500)),
    wrong("text is cut where the token begins from 200 tokens on",
          "openai-chat-stream-script-wide-deep+place-300+skip-5+length-4", "text", scanner=far_cut(200)),
    wrong("what is safe is lost where as much is held", "openai-chat-stream-released-and-held", "text",
          scanner=EqualHold),
    wrong("what is safe is lost where as much is held in Ollama", "ollama-generate-stream-released-and-held", "text",
          scanner=EqualHold),
    wrong("U+FEFF is a byte order mark", "openai-chat-stream-feff-first", "text", decoder=without_mark),
    wrong("U+FEFF is a byte order mark in Ollama", "ollama-chat-whole-feff-first", "text", decoder=without_mark),
    wrong("U+FEFF is lost", "anthropic-stream-feff-no-stop", "text",
          chunks=parts(lambda text: text.replace("\ufeff", ""))),
    wrong("an EOS at the limit is the limit", "openai-chat-stream-limit-on-the-eos", "finish", told=limit_on_the_eos),
    wrong("an EOS at the limit is the limit in Responses", "openai-responses-whole-limit-on-the-eos", "finish",
          told=limit_on_the_eos),
    wrong("a piece of the EOS fires", "openai-chat-stream-a-piece-of-the-end-token", "finish",
          generation=EndTokenIsScanned),
    wrong("a piece of the EOS fires in Anthropic", "anthropic-whole-a-piece-of-the-end-token", "finish",
          generation=EndTokenIsScanned),
    wrong("the EOS before a stop is text", "openai-completions-stream-the-end-of-the-end-token", "text",
          generation=EndTokenLeaks),
    wrong("a piece of an opening marker fires", "openai-chat-stream-a-piece-of-a-marker", "text",
          generation=marker_is_scanned(THINK)),
    wrong("a piece of a closing marker fires", "anthropic-stream-the-end-of-a-marker", "text",
          generation=marker_is_scanned(UNTHINK)),
    wrong("stops take the place of the EOS", "ollama-chat-stream-held-at-eos", "text",
          generation=StopsTakeThePlaceOfEos),
    wrong("an ideograph comes twice beside half a character", "openai-chat-stream-cjk-never", "text",
          decoder=IdeographTwice),
    wrong("half a character at the end is lost in whole answers", "openai-chat-whole-half-a-character-at-eos", "text",
          chunks=no_half_in_whole_answers),
    wrong("answers of 24 characters are empty", "ollama-generate-stream-held-at-eos", "text",
          chunks=short_answers_are_lost),
    wrong("reasoning that does not end is said again", "openai-chat-stream-think-unclosed", "text",
          chunks=open_reasoning_is_said_again),
    wrong("reasoning that the limit cuts is the answer", "anthropic-stream-script-thought+place-90+limit-in-reasoning",
          "text", chunks=cut_reasoning_is_the_answer),
    wrong("an id takes what was held with it", "openai-chat-stream-three-tokens-id-within", "text",
          generation=HoldsIdsBack),
    wrong("the first token after a long message is not scanned", "openai-chat-whole-place-0+length-2+says-long-message",
          "text finish cost", generation=at(first_of_a_long_prompt, unscanned)),
    wrong("the first token after a long message is sent and then scanned",
          "anthropic-whole-place-0+length-2+says-long-message", "text",
          generation=at(first_of_a_long_prompt, sent_first)),
    wrong("the first token after a long prompt is lost", "openai-completions-whole-place-0+length-2+says-long-message",
          "text finish cost", generation=at(first_of_a_long_prompt, lost)),
]  # fmt: skip
