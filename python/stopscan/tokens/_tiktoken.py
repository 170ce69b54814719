"""Reads the encodings of tiktoken."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

from tiktoken import Encoding

from stopscan.tokens._other import Other
from stopscan.tokens._samples import sequences
from stopscan.tokens._source import CarrierDecode, Tables


class Tiktoken:
    """An encoding of tiktoken. tiktoken's ``decode`` cannot skip special tokens, so this class skips them."""

    carrier_decode = CarrierDecode()
    skips = (True, False)

    def __init__(self, encoding: Encoding, carrier: Any) -> None:
        self.key = self._encoding = encoding
        self.carrier = carrier

    @property
    def fingerprint(self) -> Hashable:
        return self._encoding.n_vocab, type(self.carrier)  # an encoding cannot be changed

    @cached_property
    def special(self) -> Mapping[int, str]:
        names = self._encoding.special_tokens_set
        return {self._encoding.encode_single_token(name): name for name in names}

    def compare_carrier(self) -> CarrierDecode:
        if self.carrier is self._encoding or not hasattr(self.carrier, "decode"):
            return self.carrier_decode
        known = [token_id for token_id in range(self._encoding.n_vocab) if self.contains(token_id)]
        samples = sequences(known, [*self.special], count=8)
        return CarrierDecode(differs=any(self._encoding.decode(ids) != self.carrier.decode(ids) for ids in samples))

    def tables(self) -> Tables | None:
        if self.carrier_decode.differs:
            return None
        return Tables([self._bytes(token_id) for token_id in range(self._encoding.n_vocab)], {*self.special})

    def contains(self, token_id: int, /) -> bool:
        return 0 <= token_id < self._encoding.n_vocab and self._bytes(token_id) is not None

    def decoder(self) -> Callable[..., str]:
        return Other(self.carrier)._decode if self.carrier_decode.differs else self._decode

    def _decode(self, token_ids: Sequence[int], skip_special_tokens: bool) -> str:
        if skip_special_tokens:
            token_ids = [token_id for token_id in token_ids if token_id not in self.special]
        return self._encoding.decode(token_ids)

    def _bytes(self, token_id: int) -> bytes | None:
        try:
            return self._encoding.decode_single_token_bytes(token_id)
        except KeyError:  # no token has the id
            return None
