"""Reads the tokenizers of mistral-common: tekken and SentencePiece."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from stopscan.tokens._source import CarrierDecode, Tables, Token

BYTE = re.compile("<0x([0-9A-F]{2})>")

T = TypeVar("T", bound="Tekkenizer | SentencePieceTokenizer")


class _Tokenizer(Generic[T]):
    """The base of mistral-common's two kinds of tokenizers."""

    carrier_decode = CarrierDecode()

    def __init__(self, tokenizer: T) -> None:
        self._tokenizer: T = tokenizer
        self.carrier = self.key = tokenizer

    @property
    def fingerprint(self) -> Hashable:
        return self._tokenizer.n_words  # never changes, because a Mistral tokenizer cannot gain or lose tokens

    @cached_property
    def special(self) -> Mapping[int, str]:
        return {token_id: self._tokenizer.id_to_piece(token_id) for token_id in self._tokenizer.special_ids}

    def compare_carrier(self) -> CarrierDecode:
        return self.carrier_decode

    def contains(self, token_id: int, /) -> bool:
        return 0 <= token_id < self._tokenizer.n_words

    def decoder(self) -> Callable[..., str]:
        return self._decode

    def _decode(self, token_ids: Sequence[int], skip_special_tokens: bool) -> str:
        raise NotImplementedError


class Tekken(_Tokenizer[Tekkenizer]):
    """A tekken tokenizer. Its tokens are bytes. Bytes before and after a special token never form one character."""

    skips = (True, False)

    def tables(self) -> Tables | None:
        keep = SpecialTokenPolicy.KEEP
        tokens: list[Token] = [
            self._tokenizer.id_to_byte_piece(token_id, keep) for token_id in range(self._tokenizer.n_words)
        ]
        return Tables(tokens, {*self.special}, special_ends_character=True)

    def _decode(self, token_ids: Sequence[int], skip_special_tokens: bool) -> str:
        policy = SpecialTokenPolicy.IGNORE if skip_special_tokens else SpecialTokenPolicy.KEEP
        return self._tokenizer.decode([*token_ids], policy)


class SentencePiece(_Tokenizer[SentencePieceTokenizer]):
    """A SentencePiece model. Each byte that is not valid UTF-8 becomes one U+FFFD. Bytes before and after a special
    token never form one character.

    If ``decode`` does not skip special tokens, it returns the pieces of the model instead of text. So the self-check of
    a vocabulary compares its text only with the text of a ``decode`` that skips special tokens.
    """

    skips = (True,)

    def tables(self) -> Tables | None:
        tokens: list[Token] = []
        firsts = {}
        for token_id, piece in enumerate(self._tokenizer.vocab()):
            if byte := BYTE.fullmatch(piece):
                tokens.append(int(byte[1], 16))
            elif token_id == self._tokenizer.unk_id:
                firsts[token_id] = self._tokenizer.decode([token_id])
                tokens.append(firsts[token_id])
            else:
                tokens.append(piece.replace("▁", " "))
        return Tables(tokens, {*self.special}, firsts, "bytes", strip_first_space=True, special_ends_character=True)

    def _decode(self, token_ids: Sequence[int], skip_special_tokens: bool) -> str:
        return self._tokenizer.decode([*token_ids])
