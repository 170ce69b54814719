"""The encodings of tiktoken."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property

from tiktoken import Encoding

from stopscan.tokens._source import CarrierDecode, Tables


class Tiktoken:
    """An encoding of tiktoken, whose ``decode`` skips no special tokens. They are skipped here."""

    carrier_decode = CarrierDecode()
    skips = (True, False)

    def __init__(self, encoding: Encoding) -> None:
        self.carrier = self.key = self._encoding = encoding

    @property
    def fingerprint(self) -> Hashable:
        return self._encoding.n_vocab  # an encoding cannot be changed

    @cached_property
    def special(self) -> Mapping[int, str]:
        names = self._encoding.special_tokens_set
        return {self._encoding.encode_single_token(name): name for name in names}

    def compare_carrier(self) -> CarrierDecode:
        return self.carrier_decode

    def tables(self) -> Tables | None:
        return Tables([self._bytes(token_id) for token_id in range(self._encoding.n_vocab)], {*self.special})

    def contains(self, token_id: int, /) -> bool:
        return 0 <= token_id < self._encoding.n_vocab and self._bytes(token_id) is not None

    def decoder(self) -> Callable[..., str]:
        return self._decode

    def _decode(self, token_ids: Sequence[int], skip_special_tokens: bool) -> str:
        if skip_special_tokens:
            token_ids = [token_id for token_id in token_ids if token_id not in self.special]
        return self._encoding.decode(token_ids)

    def _bytes(self, token_id: int) -> bytes | None:
        try:
            return self._encoding.decode_single_token_bytes(token_id)
        except KeyError:  # no token has the id
            return None
