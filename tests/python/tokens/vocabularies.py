"""Vocabularies of every family: real ones, trained ones and ones made for a test. `Vocabulary.spell` encodes text."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from books import Book, Raw
from tokenizers import Tokenizer, decoders, models

from stopscan_conformance.reciter import _byte_spelling

SPELLING = _byte_spelling()
BYTES = {character: byte for byte, character in enumerate(SPELLING)}


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """A tokenizer, functions that encode and decode with it, and the reference for its text (`book`)."""

    name: str
    tokenizer: Any
    encode: Callable[[str], list[int]]
    decode: Callable[[Sequence[int], bool], str]
    book: Book
    size: int
    special: list[int]

    @property
    def skips(self) -> list[bool]:
        """The values of `skip_special_tokens` to test. SentencePiece's `decode` always skips special tokens."""
        return [True] if self.book.strays == "bytes" else [True, False]

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def pieces(self) -> dict[bytes, int]:
        """Maps the bytes of a token to its id, for all tokens that are neither special nor byte tokens."""
        pieces = {}
        for token_id in set(range(self.size)) - set(self.special):
            raw = self.book.raw(token_id)
            if not isinstance(raw, int) and raw:
                pieces[raw.encode() if isinstance(raw, str) else raw] = token_id
        return pieces

    @cached_property
    def byte_tokens(self) -> dict[int, int]:
        raw = {token_id: self.book.raw(token_id) for token_id in range(self.size)}
        return {text: token_id for token_id, text in raw.items() if isinstance(text, int)}

    def spell(self, text: str | bytes, wishes: Iterable[int] = (0,)) -> list[int]:
        """Returns token ids that spell `text`, which may be invalid UTF-8. Leaves out what no token spells.

        `wishes` has the greatest length of each token. If there are more tokens than lengths, the lengths are used
        again from the first one on. Each token is as long as its greatest length allows. If tokens may be parts of
        characters, lengths are in bytes. Otherwise they are in characters, and the length 0 asks for byte tokens.
        """
        if isinstance(text, bytes) and self.book.strays != "parts":
            return [self.byte_tokens[byte] for byte in text]
        data = text if isinstance(text, bytes) else text.encode()
        ids = []
        for wish in cycle(wishes):
            if not data:
                return ids
            size = max(wish, 1)
            # If tokens are not parts of characters, `wish` counts characters, and 0 asks for byte tokens. For a space,
            # 0 counts as 1.
            if self.book.strays != "parts":
                size = len(data.decode()[: max(wish, data[:1] == b" ")].encode())
            piece = next((data[:length] for length in range(size, 0, -1) if data[:length] in self.pieces), b"")
            if piece:
                ids.append(self.pieces[piece])
            elif data[0] in self.byte_tokens:
                piece = data[: len(data.decode()[0].encode())]
                ids += [self.byte_tokens[byte] for byte in piece]
            data = data[max(len(piece), 1) :].lstrip(b"" if self.book.strays == "parts" else CONTINUES)
        raise AssertionError("no wishes")


CONTINUES = bytes(range(0x80, 0xC0))


def data(package: str, path: str) -> str:
    """The path of a file in an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed: its vocabulary is needed")
    return str(Path(spec.submodule_search_locations[0], path))


def encoder(tokenizer: Tokenizer) -> Callable[[str], list[int]]:
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def decoder(tokenizer: Tokenizer) -> Callable[[Sequence[int], bool], str]:
    return lambda ids, skip: tokenizer.decode(ids, skip_special_tokens=skip)


def byte_level(name: str, tokenizer: Tokenizer, carrier: Any = None) -> Vocabulary:
    """A byte-level vocabulary of the tokenizers library: each byte is spelled as a letter, as in GPT-2."""

    def raw(token_id: int) -> Raw:
        token = tokenizer.id_to_token(token_id)
        return bytes(BYTES[c] for c in token) if all(c in BYTES for c in token) else token.encode()

    special = [i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    book = Book(raw, "parts", frozenset(special))
    size = max(tokenizer.get_vocab().values()) + 1
    return Vocabulary(name, carrier or tokenizer, encoder(tokenizer), decoder(tokenizer), book, size, special)


def in_pieces(name: str, tokenizer: Tokenizer, first: Callable[[str], str] | None = None) -> Vocabulary:
    """Makes a `Vocabulary` from a tokenizer of the tokenizers library that writes a space as `▁`. `first` is a
    function that returns the text of a token at the start of a stream."""
    fallback = "ByteFallback" in str(tokenizer.decoder)

    def raw(token_id: int) -> Raw:
        token = tokenizer.id_to_token(token_id)
        if fallback and len(token) == 6 and token.startswith("<0x"):
            return int(token[3:5], 16)
        return token.replace("▁", " ")

    def of_first(token_id: int) -> Raw:
        text = raw(token_id)
        return text if isinstance(text, int) or first is None else first(tokenizer.id_to_token(token_id))

    special = [i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    book = Book(raw, "runs" if fallback else "parts", frozenset(special), first and of_first)
    size = max(tokenizer.get_vocab().values()) + 1
    return Vocabulary(name, tokenizer, encoder(tokenizer), decoder(tokenizer), book, size, special)


def strip(token: str) -> str:
    """The text of a token at the start of a stream, without its leading space."""
    return token.replace("▁", " ").removeprefix(" ")


def drop(token: str) -> str:
    """The text of a token at the start of a stream, without any `▁`."""
    return token.replace("▁", "")


def fallback(pieces: dict[str, int], special: Sequence[str]) -> Tokenizer:
    """A tokenizer like Llama's, but without merges, because only its decoder matters here."""
    tokenizer = Tokenizer(models.BPE(pieces, [], byte_fallback=True, unk_token="<unk>"))
    chain = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(chain)
    tokenizer.add_special_tokens(list(special))
    return tokenizer


def staged(*pieces: str | bytes, special: Sequence[str] = ()) -> tuple[Tokenizer, list[int]]:
    """Returns a byte-level tokenizer whose only tokens are these pieces, and the ids of the pieces. Equal pieces have
    the same id."""
    raw = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    spelled = ["".join(SPELLING[byte] for byte in piece) for piece in raw]
    spelled = [piece if piece in special else text for piece, text in zip(pieces, spelled, strict=True)]
    tokenizer = Tokenizer(models.BPE({text: index for index, text in enumerate(dict.fromkeys(spelled))}, []))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    return tokenizer, [tokenizer.token_to_id(text) for text in spelled]


def byte_level_book(tokenizer: Tokenizer) -> Book:
    return byte_level("staged", tokenizer).book
