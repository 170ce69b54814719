"""Native vocabularies, which stopscan decodes itself, give for any ids the text that the tokenizer's `decode` gives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from families import NATIVE, SMALL, llama, load, manual, name, over
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from vocabularies import Vocabulary
from whole import emitted

from stopscan import _stopscan, tokens
from stopscan.tokens import TokenScanner

ALL = over(NATIVE)


def decoded(tokenizer: Any, token_ids: Sequence[int], skip: bool = True, prompt: Sequence[int] = ()) -> str:
    scanner = TokenScanner(tokenizer, skip_special_tokens=skip, prompt_token_ids=prompt)
    return "".join(map(scanner.feed, token_ids)) + scanner.flush()


@ALL
def test_it_is_native(vocabulary: Vocabulary) -> None:
    assert tokens.Vocabulary(vocabulary.tokenizer).native


@ALL
def test_every_token_is_what_decode_says_of_it(vocabulary: Vocabulary) -> None:
    read = tokens.Vocabulary(vocabulary.tokenizer)
    for token_id in range(vocabulary.size):
        raw = vocabulary.book.raw(token_id)
        if raw == b"":
            with pytest.raises(ValueError, match=f"token id {token_id} "):
                TokenScanner(read).feed(token_id)
            continue
        for skip in vocabulary.skips:
            assert decoded(read, [token_id], skip) == vocabulary.decode([token_id], skip)


# Tokens have `▁` or a space at the start, in the middle or at the end. The byte tokens <0xC3> and <0xA9> can spell "é".
# No token has the id 11, because the function `made` adds a token with the id 12.
PIECES = ["▁a", "▁b▁c", "▁▁", " d", "e▁", "<0x20>", "<0x41>", "<0xC3>", "<0xA9>", "é", "_f▁"]
SPACES = decoders.Replace("▁", " ")
STRIP = decoders.Strip(" ", 1, 0)
DECODERS = {
    "Metaspace": [decoders.Metaspace()],
    "Metaspace, first": [decoders.Metaspace(prepend_scheme="first"), decoders.Fuse()],
    "Metaspace, never": [decoders.Metaspace(prepend_scheme="never")],
    "Metaspace of another mark": [decoders.Metaspace(replacement="_"), decoders.Fuse()],
    "Metaspace and Replace": [decoders.Metaspace(), decoders.Replace("_", "-")],
    "Replace": [SPACES],
    "two Replaces": [SPACES, decoders.Replace("_", "-"), decoders.Fuse()],
    "bytes": [decoders.ByteFallback()],
    "Llama's": [SPACES, decoders.ByteFallback(), decoders.Fuse(), STRIP],
    "Llama's in a sequence": [decoders.Sequence([SPACES, decoders.ByteFallback()]), decoders.Fuse(), STRIP],
    "without bytes": [SPACES, decoders.Fuse(), STRIP],
    "byte level": [decoders.ByteLevel(), decoders.Fuse()],
}


def made(steps: list[Any]) -> Tokenizer:
    vocabulary = {piece: index for index, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(models.BPE({**vocabulary, "g": len(PIECES) + 1}, []))
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


@pytest.mark.parametrize("steps", DECODERS.values(), ids=DECODERS)
def test_a_decoder_of_such_steps_is_native(steps: list[Any]) -> None:
    tokenizer = made(steps)
    assert tokens.Vocabulary(tokenizer).native
    ids = [*range(len(PIECES)), len(PIECES) + 1]
    for token_ids in chain(product(ids), product(ids, ids), product(ids, ids, ids)):
        whole = tokenizer.decode(token_ids)
        if "\ufffd" not in whole:  # before a stray byte, `decode` replaces characters that a stream has already sent
            assert emitted(TokenScanner(tokenizer), token_ids) == whole
    with pytest.raises(ValueError, match="token id 11 is not in the vocabulary"):
        TokenScanner(tokenizer).feed(len(PIECES))


def test_vocabulary_that_lacks_tokens_or_bytes() -> None:
    for pieces in ({}, {"a": 0, "<0xE4>": 1}):
        tokenizer = Tokenizer(models.BPE(pieces, []))
        tokenizer.decoder = decoders.ByteFallback()
        assert tokens.Vocabulary(tokenizer).native
        assert emitted(TokenScanner(tokenizer), [*pieces.values()]) == "a\ufffd"[: len(pieces)]


# Decoders with a step that stopscan does not know. A vocabulary with one of them is not native: `decode` is always
# called.
OTHERS = {
    "a pattern": [decoders.Replace(Regex("▁"), " ")],
    "bytes before the spaces": [decoders.ByteFallback(), SPACES],
    "two strips": [SPACES, decoders.Fuse(), decoders.Strip(" ", 2, 0)],
    "a strip of the end": [SPACES, decoders.Fuse(), decoders.Strip(" ", 1, 1)],
    "a strip of another character": [SPACES, decoders.Fuse(), decoders.Strip("a", 1, 0)],
    "a strip of each token": [SPACES, STRIP],
    "a strip before it is fused": [SPACES, STRIP, decoders.Fuse()],
    "marks dropped and a space stripped": [decoders.Metaspace(), decoders.Fuse(), STRIP],
    "byte level and spaces": [decoders.ByteLevel(), SPACES],
    "CTC": [decoders.CTC()],
}


@pytest.mark.parametrize("steps", OTHERS.values(), ids=OTHERS)
def test_a_decoder_of_other_steps_is_not(steps: list[Any]) -> None:
    assert not tokens.Vocabulary(made(steps)).native


@pytest.mark.parametrize("make", [manual, llama, *SMALL], ids=name)
def test_the_file_of_a_tokenizer_has_the_same_vocabulary(make: Any) -> None:
    """A Rust program makes its vocabulary from the file of a tokenizer (`tokenizer.json`). It must be the same
    vocabulary as the one that is made from the tokenizer object in Python."""
    tokenizer = load(make).tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    of_file = _stopscan.Vocabulary(backend.to_str().encode())
    assert of_file._parts() == tokens.Vocabulary(tokenizer)._parts()


def test_a_pre_tokenizer_in_python_changes_nothing() -> None:
    """With a pre-tokenizer in Python, a tokenizer cannot be saved as a file, but its vocabulary is still native."""

    class Words:
        def pre_tokenize(self, text: Any) -> None:
            pass

    tokenizer = made([decoders.ByteLevel()])
    tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Words())
    with pytest.raises(Exception, match=r"[Cc]ustom"):
        tokenizer.to_str()
    assert tokens.Vocabulary(tokenizer).native


def test_added_tokens_that_look_like_words() -> None:
    tokenizer = Tokenizer(models.BPE({"BOS": 0, "User": 1, "a": 2, "b": 3}, []))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["BOS"])
    tokenizer.add_tokens(["User"])
    assert tokens.Vocabulary(tokenizer).native
    assert emitted(TokenScanner(tokenizer), [0, 2, 0, 1, 3]) == "aUserb"
    assert emitted(TokenScanner(tokenizer, skip_special_tokens=False), [0, 2, 0, 1, 3]) == "BOSaBOSUserb"


def test_re_added_special_token_is_left_out() -> None:
    for decoder in (decoders.ByteLevel(), decoders.Sequence([SPACES, decoders.Fuse(), STRIP])):
        tokenizer = Tokenizer(models.BPE({"a": 0}, []))
        tokenizer.decoder = decoder
        for token in ("<x>", "▁"):
            tokenizer.add_special_tokens([token])
            tokenizer.add_tokens([token])
        assert tokens.Vocabulary(tokenizer).native
        assert emitted(TokenScanner(tokenizer), [2, 0, 1, 2, 0]) == tokenizer.decode([2, 0, 1, 2, 0]) == "aa"
        assert emitted(TokenScanner(tokenizer, skip_special_tokens=False), [0, 1]) == "a<x>"


def test_added_token_may_be_part_of_a_character() -> None:
    tokenizer = Tokenizer(models.BPE({"ä": 0, "ł": 1, "a": 2}, []))  # each letter stands for a byte, as in GPT-2
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(["½"])
    assert tokens.Vocabulary(tokenizer).native
    assert emitted(TokenScanner(tokenizer), [2, 0, 3, 1]) == tokenizer.decode([2, 0, 3, 1]) == "a你"


def texts() -> list[str]:
    """Texts to encode: files of this repository, and samples in several languages, with emoji and rare characters."""
    root = Path(__file__).parents[3]
    files = [root / "README.md", Path(__file__), root / "rust" / "stopscan" / "tokens" / "decoder.rs"]
    samples = [
        "Привет, мир! Как дела?",
        "こんにちは世界",
        "مرحبا بالعالم",
        "👨\u200d👩\u200d👧",
        "\U0001d518\U00012000",
    ]
    return [file.read_text()[:20_000] for file in files] + samples


@ALL
def test_real_text(vocabulary: Vocabulary) -> None:
    for text in texts():
        token_ids = vocabulary.encode(text)
        whole = vocabulary.decode(token_ids, True)
        assert decoded(vocabulary.tokenizer, token_ids) == whole
        prompt = token_ids[: len(token_ids) // 3]
        while vocabulary.decode(prompt, True).endswith("\ufffd"):
            # The prompt must end with a whole character. Otherwise, the stream would emit the character that the prompt
            # began, but the prompt's own text would end with U+FFFD.
            prompt.pop()
        rest = decoded(vocabulary.tokenizer, token_ids[len(prompt) :], True, prompt)
        assert vocabulary.decode(prompt, True) + rest == whole


@ALL
@settings(max_examples=50)
@given(data=st.data())
def test_any_ids(vocabulary: Vocabulary, data: st.DataObject) -> None:
    """Random tokens, often with half characters and special tokens among them."""
    draw = Random(data.draw(st.integers(0, 2**32)))
    halves = [i for i in draw.choices(range(vocabulary.size), k=200) if is_half(vocabulary, i)]
    kinds = [range(vocabulary.size), halves, vocabulary.special, list(vocabulary.byte_tokens.values())]
    token_ids = [draw.choice(draw.choice([kind for kind in kinds if kind])) for _ in range(draw.randrange(40))]
    token_ids = [token_id for token_id in token_ids if vocabulary.book.raw(token_id) != b""]
    cut = draw.choice([0, draw.randrange(len(token_ids) + 1)])
    skip = draw.choice(vocabulary.skips)
    characters = vocabulary.book.characters(token_ids[:cut], token_ids[cut:], skip_special_tokens=skip, ended=True)
    text = "".join(character for character, _ in characters)
    assert decoded(vocabulary.tokenizer, token_ids[cut:], skip, token_ids[:cut]) == text
    if not vocabulary.book.takes_back and cut == 0:
        assert text == vocabulary.decode(token_ids, skip)


def is_half(vocabulary: Vocabulary, token_id: int) -> bool:
    raw = vocabulary.book.raw(token_id)
    try:
        return isinstance(raw, bytes) and raw.decode() == ""
    except UnicodeDecodeError:
        return True
