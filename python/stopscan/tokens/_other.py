"""Reads tokenizers of unknown kinds: any object with a method ``decode``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from inspect import signature
from typing import Any

from stopscan.tokens._source import CarrierDecode, Tables


class Other:
    """A tokenizer of an unknown kind. Uses only its method ``decode``, and its special tokens if it has an attribute
    ``all_special_ids`` or ``added_tokens_decoder``."""

    carrier_decode = CarrierDecode()
    skips = (True, False)

    def __init__(self, tokenizer: Any) -> None:
        self.carrier = self.key = tokenizer
        self._known: dict[int, bool] = {}

    @property
    def fingerprint(self) -> Hashable:
        sizes = (getattr(self.carrier, name, None) for name in ("vocab_size", "n_words", "n_vocab"))
        return next((size for size in sizes if isinstance(size, int)), 0)

    @cached_property
    def special(self) -> Mapping[int, str]:
        named = {*(getattr(self.carrier, "all_special_ids", None) or ())}
        added = getattr(self.carrier, "added_tokens_decoder", None) or {}
        named |= {token_id for token_id, token in added.items() if getattr(token, "special", False)}
        return {token_id: self._decode([token_id]) for token_id in named if self.contains(token_id)}

    def compare_carrier(self) -> CarrierDecode:
        return self.carrier_decode

    def tables(self) -> Tables | None:
        return None

    def contains(self, token_id: int, /) -> bool:
        if token_id not in self._known:
            try:
                known = token_id >= 0 and isinstance(self._decode([token_id]), str)
            except Exception:  # the id is unknown: each library has its own error for that
                known = False
            self._known[token_id] = known
        return self._known[token_id]

    def decoder(self) -> Callable[..., str]:
        return self._decode

    @cached_property
    def _takes_skip(self) -> bool:
        """Whether ``decode`` has a parameter ``skip_special_tokens``. If it has, each call passes the argument, because
        the default may be true."""
        with suppress(TypeError, ValueError):  # a function in C may have no signature
            return "skip_special_tokens" in signature(self.carrier.decode).parameters
        return False

    def _decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        shown = [each for each in token_ids if not (skip_special_tokens and each in self.special)]
        options = {"skip_special_tokens": skip_special_tokens} if self._takes_skip else {}
        text: str = self.carrier.decode(shown, **options) if shown else ""
        return text
