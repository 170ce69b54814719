"""Reads tokenizers of the tokenizers library. transformers' fast tokenizers and mlx-lm's wrapper also contain one."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer

from stopscan.tokens._clean_up import cleaned_up
from stopscan.tokens._samples import sequences
from stopscan.tokens._source import CarrierDecode, Tables

# Text that a clean-up of spaces changes.
PUNCTUATION = "a . b ? c ! d , e ' f n't g 'm h 's i 've j 're"

# The tokenizers library has ids of 32 bits.
ID_LIMIT = 2**32


class HuggingFace:
    """A tokenizer of the tokenizers library. ``carrier`` is the object that has it, or the tokenizer itself."""

    skips = (True, False)

    def __init__(self, tokenizer: Tokenizer, carrier: Any) -> None:
        self.carrier_decode = CarrierDecode()
        self.carrier = carrier
        self._tokenizer = tokenizer

    @property
    def key(self) -> Tokenizer:
        return self._tokenizer

    @property
    def fingerprint(self) -> Hashable:
        clean_up = getattr(self.carrier, "clean_up_tokenization_spaces", None)
        return self._description, self._tokenizer.get_vocab_size(), type(self.carrier), clean_up

    @cached_property
    def special(self) -> Mapping[int, str]:
        added = self._tokenizer.get_added_tokens_decoder()
        return {token_id: token.content for token_id, token in added.items() if self._skips(token_id, token.special)}

    def _skips(self, token_id: int, special: bool) -> bool:
        """Returns whether ``decode`` leaves the token out as a special token.

        Calls ``decode`` to find out. The flag ``special`` is not reliable: it can be wrong for a token that was added
        twice, and for a token that the normalizer changes.
        """
        twice = [token_id, token_id]  # two ids, because `decode` may strip the space of the first token
        decode = self._tokenizer.decode
        return decode(twice) == "" and (special or decode(twice, skip_special_tokens=False) != "")

    @cached_property
    def _description(self) -> str | None:
        """The tokenizer's decoder as JSON. A decoder makes text of tokens. ``None`` if the tokenizer has no decoder, or
        if the decoder is written in Python."""
        if self._tokenizer.decoder is None:
            return None
        try:
            state: bytes = self._tokenizer.decoder.__getstate__()
        except Exception:  # the library raises plain `Exception`s
            return None
        return state.decode()

    def compare_carrier(self) -> CarrierDecode:
        decode = self._tokenizer.decode
        if self.carrier is self._tokenizer or not hasattr(self.carrier, "decode"):
            return CarrierDecode()
        punctuation = self._tokenizer.encode(PUNCTUATION, add_special_tokens=False).ids
        samples = sequences(range(self._tokenizer.get_vocab_size()), [*self.special], count=8)
        pairs = [
            (decode(ids, skip_special_tokens=skip), self.carrier.decode(ids, skip_special_tokens=skip))
            for ids in (punctuation, *samples)
            for skip in self.skips
        ]
        if all(plain == text for plain, text in pairs):
            return CarrierDecode()
        cleans_up = all(cleaned_up(plain) == text for plain, text in pairs)
        return CarrierDecode(cleans_up=cleans_up, differs=not cleans_up)

    def tables(self) -> Tables | None:
        if self._description is None or self.carrier_decode != CarrierDecode():
            return None
        # Make the tokenizer's JSON here, without the normalizer and the pre-tokenizer. Decoding does not need them, and
        # the tokenizer's `to_str()` fails if one of them is a Python object.
        added = self._tokenizer.get_added_tokens_decoder()
        left_out = {*self.special.values()}
        tokens = [
            {"id": token_id, "content": token.content, "special": token.content in left_out}
            for token_id, token in added.items()
        ]
        model: bytes = self._tokenizer.model.__getstate__()
        parts = b'{"added_tokens": %s, "decoder": %s, "model": %s}'
        return Tables(parts % (json.dumps(tokens).encode(), self._description.encode(), model))

    def contains(self, token_id: int, /) -> bool:
        return 0 <= token_id < ID_LIMIT and self._tokenizer.id_to_token(token_id) is not None

    def decoder(self) -> Callable[..., str]:
        carrier = self.carrier if self.carrier_decode.differs else self._tokenizer
        decode: Callable[..., str] = carrier.decode
        return decode
