"""Decodes a stream with the tokenizer's own ``decode``. Used if ``Vocabulary.native`` is false."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from functools import partial
from itertools import groupby, repeat, takewhile
from operator import eq, itemgetter

from stopscan.tokens._clean_up import CleanUp
from stopscan.tokens._source import Source

# New tokens wait while their text ends in half a character. But half a character has at most `MAX_CHARACTER_TOKENS`
# tokens. So when this many tokens wait, all tokens before the last `MAX_CHARACTER_TOKENS` are emitted.
MAX_PENDING = 16

# A character has at most four bytes, and so at most four tokens.
MAX_CHARACTER_TOKENS = 4

# The context is the tokens that were emitted last. They are decoded again in front of new tokens. If the context has
# more than this many tokens, only the tokens of the last step are kept. A larger limit makes each call of `decode`
# slower. A smaller limit makes more calls necessary.
MAX_CONTEXT = 2

# At the beginning of a stream, the context is this many tokens at the end of the prompt. If their text would begin
# inside a character, more tokens are taken. A shorter prompt is used as a whole. Skipped special tokens are left out.
PROMPT_CONTEXT = 16

# The replacement character: stands for bytes that are not valid UTF-8, such as half a character.
REPLACEMENT = "\ufffd"

# A piece of text, and the position of the last token that has a part in it. The first token of a stream has position 1.
Piece = tuple[str, int]


class Window:
    """Decodes one stream token by token. The text of a token is the text that it adds to the result of ``decode`` when
    it follows the tokens before it.

    Each token costs the same, because only the last few tokens are decoded again, and skipped tokens are never decoded.
    """

    def __init__(self, source: Source, skip_special_tokens: bool, prompt_token_ids: Sequence[int] = ()) -> None:
        self._contains = source.contains
        self._decode = partial(source.decoder(), skip_special_tokens=skip_special_tokens)
        self._skipped = source.special if skip_special_tokens else {}
        self._clean_up = CleanUp() if source.carrier_decode.cleans_up else None
        self._context, self._context_text = self._prompt_context(prompt_token_ids)  # the last emitted tokens
        self._pending: list[int] = []  # the tokens that are not emitted yet
        self._numbers: list[int] = []  # the position of each pending token in the stream, from 1
        self._last_number = 0  # the position of the last emitted token; 0 stands for the prompt
        self._withheld_numbers: list[int] = []  # for each character withheld by the clean-up: its token's position
        if self._clean_up is not None:
            self._clean_up.feed(self._context_text)
            self._withheld_numbers = [0] * len(self._clean_up.tail())

    def step(self, token_id: int, number: int, /) -> tuple[list[Piece], str | None]:
        """Reads a token. Returns the pieces of text that it completes, and its text if it is a skipped special token,
        otherwise ``None``. A skipped token completes no pieces."""
        if token_id in self._skipped:
            return [], self._skipped[token_id]
        self._check(token_id)
        pending, numbers = [*self._pending, token_id], [*self._numbers, number]
        whole, text = self._decode_after_context(pending)
        count = len(pending)
        if not text or text.endswith(REPLACEMENT):
            if count < MAX_PENDING:
                self._pending, self._numbers = pending, numbers
                return [], None
            count -= MAX_CHARACTER_TOKENS
            whole, text = self._decode_after_context(pending[:count])
        pieces = self._split_by_token(text, pending[:count], numbers)
        self._pending, self._numbers = pending[count:], numbers[count:]
        self._move_context(whole, pending[:count])
        return self._clean(pieces), None

    def tail(self) -> list[Piece]:
        """Returns the rest of the text if the stream ends here. Half a character becomes U+FFFD. Changes nothing."""
        other = self.copy()
        _, text = self._decode_after_context(self._pending)
        pieces = other._clean(self._split_by_token(text, self._pending, self._numbers))
        if other._clean_up is not None:
            pieces += _pieces_of(other._clean_up.tail(), other._withheld_numbers)
        return pieces

    def contains(self, token_id: int, /) -> bool:
        """Returns whether the vocabulary has a token with this id."""
        return self._contains(token_id)

    def token_text(self, token_id: int, /) -> str | None:
        """Returns the whole text that a token would have if it came next, or ``None`` if no token has the id."""
        if token_id in self._skipped:
            return self._skipped[token_id]
        if not self._contains(token_id):
            return None
        return self._decode([token_id]) if self._pending else self._decode_after_context([token_id])[1]

    def copy(self) -> Window:
        """Returns a window in the same state. The two go on independently."""
        other = copy(self)
        other._clean_up = self._clean_up and self._clean_up.copy()
        return other

    def state(self) -> bytes:
        """Returns the state as bytes, without the tokenizer."""
        tokens = [self._context, self._context_text, self._pending, self._numbers]
        rest = [self._last_number, self._withheld_numbers, self._clean_up and self._clean_up.held]
        return json.dumps([*tokens, *rest], separators=(",", ":")).encode()

    def resumed(self, state: bytes, /) -> Window:
        """Returns a window over the same tokenizer, in the state that was saved by the method ``state``."""
        other = self.copy()
        context, text, pending, numbers, last, withheld, held = json.loads(state)
        other._context, other._context_text, other._pending, other._numbers = context, text, pending, numbers
        other._last_number, other._withheld_numbers = last, withheld
        if other._clean_up is not None:
            other._clean_up.held = held
        return other

    def spelled(self, markers: Sequence[str], /) -> str | None:
        """Returns the first of ``markers`` that contains a skipped special token and other text, or ``None``.

        This marker would never be found, because the text of the special token is left out.
        """
        special = {text for text in self._skipped.values() if text}
        mixed = (marker for marker in markers if marker not in special and any(text in marker for text in special))
        return next(mixed, None)

    def _prompt_context(self, prompt: Sequence[int]) -> tuple[list[int], str]:
        """Returns the last tokens of the prompt, and their text. Skipped tokens are left out."""
        for token_id in prompt:
            self._check(token_id, "prompt_token_ids: ")
        texts = [token_id for token_id in prompt if token_id not in self._skipped]
        size = PROMPT_CONTEXT
        while size < len(texts) and self._decode(texts[-size:])[:1] in ("", REPLACEMENT):
            size *= 2  # the text begins inside a character
        return texts[-size:], self._decode(texts[-size:])

    def _decode_after_context(self, pending: list[int]) -> tuple[str, str]:
        """Decodes the context (the last emitted tokens) together with the tokens ``pending`` that follow it. Returns
        the whole text, and the part of it that ``pending`` adds."""
        whole = self._decode([*self._context, *pending])
        if whole.startswith(self._context_text):
            return whole, whole[len(self._context_text) :]
        if self._last_number == 0:  # `pending` completes a character of the prompt
            return whole, whole[_common_length(self._context_text, whole) :]
        # If the context and `pending` are decoded together, the text of the context changes. But this text is already
        # emitted. So decode `pending` alone.
        return whole, self._decode(pending)

    def _move_context(self, whole: str, tokens: list[int]) -> None:
        """Adds ``tokens``, which have just been emitted, to the context (the last emitted tokens). ``whole`` is the new
        text of the context. If the context is then too long, it keeps only ``tokens``."""
        self._context = [*self._context, *tokens]
        self._context_text = whole
        # Keep the prompt in the context until the first text is emitted. The first tokens of a stream may only complete
        # a character of the prompt, and would have no text without the prompt.
        if len(self._context) > MAX_CONTEXT and self._last_number > 0:
            self._context = tokens
            self._context_text = self._decode(tokens)

    def _split_by_token(self, text: str, pending: list[int], numbers: list[int]) -> list[Piece]:
        """Returns ``text`` in pieces, one for each of the ``pending`` tokens that completes a character."""
        if len(pending) == 1:
            return [(text, numbers[0])]
        texts = [self._decode_after_context(pending[:count])[1] if count else "" for count in range(len(pending))]
        starts = [_common_length(before, text) for before in texts]
        for index, (before, after) in enumerate(zip(texts, [*texts[1:], text], strict=False)):
            if before == after and after.endswith(REPLACEMENT) and starts[index] == len(before):
                starts[index] -= 1  # the token continues half a character: the U+FFFD at the end becomes its piece
        pieces = zip(starts, [*starts[1:], len(text)], numbers, strict=False)
        return [(text[start:end], number) for start, end, number in pieces if start < end]

    def _clean(self, pieces: list[Piece]) -> list[Piece]:
        """Returns ``pieces``, with the spaces cleaned up if the user's tokenizer object cleans up spaces."""
        if self._clean_up is None:
            self._last_number = pieces[-1][1] if pieces else self._last_number
            return pieces
        cleaned: list[Piece] = []
        for text, number in pieces:
            before = self._clean_up.tail()
            safe = self._clean_up.feed(text)
            after = safe + self._clean_up.tail()
            shared = _common_length(before, after)
            numbers = [*self._withheld_numbers[:shared], *repeat(number, len(after) - shared)]
            cleaned += _pieces_of(safe, numbers)
            self._withheld_numbers = numbers[len(safe) :]
            self._last_number = number
        return cleaned

    def _check(self, token_id: int, name: str = "") -> None:
        if not self._contains(token_id):
            raise ValueError(f"{name}token id {token_id} is not in the vocabulary")


def _pieces_of(text: str, numbers: list[int]) -> list[Piece]:
    """Returns ``text`` in pieces, one for each token. ``numbers`` says for each character to which token it belongs: it
    has the position of this token in the stream. The characters of the prompt have position 0, and are left out."""
    runs = groupby(zip(text, numbers, strict=False), key=itemgetter(1))
    return [("".join(character for character, _ in run), number) for number, run in runs if number > 0]


def _common_length(text: str, other: str) -> int:
    return sum(takewhile(bool, map(eq, text, other)))
