"""The reference for the text of token ids. Each character comes with the position of the last token that spells it.

Each call decodes all tokens anew. Property tests compare this reference with the tokenizer's own `decode`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import eq
from typing import Literal

# A character, and the position of the last token that spells it. Positions are counted from 1. The position 0 stands
# for all tokens of the prompt.
Character = tuple[str, int]
Run = list[tuple[int, int]]  # bytes, each with the number of its token

# What a token stands for. A `str` is text, `bytes` may be a part of a character, and an `int` is a byte token such as
# `<0xE4>`.
Raw = str | bytes | int


@dataclass
class Book:
    """A vocabulary whose text is made from the bytes of single tokens."""

    raw: Callable[[int], Raw]
    strays: Literal["parts", "runs", "bytes"]
    special: frozenset[int]
    # The text or bytes of a token that is the first one of its stream. `None` if `raw` gives the same.
    first: Callable[[int], Raw] | None = None
    special_ends_character: bool = False
    # Whether the tokenizer's `decode` gives another text than `characters`. This happens because `decode` also replaces
    # valid characters that come before an invalid byte. `characters` sets this field.
    takes_back: bool = field(default=False, init=False)
    # The space at the start of the text, if there is one. The decoder strips this space.
    _stripped: Character | None = field(default=None, init=False)

    def characters(
        self, prompt: Sequence[int], token_ids: Sequence[int], *, skip_special_tokens: bool, ended: bool
    ) -> list[Character]:
        """The text that no later token can change, without the prompt's own text."""
        self.takes_back = False
        out: list[Character] = []
        run: Run = []
        first, self._stripped = self.first, None
        numbers = [*[0] * len(prompt), *range(1, len(token_ids) + 1)]
        for number, token_id in zip(numbers, [*prompt, *token_ids], strict=True):
            if token_id in self.special:
                if self.special_ends_character:
                    out, run = out + self._read(run, ended=True), []
                if skip_special_tokens:
                    continue
            raw = (first or self.raw)(token_id)
            if first is not None and raw == ord(" ") and self.strays == "runs":
                self._stripped = (" ", number)  # the decoder strips a space at the start of the text
            first = None
            if isinstance(raw, int):
                run.append((raw, number))
            elif isinstance(raw, bytes):
                run += [(byte, number) for byte in raw]
            else:
                out, run = out + self._read(run, ended=True), []
                out += [(character, number) for character in raw]
        out += self._read(run, ended=ended)
        if out[:1] == [self._stripped]:
            del out[0]
        return [(character, number) for character, number in out if number > 0]

    def _read(self, run: Run, *, ended: bool) -> list[Character]:
        out: list[Character] = []
        data = bytes(byte for byte, _ in run)
        at = 0
        while at < len(data):
            error = None
            try:
                good = data[at:].decode()
            except UnicodeDecodeError as wrong:
                error, good = wrong, data[at : at + wrong.start].decode()
            for character in good:
                at += len(character.encode())
                out.append((character, run[at - 1][1]))
            if error is None or (error.reason == "unexpected end of data" and not ended):
                break
            if out == [self._stripped]:  # before a stray byte, this space is not stripped, but becomes U+FFFD
                out = [("\ufffd", out[0][1])]
            else:
                self.takes_back |= self.strays == "runs" and bool(out)
            size = {"parts": error.end - error.start, "runs": len(data) - at, "bytes": 1}[self.strays]
            of = run[at : at + size]
            if self.strays == "parts":
                # If the prompt began the character, the U+FFFD belongs to the prompt's text.
                out.append(("\ufffd", of[-1][1] if of[0][1] else 0))
            else:
                out += [("\ufffd", number) for _, number in of]
            at += size
        return out


@dataclass
class Decoded:
    """A vocabulary whose text only `decode` can give. `characters` leaves out the end of the text if later tokens may
    change it."""

    decode: Callable[[Sequence[int], bool], str]
    withheld: Callable[[str], int] = lambda text: len(text) - len(text.rstrip("\ufffd"))
    takes_back = False

    def characters(
        self, prompt: Sequence[int], token_ids: Sequence[int], *, skip_special_tokens: bool, ended: bool
    ) -> list[Character]:
        def text(count: int) -> str:
            return self.decode([*prompt, *token_ids[:count]], skip_special_tokens)

        whole = text(len(token_ids))
        certain = whole if ended else whole[: len(whole) - self.withheld(whole)]
        starts = [common(text(count), whole) for count in range(len(token_ids))]
        spans = zip(starts, [*starts[1:], len(whole)], strict=False)
        numbered = [(at, number) for number, (start, end) in enumerate(spans, 1) for at in range(start, end)]
        return [(certain[at], number) for at, number in numbered if at < len(certain)]


def common(text: str, other: str) -> int:
    return sum(takewhile(bool, map(eq, text, other)))
