"""Tokenizers whose text is not made from the bytes of single ids. The scanner calls the tokenizer's `decode`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest
from books import Decoded
from families import CORPUS, small_fallback, trained_bytes
from families import load as vocabulary_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from whole import agree, emitted, run

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.tokens import TokenScanner, Vocabulary

SPECIAL = ["<s>", "[UNK]"]


def word_piece() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def word_level() -> Tokenizer:
    """A tokenizer without a decoder: it joins its tokens by spaces."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def end_of_word() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=200, special_tokens=SPECIAL, end_of_word_suffix="</w>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def by_pattern() -> Tokenizer:
    """A tokenizer that decodes bytes, and then replaces matches of a regular expression, which may span tokens."""
    tokenizer = trained_bytes(add_prefix_space=False)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace(Regex("[sS]t"), "5")])
    return tokenizer


class Shouting:
    """Wraps a tokenizer. The wrapper's `decode` returns the decoded text in capital letters."""

    def __init__(self) -> None:
        self.backend_tokenizer = trained_bytes(add_prefix_space=False)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return self.backend_tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens).upper()


MAKES: list[Callable[[], Any]] = [word_piece, word_level, end_of_word, Shouting]
load = cache(lambda make: make())


@pytest.fixture(scope="module", params=MAKES, ids=lambda make: make.__name__)
def carrier(request: pytest.FixtureRequest) -> Any:
    return load(request.param)


def backend(carrier: Any) -> Tokenizer:
    return getattr(carrier, "backend_tokenizer", carrier)


def test_it_is_not_native(carrier: Any) -> None:
    assert not Vocabulary(carrier).native


def test_a_chain_that_looks_across_tokens_is_not_native() -> None:
    tokenizer = by_pattern()
    assert not Vocabulary(tokenizer).native
    token_ids = tokenizer.encode("don't stop").ids
    assert emitted(TokenScanner(tokenizer), token_ids) == tokenizer.decode(token_ids) == "don't 5op"


def test_a_decoder_in_python_is_not_native() -> None:
    class Joined:
        def decode_chain(self, tokens: list[str]) -> list[str]:
            return tokens

    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    tokenizer.decoder = decoders.Decoder.custom(Joined())
    assert not Vocabulary(tokenizer).native
    assert emitted(TokenScanner(tokenizer), [0, 1, 0]) == "aba"


@settings(max_examples=60)
@given(data=st.data())
def test_everything_is_that_of_the_whole_text(carrier: Any, data: st.DataObject) -> None:
    tokenizer = backend(carrier)
    draw = Random(data.draw(st.integers(0, 2**32)))
    # Draw only tokens that are whole characters. For half a character, the scanner emits U+FFFD later than the
    # reference expects.
    ids = [i for i in range(tokenizer.get_vocab_size()) if "\ufffd" not in tokenizer.decode([i])]
    token_ids = draw.choices(ids, k=draw.randrange(12))
    special = [tokenizer.token_to_id(name) for name in SPECIAL if tokenizer.token_to_id(name) is not None]
    for _ in range(draw.randrange(3)):
        token_ids.insert(draw.randrange(len(token_ids) + 1), draw.choice(special))
    text = carrier.decode(token_ids, skip_special_tokens=True)
    stop = [text[at : at + draw.randrange(1, 5)] for at in draw.choices(range(len(text)), k=2)] if text else []
    cut = draw.choice([0, draw.randrange(len(token_ids) + 1)])
    book = Decoded(lambda ids, skip: carrier.decode(ids, skip_special_tokens=skip))
    options: dict[str, Any] = {
        "skip_special_tokens": draw.choice([True, False]),
        "eos_token_ids": draw.choice([(), token_ids[-1:]]),
        "max_tokens": draw.choice([None, 6]),
        "min_tokens": draw.randrange(4),
        "include_stop": draw.choice([True, False]),
    }
    agree(carrier, book, token_ids[cut:], list(dict.fromkeys(stop)), prompt_token_ids=token_ids[:cut], **options)


def test_half_characters_and_stray_bytes() -> None:
    """In the tokenizer `Shouting`, a token may be a part of a character. The character comes out with its last token. A
    stray byte comes out as U+FFFD, together with the next character or at the end of the stream."""
    carrier = load(Shouting)
    tokenizer = carrier.backend_tokenizer
    token_ids = [tokenizer.token_to_id(piece) for piece in ("a", "ä", "½", "ł", "ð", "a", "Ł", "Ł")]
    text = carrier.decode(token_ids)
    assert text == "A你\ufffdA\ufffd\ufffd"
    assert run(TokenScanner(carrier), token_ids) == ["A", "", "", "你", "", "\ufffdA", "", "", "\ufffd\ufffd"]


def test_a_stray_byte_before_a_character_came_out_twice() -> None:
    carrier = load(Shouting)
    token_ids = [carrier.backend_tokenizer.token_to_id(piece) for piece in "ððŁļĢ"]
    assert run(TokenScanner(carrier), token_ids) == ["", "", "", "", "\ufffd🚀", ""]


def test_copies_pickles_and_resets(carrier: Any) -> None:
    tokenizer = backend(carrier)
    token_ids = tokenizer.encode(CORPUS[1], add_special_tokens=False).ids
    scanner = TokenScanner(carrier, ["stop"], prompt_token_ids=token_ids[:2])
    before = scanner.feed_many(token_ids[:4])
    copies: list[TokenScanner] = [scanner.copy(), copy.copy(scanner), copy.deepcopy(scanner)]
    if not isinstance(carrier, Shouting):
        copies.append(pickle.loads(pickle.dumps(scanner)))
    after = run(scanner, token_ids[4:])
    for other in copies:
        assert run(other, token_ids[4:]) == after
        assert (other.finish, other.tokens_kept) == (scanner.finish, scanner.tokens_kept)
    scanner.reset()
    assert scanner.feed_many(token_ids[:4]) == before
    assert run(scanner, token_ids[4:]) == after


def test_bad_ids(carrier: Any) -> None:
    token_ids = backend(carrier).encode("the story", add_special_tokens=False).ids
    scanner = TokenScanner(carrier)
    for bad in (-1, 2**32, 99_999, 2**70):
        with pytest.raises(ValueError, match=f"token id {bad} is not in the vocabulary"):
            scanner.feed(bad)
        with pytest.raises(ValueError, match=f"token id {bad} is not in the vocabulary"):
            scanner.feed_many([token_ids[0], bad])
        with pytest.raises(ValueError, match=f"prompt_token_ids: token id {bad} is not in the vocabulary"):
            TokenScanner(carrier, prompt_token_ids=[token_ids[0], bad])
    with pytest.raises(TypeError, match="token_id: expected int, got str"):
        scanner.feed("1")  # type: ignore[arg-type]
    assert scanner.tokens_seen == 0
    assert emitted(scanner, token_ids) == carrier.decode(token_ids)


class InPieces(Shouting):
    def __init__(self) -> None:
        self.backend_tokenizer = vocabulary_of(small_fallback).tokenizer


def test_a_character_that_decode_takes_back_was_given_out() -> None:
    token_ids = vocabulary_of(small_fallback).spell("é") + vocabulary_of(small_fallback).spell(b"\xff")
    assert run(TokenScanner(InPieces()), token_ids) == ["", "É", "", "\ufffd"]


def test_half_a_character_at_prompt_end_completes() -> None:
    carrier = load(Shouting)
    token_ids = [carrier.backend_tokenizer.token_to_id(piece) for piece in ("a", "ä", "½", "ł", "b")]
    assert run(TokenScanner(carrier, prompt_token_ids=token_ids[:2]), token_ids[2:]) == ["", "你", "B", ""]


def test_all_tokens_of_half_a_character_are_kept() -> None:
    carrier = load(Shouting)
    token_ids = [carrier.backend_tokenizer.token_to_id(piece) for piece in ("a", "ä", "½", "b")]
    for stop, kept in (("B", 3), ("\ufffdB", 1)):
        scanner = TokenScanner(carrier, stop)
        emitted(scanner, token_ids)
        assert scanner.tokens_kept == kept
    scanner = TokenScanner(carrier)
    assert emitted(scanner, token_ids[:3]) == "A\ufffd"
    assert scanner.tokens_kept == 3


class Silent(Shouting):
    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return super().decode(token_ids, skip_special_tokens).replace("S", "")


def test_tokens_without_text() -> None:
    carrier = load(Silent)
    token_ids = [carrier.backend_tokenizer.token_to_id(piece) for piece in ("s", "s", "a", "s")]
    scanner = TokenScanner(carrier)
    assert run(scanner, token_ids) == ["", "", "A", "", ""]
    assert scanner.tokens_kept == 3


class Strict(Shouting):
    """A tokenizer whose `decode` fails for an unknown id."""

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        assert all(self.backend_tokenizer.id_to_token(token_id) is not None for token_id in token_ids)
        return super().decode(token_ids, skip_special_tokens)


def test_an_eos_that_is_no_token_is_not_decoded() -> None:
    scanner = TokenScanner(Strict(), eos_token_ids=99_999)
    assert scanner.feed(99_999) == ""
    assert scanner.finish == Finish("eos")


def test_markers_that_are_skipped_count() -> None:
    carrier = load(Shouting)
    scanner = TokenScanner(carrier, StopSet("END", protect=[("<s>", "</s>")]))
    token_ids = carrier.backend_tokenizer.encode("<s>END</s>a END").ids
    assert emitted(scanner, token_ids) == "ENDA "


def test_special_token_that_decode_keeps_is_kept() -> None:
    carrier = Shouting()
    carrier.backend_tokenizer.normalizer = normalizers.Lowercase()
    carrier.backend_tokenizer.add_special_tokens([AddedToken("<New>", normalized=True)])
    new = carrier.backend_tokenizer.get_vocab_size() - 1
    token_ids = [new, *carrier.backend_tokenizer.encode("a", add_special_tokens=False).ids, new]
    assert emitted(TokenScanner(carrier), token_ids) == carrier.decode(token_ids, skip_special_tokens=True)


def test_re_added_special_marker_counts() -> None:
    carrier = Shouting()
    markers = ["<think>", "</think>"]
    carrier.backend_tokenizer.add_special_tokens(markers)
    carrier.backend_tokenizer.add_tokens(markers)
    scanner = TokenScanner(carrier, StopSet("END", protect=[("<think>", "</think>")]))
    token_ids = carrier.backend_tokenizer.encode("<think>END</think>a END").ids
    assert emitted(scanner, token_ids) == "ENDA "


def test_prompt_in_a_byte_spelled_script() -> None:
    """The prompt's last 16 tokens (`PROMPT_CONTEXT`) begin within a character, so their bytes alone are invalid."""
    vocabulary, carrier = vocabulary_of(small_fallback), InPieces()
    prompt, token_ids = vocabulary.spell("ገንዘብ" * 3), vocabulary.spell("አማርኛ the")
    for cut in range(18):
        outputs = run(TokenScanner(carrier, prompt_token_ids=[*vocabulary.spell("x") * cut, *prompt]), token_ids[:6])
        assert outputs == ["", "", "አ", "", "", "ማ", ""]


class Counting(Shouting):
    """Counts the tokens that it decodes."""

    decoded = 0

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        self.decoded += len(token_ids)
        return super().decode(token_ids, skip_special_tokens)


@pytest.mark.parametrize("kind", ["special tokens", "stray bytes", "a prompt of special tokens"])
def test_work_is_linear(kind: str) -> None:
    carrier = Counting()
    tokenizer = carrier.backend_tokenizer
    vocabulary = Vocabulary(carrier)
    costs = []
    for count in (1000, 2000):
        token_ids = [tokenizer.token_to_id("Ł" if kind == "stray bytes" else "<s>")] * count
        before = carrier.decoded
        if kind.startswith("a prompt"):
            text = emitted(TokenScanner(vocabulary, prompt_token_ids=token_ids), [tokenizer.token_to_id("a")])
            assert text == "A"
        else:
            text = emitted(TokenScanner(vocabulary), token_ids)
            assert text == carrier.decode(token_ids, skip_special_tokens=True)
        costs.append(carrier.decoded - before)
    assert costs[1] < 2.5 * costs[0] + 100
    assert costs[1] < 50 * 2000
