"""Regions whose markers ``skip_special_tokens`` leaves out of the text: their token ids show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stopscan import Repeat, StopScanner, StopSet
from stopscan._engine.sets import Pair, Pairs

if TYPE_CHECKING:
    from vllm.tokenizers import TokenizerLike

Ids = tuple[int, ...]
# The regions whose opening marker ends with a token: the ids of both markers.
Table = dict[int, list[tuple[Ids, Ids]]]

# How many of a prompt's last tokens are looked at: chat templates end with the marker and line breaks.
PROMPT_TOKENS = 32


class HiddenRegions:
    """The regions of one stream that token ids open and close; it begins inside one if there is a ``closing``.

    ``loops`` finds what ``repeat`` asks for in the text of a region, which begins anew with each.
    """

    def __init__(self, table: Table, closing: Ids | None, repeat: Repeat | None) -> None:
        self._table = table
        self._closing = closing
        self.loops = StopScanner(StopSet(repeat=repeat)) if repeat else None

    def cover(self, token_ids: Sequence[int]) -> bool:
        """Whether the last of ``token_ids`` is in a region, markers included; to be asked once for each token."""
        if self._closing is not None:
            if _ends_with(token_ids, self._closing):
                self._closing = None
            return True
        for opening, closing in self._table.get(token_ids[-1], ()):
            if _ends_with(token_ids, opening):
                self._closing = closing
                if self.loops:
                    self.loops.reset()
                return True
        return False


class HiddenPairs:
    """The regions of a set of which the text shows not all, with the token ids of their markers."""

    def __init__(self, tokenizer: TokenizerLike, protect: Pairs) -> None:
        self.closing: dict[Pair, Ids] = {}
        self.table: Table = {}
        for pair in protect:
            opening, closing = (_encode(tokenizer, marker) for marker in pair)
            if not (_shown(tokenizer, opening) and _shown(tokenizer, closing)):
                self.closing[pair] = closing
                self.table.setdefault(opening[-1], []).append((opening, closing))
        self.shown = tuple(pair for pair in protect if pair not in self.closing)


def prompt_end(tokenizer: TokenizerLike, prompt_token_ids: Sequence[int]) -> str:
    """The text of the prompt's last tokens, special ones included."""
    tail = list(prompt_token_ids[-PROMPT_TOKENS:])
    return tokenizer.decode(tail, skip_special_tokens=False) if tail else ""


def _encode(tokenizer: Any, marker: str) -> Ids:
    # transformers' own `encode` starts a thread for each core.
    backend: Any = getattr(tokenizer, "_tokenizer", None)
    if hasattr(backend, "encode_batch"):
        return tuple(backend.encode(marker, add_special_tokens=False).ids)
    return tuple(tokenizer.encode(marker, add_special_tokens=False))


def _shown(tokenizer: TokenizerLike, token_ids: Ids) -> bool:
    whole, shown = (tokenizer.decode(list(token_ids), skip_special_tokens=skip) for skip in (False, True))
    return bool(whole == shown)


def _ends_with(token_ids: Sequence[int], marker: Ids) -> bool:
    return tuple(token_ids[-len(marker) :]) == marker
