"""Tests of faults that earlier versions of stopscan had."""

from __future__ import annotations

import copy
import pickle
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from books import common
from families import load, small_bytes, small_fallback
from tokenizers import Tokenizer, decoders, models
from vocabularies import byte_level_book, staged
from whole import agree, emitted, ended, run, stopped

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.tokens import TokenScanner, Vocabulary
from stopscan_conformance.reciter import Reciter


def test_a_copy_shared_the_state_of_its_original() -> None:
    tokenizer, token_ids = staged("a", "EN", "D", "x")
    scanner = TokenScanner(tokenizer, "END")
    scanner.feed_many(token_ids[:2])
    for other in (copy.copy(scanner), copy.deepcopy(scanner), pickle.loads(pickle.dumps(scanner))):
        assert other.feed(token_ids[3]) == "ENx"
        assert other.finish is None
    assert (scanner.held, scanner.tokens_seen) == ("EN", 2)
    assert scanner.feed(token_ids[2]) == ""
    assert scanner.finish == stopped(1)


@pytest.mark.parametrize("limit", [2.5, "2", [2]])
def test_limit_that_is_no_integer_is_refused(limit: Any) -> None:
    tokenizer, _ = staged("a")
    for name in ("max_tokens", "min_tokens"):
        with pytest.raises(TypeError, match=f"{name}: expected int, got {type(limit).__name__}"):
            TokenScanner(tokenizer, **{name: limit})
    with pytest.raises(ValueError, match=r"max_tokens: 1\d* is out of range"):
        TokenScanner(tokenizer, max_tokens=10**30)


@pytest.mark.parametrize("name", ["eos_token_ids", "stop_token_ids"])
def test_one_id_for_several_tokens_is_named(name: str) -> None:
    tokenizer, token_ids = staged("a", "b", "c")
    scanner = TokenScanner(tokenizer, **{name: token_ids[1]})
    assert emitted(scanner, token_ids) == "a"
    assert scanner.finish == (ended(1) if name == "stop_token_ids" else Finish("eos"))
    for wrong in (1.5, "1", b"1", [1.5], ["1"], object()):
        with pytest.raises(TypeError, match=f"{name}: expected .*, got "):
            TokenScanner(tokenizer, **{name: wrong})
    assert emitted(TokenScanner(tokenizer, **{name: None}), token_ids) == "abc"


def test_tokens_that_share_a_replacement_character_are_all_kept() -> None:
    # The tokens of each `half` are the bytes of an incomplete character. Together they become one U+FFFD.
    for half in ([b"\xe4", b"\xbd"], [b"\xf0", b"\x9f", b"\x9a"]):
        tokenizer, token_ids = staged("a", *half, "END")
        scanner = agree(tokenizer, byte_level_book(tokenizer), token_ids, ["END"])
        assert scanner.tokens_kept == len(token_ids) - 1
        scanner = agree(tokenizer, byte_level_book(tokenizer), token_ids, ["\ufffdEND"])
        assert scanner.tokens_kept == 1


def test_tokens_kept_after_stray_bytes_in_prompt() -> None:
    vocabulary = load(small_fallback)
    prompt = [*vocabulary.spell("the"), *vocabulary.spell(b"\xe4\xbd")]
    for token_ids in (vocabulary.spell(b"\xff") + vocabulary.spell("a", [1]), vocabulary.spell("aEND", [1])):
        agree(vocabulary.tokenizer, vocabulary.book, token_ids, ["END", "a"], prompt_token_ids=prompt)
        scanner = TokenScanner(vocabulary.tokenizer, prompt_token_ids=prompt)
        emitted(scanner, token_ids)
        assert scanner.tokens_kept == len(token_ids)


def test_special_token_after_half_a_character() -> None:
    tokenizer, token_ids = staged("a", b"\xc3", "<s>", special=["<s>"])
    scanner = TokenScanner(tokenizer)
    assert emitted(scanner, token_ids) == "a\ufffd"
    assert scanner.tokens_kept == 2


def test_stop_within_a_token_counts_the_token_before() -> None:
    # The tokens "aEE", "ZN" and "Q" complete the stop "EEZNQ". Only "aEE" counts as kept, because its "a" was emitted.
    tokenizer, token_ids = staged("aEE", "ZN", "Q")
    scanner = agree(tokenizer, byte_level_book(tokenizer), token_ids, ["EEZNQ", "ZNX"])
    assert scanner.tokens_kept == 1


CLEAN = "Do n't stop , he 's here . It 's \" fine \" ! Is n't it ? They 've , we 're , I 'm 'so ' sure ."


def cleaning(model: str) -> Any:
    """A transformers tokenizer whose `decode` takes spaces out of the text."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    words = sorted({*CLEAN.replace("'", " ' ").split(), "'", "n't", "'s", "'m", "'ve", "'re", "n", "t", "s", "[UNK]"})
    if model == "WordPiece":
        tokenizer = Tokenizer(models.WordPiece({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
        tokenizer.decoder = decoders.WordPiece(cleanup=False)
    else:
        tokenizer = Tokenizer(models.Unigram([(f"▁{word}", 0.0) for word in words], 0))
        tokenizer.decoder = decoders.Metaspace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=True)


@pytest.mark.parametrize("model", ["WordPiece", "Unigram"])
def test_clean_up_tokenization_spaces_was_ignored(model: str) -> None:
    tokenizer = cleaning(model)
    assert not Vocabulary(tokenizer).native
    mark = "▁" if model == "Unigram" else ""
    ids = {tokenizer.convert_ids_to_tokens(index).removeprefix(mark): index for index in range(len(tokenizer))}
    token_ids = [ids[word] for word in CLEAN.replace("n't", "n ' t").replace("'s", "' s").split()]
    text = tokenizer.decode(token_ids)
    assert "Don't stop, he's here." in text
    assert text != tokenizer.decode(token_ids, clean_up_tokenization_spaces=False)
    assert emitted(TokenScanner(tokenizer), token_ids) == text
    scanner = TokenScanner(tokenizer, ["he's"])
    assert emitted(scanner, token_ids) == text[: text.index("he's")]
    for cut in range(len(token_ids)):
        before = tokenizer.decode(token_ids[:cut])
        rest = emitted(TokenScanner(tokenizer, prompt_token_ids=token_ids[:cut]), token_ids[cut:])
        assert rest == text[common(before, text) :]
    tokenizer.clean_up_tokenization_spaces = False
    assert emitted(TokenScanner(tokenizer), token_ids) == tokenizer.decode(token_ids) != text


def test_a_clean_up_that_decode_leaves_out_changes_nothing() -> None:
    """transformers 5.7 and later ignore `clean_up_tokenization_spaces` for BPE."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    vocabulary = load(small_bytes)
    carrier = transformers.PreTrainedTokenizerFast(
        tokenizer_object=vocabulary.tokenizer, clean_up_tokenization_spaces=True
    )
    token_ids = vocabulary.encode("Do n't stop , he 's here .")
    assert emitted(TokenScanner(carrier), token_ids) == carrier.decode(token_ids)


def test_special_markers_counted_only_in_the_text() -> None:
    script = ["<think>", "E", "ND", "</think>", "a", "EN", "D"]
    reciter = Reciter({"x": script}, added_tokens=[], special_tokens=["<think>", "</think>"])
    with TemporaryDirectory() as directory:
        tokenizer = Tokenizer.from_file(str(reciter.write(directory) / "tokenizer.json"))
    stops = StopSet("END", protect=[("<think>", "</think>")])
    token_ids = reciter.token_ids("x")
    assert run(TokenScanner(tokenizer, stops), token_ids) == ["", "E", "ND", "", "a", "", ""]
    assert run(TokenScanner(tokenizer, stops, start_protected=True), token_ids[1:]) == ["E", "ND", "", "a", "", ""]
    text = "<think>END</think>a"
    assert emitted(TokenScanner(tokenizer, stops, skip_special_tokens=False), token_ids) == text
