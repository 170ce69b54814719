"""Vocabularies of both families, real and staged, and every way to spell a text in their tokens."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from stopscan.testing.reciter import Reciter, _byte_spelling

SPELLING = _byte_spelling()
CORPUS = ["The END of the story, 你好世界, naïve café, 🚀 and END.", "It is the end: stop here, stop there. 再见 👩‍💻"]


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer, and the ways to spell texts that its own `encode` does not choose."""

    name: str
    tokenizer: Tokenizer
    encode: Callable[[str], list[int]]
    byte_level: bool
    special: int  # a token that is skipped

    @cache  # noqa: B019 - there is one object per vocabulary, and it lives as long as the tests
    def pieces(self) -> dict[str, int]:
        added = self.tokenizer.get_added_tokens_decoder()
        return {piece: index for piece, index in self.tokenizer.get_vocab().items() if index not in added}

    def spell(self, text: str | bytes, wishes: Iterable[int] = (0,)) -> list[int]:
        """Token ids of `text`, each the longest of at most so many bytes, or characters with byte fallback; 0 is for
        the shortest spelling in bytes. Bytes need not be UTF-8."""
        return self._in_bytes(text, wishes) if self.byte_level else self._in_characters(text, wishes)

    def _in_bytes(self, text: str | bytes, wishes: Iterable[int]) -> list[int]:
        spelled = "".join(SPELLING[byte] for byte in (text.encode() if isinstance(text, str) else text))
        ids = []
        for wish in cycle(wishes):
            if not spelled:
                return ids
            piece = longest(self.pieces(), spelled, max(wish, 1))
            assert piece, f"{self.name} has no token for the byte {spelled[0]!r}"
            ids.append(self.pieces()[piece])
            spelled = spelled[len(piece) :]
        raise AssertionError("no wishes")

    def _in_characters(self, text: str | bytes, wishes: Iterable[int]) -> list[int]:
        if isinstance(text, bytes):
            return [self.pieces()[f"<0x{byte:02X}>"] for byte in text]
        spelled = text.replace(" ", "▁")
        ids = []
        for wish in cycle(wishes):
            if not text:
                return ids
            # A space is never spelled as a byte: the tests of byte-fallback runs say why.
            piece = longest(self.pieces(), spelled, max(wish, text[0] == " "))
            ids += [self.pieces()[piece]] if piece else self._in_characters(text[0].encode(), ())
            text, spelled = text[max(len(piece), 1) :], spelled[max(len(piece), 1) :]
        raise AssertionError("no wishes")


def longest(pieces: dict[str, int], text: str, limit: int) -> str:
    return next((text[:length] for length in range(limit, 0, -1) if text[:length] in pieces), "")


def data(package: str, path: str) -> str:
    """A file of an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed: its vocabulary is needed")
    return str(Path(spec.submodule_search_locations[0], path))


def encoder(tokenizer: Tokenizer) -> Callable[[str], list[int]]:
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def claude() -> Vocabulary:
    tokenizer = Tokenizer.from_file(data("litellm", "litellm_core_utils/tokenizers/anthropic_tokenizer.json"))
    return Vocabulary("claude", tokenizer, encoder(tokenizer), byte_level=True, special=0)


def mistral() -> Vocabulary:
    """SentencePiece with byte fallback, converted as transformers converts Llama's and Mistral's."""
    path = data("mistral_common", "data/mistral_instruct_tokenizer_240323.model.v3")
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: it reads the model")
    processor = sentencepiece.SentencePieceProcessor(model_file=path)
    ids = range(processor.vocab_size())
    pieces = {processor.id_to_piece(index): index for index in ids}
    tokenizer = fallback(pieces, [processor.id_to_piece(index) for index in ids if processor.is_control(index)])
    return Vocabulary("mistral", tokenizer, processor.encode, byte_level=False, special=2)


def fallback(pieces: dict[str, int], special: Sequence[str]) -> Tokenizer:
    """A tokenizer as Llama's: without merges, for its decoder is what matters here."""
    tokenizer = Tokenizer(models.BPE(pieces, [], byte_fallback=True, unk_token="<unk>"))
    strip = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(strip)
    tokenizer.add_special_tokens(list(special))
    return tokenizer


def small_bytes() -> Vocabulary:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    missing = set(SPELLING) - set(tokenizer.get_vocab())
    assert not missing
    return Vocabulary("small-bytes", tokenizer, encoder(tokenizer), byte_level=True, special=0)


def small_fallback() -> Vocabulary:
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces = ["▁", "▁▁", *"abcdehinorstENDSTOP,.好世", "EN", "ND", "END", "▁E", "▁END", "D.", "the", "▁the", "🚀"]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys([*tokens, *pieces]))}
    tokenizer = fallback(vocabulary, ["<s>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return Vocabulary("small-fallback", tokenizer, encoder(tokenizer), byte_level=False, special=1)


def reciting() -> Vocabulary:
    reciter = Reciter()
    with TemporaryDirectory() as directory:
        tokenizer = Tokenizer.from_file(str(reciter.write(directory) / "tokenizer.json"))
    return Vocabulary("reciter", tokenizer, encoder(tokenizer), byte_level=True, special=reciter.eos_token_id)


VOCABULARIES = [claude, mistral, small_bytes, small_fallback, reciting]
load = cache(lambda make: make())


def staged(*pieces: str | bytes, special: Sequence[str] = ()) -> tuple[Tokenizer, list[int]]:
    """A byte-level tokenizer that has just these tokens, and their ids in this order; repeated pieces share an id."""
    raw = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    spelled = ["".join(SPELLING[byte] for byte in piece) for piece in raw]
    spelled = [piece if piece in special else text for piece, text in zip(pieces, spelled, strict=True)]
    tokenizer = Tokenizer(models.BPE({text: index for index, text in enumerate(dict.fromkeys(spelled))}, []))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    return tokenizer, [tokenizer.token_to_id(text) for text in spelled]
