"""Bytes that are not valid UTF-8 ("stray bytes"), in vocabularies that can spell characters in tokens of one byte."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from families import load, small_fallback
from hypothesis import given
from hypothesis import strategies as st
from whole import agree, emitted, run, stopped

from stopscan.tokens import TokenScanner


def test_stray_bytes_after_a_character_in_bytes() -> None:
    # For these tokens, the tokenizers library's DecodeStream raises "Invalid prefix", and then again for every later
    # token.
    vocabulary = load(small_fallback)
    token_ids = vocabulary.spell("你") + vocabulary.spell(b"\x80\x80") + vocabulary.spell("the 你 END", [3, 0])
    scanner = TokenScanner(vocabulary.tokenizer, "END")
    assert emitted(scanner, token_ids) == "你\ufffd\ufffdthe 你 "
    assert scanner.finish == stopped(9)


def test_decode_retracts_a_character_before_stray_bytes() -> None:
    # `decode` and a stream differ only for a run of byte tokens that is not valid UTF-8. `decode` also replaces the
    # valid characters of this run. A stream cannot replace them, because it has already sent them.
    vocabulary = load(small_fallback)
    for end, tail in (("", ["\ufffd", ""]), (" the", ["\ufffd", " the", ""])):
        token_ids = vocabulary.spell("a你", [1, 0]) + vocabulary.spell(b"\x80") + vocabulary.spell(end, [4])
        assert vocabulary.tokenizer.decode(token_ids) == "a" + 4 * "\ufffd" + end
        assert run(TokenScanner(vocabulary.tokenizer), token_ids) == ["a", "", "", "你", *tail]


def test_space_byte_is_not_repeated_before_stray_bytes() -> None:
    # The space must come out once, even if a stray byte follows. The tokenizers library's DecodeStream emits the space
    # and then U+FFFD for the same space.
    vocabulary = load(small_fallback)
    spaced = [*vocabulary.spell("the", [3]), *vocabulary.spell(b" ")]
    assert run(TokenScanner(vocabulary.tokenizer), spaced + vocabulary.spell("é")) == ["the", " ", "", "é", ""]
    assert run(TokenScanner(vocabulary.tokenizer), spaced + vocabulary.spell(b"\xc3")) == ["the", " ", "", "\ufffd"]


@pytest.mark.parametrize("run", [b" \xff", b" \xc3", b" \xe4\xbd", b" \xe4\xff", b" ", b" \xc3\xa9", b"  "])
@pytest.mark.parametrize("after", ["", "the"])
def test_space_byte_that_begins_a_run_of_stray_bytes(run: bytes, after: str) -> None:
    # `decode` strips a space at the start of a text. But it turns " \xff" into two U+FFFD, and then strips nothing.
    vocabulary = load(small_fallback)
    token_ids = vocabulary.spell(run) + vocabulary.spell(after, [3])
    scanner = agree(vocabulary.tokenizer, vocabulary.book, token_ids)
    assert emitted(TokenScanner(vocabulary.tokenizer), token_ids) == vocabulary.tokenizer.decode(token_ids)
    copies = [pickle.loads(pickle.dumps(fed(vocabulary.tokenizer, token_ids[:1]))) for _ in range(2)]
    assert [emitted(copy, token_ids[1:]) for copy in copies] == [vocabulary.tokenizer.decode(token_ids)] * 2
    assert scanner.tokens_kept == (len(token_ids) if vocabulary.tokenizer.decode(token_ids) else 0)


def fed(tokenizer: Any, token_ids: list[int]) -> TokenScanner:
    scanner = TokenScanner(tokenizer)
    assert scanner.feed_many(token_ids) == ""
    return scanner


@given(st.data())
def test_runs_of_byte_tokens(data: st.DataObject) -> None:
    """In a run of byte tokens, characters come out as long as the bytes are valid UTF-8. From the first invalid byte
    on, each byte comes out as U+FFFD."""
    vocabulary = load(small_fallback)
    pieces = st.sampled_from([b"\xe4", b"\xbd\xa0", "你".encode(), b"\xff", b"\x80", b"a", b"\xf0\x9f\x9a"])
    runs = data.draw(st.lists(st.lists(pieces, max_size=5).map(b"".join), max_size=4))
    between = vocabulary.spell("the", [3])
    token_ids = [token_id for run in runs for token_id in vocabulary.spell(run) + between]
    text = "".join(decoded(run) + "the" for run in runs)
    assert emitted(TokenScanner(vocabulary.tokenizer), token_ids) == text


def decoded(run: bytes) -> str:
    try:
        return run.decode()
    except UnicodeDecodeError as error:
        good = run[: error.start].decode()
        return good + "\ufffd" * (len(run) - error.start)
