"""Decoding by the tokenizer's own ``decode``, for vocabularies whose text is not made from the bytes of single ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from functools import partial
from itertools import groupby, repeat, takewhile
from operator import eq, itemgetter

from stopscan.tokens._clean_up import CleanUp
from stopscan.tokens._source import Source

# So many tokens that end in half a character are decoded together; longer runs, which are none, are cut.
LIMIT = 16

# Of those, so many may still be one character.
CHARACTER = 4

# Before new tokens, at most so many are decoded again: few calls, and short ones.
CONTEXT = 2

# How many of the prompt's last tokens decide how the text goes on, at least.
PROMPT = 16

# What `decode` makes of half a character.
REPLACEMENT = "\ufffd"

# A piece of text, and the number of the last token that has a part in it.
Piece = tuple[str, int]


class Window:
    """Decodes one stream: the text of a token is what it adds to that of the tokens before it, decoded together.

    It decodes only as many tokens as a character may need. Tokens that are skipped never come into it, so that each
    token costs the same, whatever came before.
    """

    def __init__(self, source: Source, skip_special_tokens: bool, prompt_token_ids: Sequence[int] = ()) -> None:
        self._contains = source.contains
        self._decode = partial(source.decoder(), skip_special_tokens=skip_special_tokens)
        self._skipped = source.special if skip_special_tokens else {}
        self._clean_up = CleanUp() if source.habits.cleans_up else None
        self._given, self._text = self._end_of(prompt_token_ids)  # the last tokens that were given out
        self._pending: list[int] = []  # the tokens since, and their numbers
        self._numbers: list[int] = []
        self._last = 0  # the number of the token that was given out last; 0 is the prompt
        self._withheld: list[int] = []  # the number of each character that the clean-up withholds
        if self._clean_up is not None:
            self._clean_up.feed(self._text)
            self._withheld = [0] * len(self._clean_up.tail())

    def step(self, token_id: int, number: int, /) -> tuple[list[Piece], str | None]:
        """The pieces of text that a token completes; the token itself if it is a special one that is skipped."""
        if token_id in self._skipped:
            return [], self._skipped[token_id]
        self._check(token_id)
        pending, numbers = [*self._pending, token_id], [*self._numbers, number]
        whole, text = self._added(pending)
        count = len(pending)
        if not text or text.endswith(REPLACEMENT):
            if count < LIMIT:
                self._pending, self._numbers = pending, numbers
                return [], None
            count -= CHARACTER
            whole, text = self._added(pending[:count])
        pieces = self._pieces(text, pending[:count], numbers)
        self._pending, self._numbers = pending[count:], numbers[count:]
        self._give_out(whole, pending[:count])
        return self._cleaned(pieces), None

    def tail(self) -> list[Piece]:
        """The rest of the text, if the stream ends here. Half a character is U+FFFD. Nothing changes."""
        other = self.copy()
        pieces = other._cleaned(self._pieces(self._added(self._pending)[1], self._pending, self._numbers))
        if other._clean_up is not None:
            pieces += _numbered(other._clean_up.tail(), other._withheld)
        return pieces

    def contains(self, token_id: int, /) -> bool:
        """Whether the vocabulary has a token of this id."""
        return self._contains(token_id)

    def token_text(self, token_id: int, /) -> str | None:
        """The whole text of a token, if it came next. ``None`` if no token has the id."""
        if token_id in self._skipped:
            return self._skipped[token_id]
        if not self._contains(token_id):
            return None
        return self._decode([token_id]) if self._pending else self._added([token_id])[1]

    def copy(self) -> Window:
        """A window in the same state that goes on independently."""
        other = copy(self)
        other._clean_up = self._clean_up and self._clean_up.copy()
        return other

    def state(self) -> bytes:
        """The state as bytes, without the tokenizer."""
        given = [self._given, self._text, self._pending, self._numbers, self._last, self._withheld]
        return json.dumps([*given, self._clean_up and self._clean_up.held], separators=(",", ":")).encode()

    def resumed(self, state: bytes, /) -> Window:
        """A window over the same tokenizer in the state that ``state`` says."""
        other = self.copy()
        given, text, pending, numbers, last, withheld, held = json.loads(state)
        other._given, other._text, other._pending, other._numbers = given, text, pending, numbers
        other._last, other._withheld = last, withheld
        if other._clean_up is not None:
            other._clean_up.held = held
        return other

    def spelled(self, markers: Sequence[str], /) -> str | None:
        """The first of the markers that has a special token in it which is skipped, and is not one itself."""
        special = {text for text in self._skipped.values() if text}
        mixed = (marker for marker in markers if marker not in special and any(text in marker for text in special))
        return next(mixed, None)

    def _end_of(self, prompt: Sequence[int]) -> tuple[list[int], str]:
        """The prompt's last tokens, and their text."""
        for token_id in prompt:
            self._check(token_id, "prompt_token_ids: ")
        texts = [token_id for token_id in prompt if token_id not in self._skipped]
        size = PROMPT
        while size < len(texts) and self._decode(texts[-size:])[:1] in ("", REPLACEMENT):
            size *= 2  # it begins within a character
        return texts[-size:], self._decode(texts[-size:])

    def _added(self, pending: list[int]) -> tuple[str, str]:
        """The text of the tokens that were given out with those, and what they add."""
        whole = self._decode([*self._given, *pending])
        if whole.startswith(self._text):
            return whole, whole[len(self._text) :]
        if self._last == 0:  # half a character at the end of the prompt is completed
            return whole, whole[_common(self._text, whole) :]
        return whole, self._decode(pending)  # `decode` takes back what was given out

    def _give_out(self, whole: str, tokens: list[int]) -> None:
        self._given = [*self._given, *tokens]
        self._text = whole
        # Right behind the prompt they may complete a character of the prompt, and be none alone.
        if len(self._given) > CONTEXT and self._last > 0:
            self._given = tokens
            self._text = self._decode(tokens)

    def _pieces(self, text: str, pending: list[int], numbers: list[int]) -> list[Piece]:
        """``text`` by the tokens that it is of."""
        if len(pending) == 1:
            return [(text, numbers[0])]
        texts = [self._added(pending[:count])[1] if count else "" for count in range(len(pending))]
        starts = [_common(before, text) for before in texts]
        for index, (before, after) in enumerate(zip(texts, [*texts[1:], text], strict=False)):
            if before == after and after.endswith(REPLACEMENT) and starts[index] == len(before):
                starts[index] -= 1  # it has a part in the same half of a character
        pieces = zip(starts, [*starts[1:], len(text)], numbers, strict=False)
        return [(text[start:end], number) for start, end, number in pieces if start < end]

    def _cleaned(self, pieces: list[Piece]) -> list[Piece]:
        """``pieces`` after the clean-up, if there is one."""
        if self._clean_up is None:
            self._last = pieces[-1][1] if pieces else self._last
            return pieces
        cleaned: list[Piece] = []
        for text, number in pieces:
            before = self._clean_up.tail()
            safe = self._clean_up.feed(text)
            after = safe + self._clean_up.tail()
            shared = _common(before, after)
            numbers = [*self._withheld[:shared], *repeat(number, len(after) - shared)]
            cleaned += _numbered(safe, numbers)
            self._withheld = numbers[len(safe) :]
            self._last = number
        return cleaned

    def _check(self, token_id: int, name: str = "") -> None:
        if not self._contains(token_id):
            raise ValueError(f"{name}token id {token_id} is not in the vocabulary")


def _numbered(text: str, numbers: list[int]) -> list[Piece]:
    """``text`` by the numbers of its characters, without that of the prompt."""
    runs = groupby(zip(text, numbers, strict=False), key=itemgetter(1))
    return [("".join(character for character, _ in run), number) for number, run in runs if number > 0]


def _common(text: str, other: str) -> int:
    return sum(takewhile(bool, map(eq, text, other)))
