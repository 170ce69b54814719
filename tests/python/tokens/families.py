"""The vocabularies that the tests run over: some come with packages, others are trained in a moment."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache, partial
from pydoc_data.topics import topics
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from books import Book, Raw
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from vocabularies import (
    BYTES,
    SPELLING,
    Vocabulary,
    byte_level,
    data,
    drop,
    fallback,
    in_pieces,
    strip,
)

from stopscan_conformance.reciter import Reciter

CORPUS = [
    "The END of the story, 你好世界, naïve café, 🚀 and END.",
    "It is the end: stop here, stop there. 再见 👩‍💻",
    "She said: don't   stop\n\n\tnow, we've 1,234 of them <think> and </think>",
]
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


def manual_bpe() -> Tokenizer:
    """Byte-level BPE of 8,000 tokens, trained on Python's manual."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8_000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([*topics.values(), *CORPUS], trainer)
    tokenizer.add_special_tokens(["<EOT>", "<META>"])
    return tokenizer


def manual() -> Vocabulary:
    return byte_level("manual", manual_bpe())


def tiktoken(gap: int) -> Vocabulary:
    """A tiktoken encoding with the tokens of `manual_bpe` and with special tokens. As in tiktoken's own encodings,
    the ids just before the special tokens are not used. `gap` is the count of these ids."""
    library = pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    spelled = sorted(manual_bpe().get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])
    ranks = {bytes(BYTES[character] for character in token): rank for token, rank in spelled}
    pattern = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
    first = len(ranks) + gap
    specials = {"<|endoftext|>": first, "<|fim_prefix|>": first + 1, "<|endofprompt|>": first + 2}
    encoding = library.Encoding(f"gap-{gap}", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
    special = sorted(specials.values())

    def raw(token_id: int) -> Raw:
        try:
            return bytes(encoding.decode_single_token_bytes(token_id))
        except KeyError:
            return b""

    def decode(ids: Any, skip: bool) -> str:
        return str(encoding.decode([i for i in ids if not (skip and encoding.is_special_token(i))]))

    book = Book(raw, "parts", frozenset(special))
    return Vocabulary(encoding.name, encoding, encoding.encode_ordinary, decode, book, encoding.n_vocab, special)


def tekken(file: str) -> Vocabulary:
    module = pytest.importorskip("mistral_common.tokens.tokenizers.tekken", reason="mistral-common is not installed")
    tokenizer = module.Tekkenizer.from_file(data("mistral_common", f"data/{file}"))
    special = sorted(tokenizer.special_ids)
    raw = partial(tokenizer.id_to_byte_piece, special_token_policy="keep")
    return Vocabulary(
        file,
        tokenizer,
        partial(tokenizer.encode, bos=False, eos=False),
        lambda ids, skip: str(tokenizer.decode(list(ids), "ignore" if skip else "keep")),
        Book(raw, "parts", frozenset(special), special_ends_character=True),
        tokenizer.n_words,
        special,
    )


def sentencepiece(file: str) -> Vocabulary:
    """A SentencePiece model, in the tokenizer of mistral-common."""
    module = pytest.importorskip(
        "mistral_common.tokens.tokenizers.sentencepiece", reason="mistral-common is not installed"
    )
    tokenizer = module.SentencePieceTokenizer(data("mistral_common", f"data/{file}"))
    special = sorted(tokenizer.special_ids)

    def raw(token_id: int) -> Raw:
        piece = str(tokenizer.id_to_piece(token_id))
        if token_id == tokenizer.unk_id:
            return " ⁇ "
        return int(piece[3:5], 16) if piece in BYTE_TOKENS else piece.replace("▁", " ")

    def first(token_id: int) -> Raw:
        text = raw(token_id)
        return text.removeprefix(" ") if isinstance(text, str) and token_id != tokenizer.unk_id else text

    return Vocabulary(
        file,
        tokenizer,
        partial(tokenizer.encode, bos=False, eos=False),
        lambda ids, skip: str(tokenizer.decode(list(ids))),
        Book(raw, "bytes", frozenset(special), first, special_ends_character=True),
        tokenizer.n_words,
        special,
    )


def llama() -> Vocabulary:
    """Mistral's SentencePiece model, made into a tokenizer as transformers does it for Llama's SentencePiece model."""
    library = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: it reads the model")
    model = library.SentencePieceProcessor(
        model_file=data("mistral_common", "data/mistral_instruct_tokenizer_240323.model.v3")
    )
    pieces = [model.id_to_piece(index) for index in range(model.vocab_size())]
    special = [piece for index, piece in enumerate(pieces) if model.is_control(index)]
    tokenizer = fallback({piece: index for index, piece in enumerate(pieces)}, special)
    vocabulary = in_pieces("llama", tokenizer, strip)
    return Vocabulary(**{**vars(vocabulary), "encode": model.encode})


def small_bytes() -> Vocabulary:
    return byte_level("small-bytes", trained_bytes(add_prefix_space=False))


def prefixed_bytes() -> Vocabulary:
    """A byte-level tokenizer, wrapped by transformers. The added tokens are not special, and one contains a space."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tokenizer = trained_bytes(add_prefix_space=True)
    tokenizer.add_tokens(["<think>", "</think>", AddedToken("two words", normalized=False), "é🚀"])
    carrier = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)
    return byte_level("prefixed-bytes", carrier.backend_tokenizer, carrier)


def trained_bytes(*, add_prefix_space: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    missing = set(SPELLING) - set(tokenizer.get_vocab())
    assert not missing
    return tokenizer


def small_fallback() -> Vocabulary:
    pieces = ["▁", "▁▁", *"abcdehinorstENDSTOP,.好世", "EN", "ND", "END", "▁E", "▁END", "D.", "the", "▁the", "🚀"]
    tokens = dict.fromkeys(["<unk>", "<s>", *BYTE_TOKENS, *pieces])
    tokenizer = fallback({piece: index for index, piece in enumerate(tokens)}, ["<s>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return in_pieces("small-fallback", tokenizer, strip)


def gemma() -> Vocabulary:
    """A vocabulary whose decoder is like Gemma's: with byte fallback, and without stripping of spaces."""
    tokenizer = small_fallback().tokenizer
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return in_pieces("gemma", tokenizer)


def normalized() -> Vocabulary:
    """Like Llama's tokenizers before 2024, in which a normalizer replaces spaces by `▁`. The added tokens are not
    normalized."""
    tokenizer = small_fallback().tokenizer
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = None
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    return in_pieces("normalized", tokenizer, strip)


def trained_pieces(kind: str) -> Vocabulary:
    """Trains a sentencepiece model with byte fallback, in a tokenizer like Llama's (BPE) or Mistral's (Unigram)."""
    library = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: it trains the model")
    model = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 4),
        model_writer=model,
        model_type=kind,
        vocab_size=340,
        byte_fallback=True,
        hard_vocab_limit=False,
        character_coverage=0.98,
        minloglevel=2,
    )
    processor = library.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(processor.vocab_size())
    pieces = [(processor.id_to_piece(index), processor.get_score(index)) for index in ids]
    special = [piece for index, (piece, _) in enumerate(pieces) if processor.is_control(index)]
    if kind == "bpe":
        tokenizer = fallback({piece: index for index, (piece, _) in enumerate(pieces)}, special)
    else:
        tokenizer = Tokenizer(models.Unigram(pieces, processor.unk_id(), byte_fallback=True))
        tokenizer.decoder = fallback({"<unk>": 0}, []).decoder
        tokenizer.add_special_tokens(special)
    vocabulary = in_pieces(f"trained-{kind}", tokenizer, strip)
    return Vocabulary(**{**vars(vocabulary), "encode": processor.encode})


def metaspace(scheme: str) -> Vocabulary:
    """A Unigram model with Metaspace, like those of T5 and XLM-R."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=["<s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    tokenizer.add_tokens([AddedToken(" spaced", normalized=False), AddedToken("a▁b▁c", normalized=False)])
    return in_pieces(f"metaspace-{scheme}", tokenizer, drop if scheme != "never" else None)


def fused() -> Vocabulary:
    tokens = ["Once", " up", " E", "ND", " on", "é", "你", "E", "D", "N", " ", "the ", "a", "b", "</s>"]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, []))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(["</s>"])
    return in_pieces("fused", tokenizer)


def reciting() -> Vocabulary:
    """A Unigram vocabulary in which many ids, some of them of special tokens, stand for the same text."""
    reciter = Reciter()
    with TemporaryDirectory() as directory:
        tokenizer = Tokenizer.from_file(str(reciter.write(directory) / "tokenizer.json"))
    vocabulary = byte_level("reciting", tokenizer)
    names = {tokenizer.id_to_token(index) for index in vocabulary.special}
    special = [index for index in range(vocabulary.size) if tokenizer.id_to_token(index) in names]
    vocabulary.book.special = frozenset(special)
    return Vocabulary(**{**vars(vocabulary), "special": special})


SMALL = [
    small_bytes,
    prefixed_bytes,
    small_fallback,
    gemma,
    normalized,
    partial(trained_pieces, "bpe"),
    partial(trained_pieces, "unigram"),
    partial(metaspace, "always"),
    partial(metaspace, "first"),
    partial(metaspace, "never"),
    fused,
    reciting,
]
# One real vocabulary of each family.
REAL: list[Callable[[], Vocabulary]] = [
    manual,
    llama,
    partial(tiktoken, 0),
    partial(tiktoken, 3),
    partial(tekken, "tekken_240911.json"),
    partial(sentencepiece, "mistral_instruct_tokenizer_241114.model.v7"),
]
NATIVE = [*REAL, *SMALL]

load = cache(lambda make: make())  # each vocabulary is made once in a test session


def over(makes: list[Callable[[], Vocabulary]]) -> Any:
    """A decorator that runs a test once for each of the given vocabularies."""
    return pytest.mark.parametrize("vocabulary", makes, ids=name, indirect=True)


def name(make: Any) -> str:
    return "-".join([make.func.__name__, *map(str, make.args)]) if isinstance(make, partial) else str(make.__name__)
