"""Regions whose markers ``skip_special_tokens`` leaves out of the text: their token ids show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stopscan._protect import PROMPT_TOKENS, Region, Regions

if TYPE_CHECKING:
    from vllm.tokenizers import TokenizerLike

Ids = tuple[int, ...]


class HiddenRegions:
    """The regions of one stream that token ids open and close; it begins inside one if there is a ``closing``."""

    def __init__(self, pairs: Mapping[Ids, Ids], closing: Ids | None) -> None:
        self._pairs = pairs
        self._closing = closing

    def cover(self, token_ids: Sequence[int]) -> bool:
        """Whether the last of ``token_ids`` is in a region, markers included; to be asked once for each token."""
        if self._closing is not None:
            if _ends_with(token_ids, self._closing):
                self._closing = None
            return True
        for opening, closing in self._pairs.items():
            if _ends_with(token_ids, opening):
                self._closing = closing
                return True
        return False


def hidden_markers(tokenizer: TokenizerLike, protect: Regions) -> dict[Region, tuple[Ids, Ids]]:
    """The regions of which the text shows not all, with the token ids of their markers."""
    found = {}
    for pair in protect:
        opening, closing = (tuple(tokenizer.encode(marker, add_special_tokens=False)) for marker in pair)
        if not (_shown(tokenizer, opening) and _shown(tokenizer, closing)):
            found[pair] = (opening, closing)
    return found


def prompt_end(tokenizer: TokenizerLike, prompt_token_ids: Sequence[int]) -> str:
    """The text of the prompt's last tokens, special ones included."""
    tail = list(prompt_token_ids[-PROMPT_TOKENS:])
    return tokenizer.decode(tail, skip_special_tokens=False) if tail else ""


def _shown(tokenizer: TokenizerLike, token_ids: Ids) -> bool:
    whole, shown = (tokenizer.decode(list(token_ids), skip_special_tokens=skip) for skip in (False, True))
    return bool(whole == shown)


def _ends_with(token_ids: Sequence[int], marker: Ids) -> bool:
    return tuple(token_ids[-len(marker) :]) == marker
