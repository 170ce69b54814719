"""The clean-up of spaces that transformers does for some tokenizers, on streams."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from books import common
from families import load as vocabulary_of
from families import small_fallback
from hypothesis import example, given
from hypothesis import strategies as st
from test_not_native import InPieces, Shouting
from whole import emitted, run

from stopscan.finish import Finish
from stopscan.tokens import TokenScanner
from stopscan.tokens._clean_up import CleanUp, cleaned_up

load = cache(lambda make: make())


@given(deltas=st.lists(st.sampled_from([*" .?!,'ntmsa", " '", " n", "ve", "re"]), max_size=12), cut=st.integers(0, 12))
@example(deltas=["a '", " "], cut=0)  # the last space completes `" ' "`, but is withheld: it may also begin `" ."`
def test_a_stream_is_cleaned_up_like_the_whole_text(deltas: list[str], cut: int) -> None:
    clean_up, safe = CleanUp(), ""
    for number, delta in enumerate(deltas):
        if number == cut:
            other = clean_up.copy()
            assert cleaned_up("".join(deltas[:cut]) + " .") == safe + other.feed(" .") + other.tail()
        safe += clean_up.feed(delta)
        assert safe + clean_up.tail() == cleaned_up("".join(deltas[: number + 1]))


def test_a_clean_up_is_that_of_transformers() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    text = "a . b ? c ! d , e ' f n't g 'm h 's i 've j 're"
    assert cleaned_up(text) == transformers.PreTrainedTokenizerBase.clean_up_tokenization(None, text) != text


class Tidy(Shouting):
    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return cleaned_up(self.backend_tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens))


def test_space_at_prompt_end_is_not_repeated() -> None:
    """`Tidy` removes the space before a full stop when it decodes. So the scanner withholds a space until it knows
    what follows. The withheld text may belong to several tokens, or to the prompt."""
    carrier = load(Tidy)
    space, full_stop = (carrier.backend_tokenizer.token_to_id(piece) for piece in ("Ġ", "."))
    assert run(TokenScanner(carrier, prompt_token_ids=[space]), [space]) == ["", " "]
    scanner = TokenScanner(carrier)
    assert run(scanner, [space, space, full_stop]) == ["", "", " .", ""]
    assert scanner.tokens_kept == 3
    scanner = TokenScanner(carrier, ".a")
    assert emitted(scanner, [space] * 20 + [full_stop, carrier.backend_tokenizer.token_to_id("a")]) == " " * 19
    assert scanner.tokens_kept == 19


def test_withheld_text_precedes_text_of_eos() -> None:
    carrier = load(Tidy)
    space, half, letter = (carrier.backend_tokenizer.token_to_id(piece) for piece in ("Ġ", "ð", "a"))
    for token_ids, rest in (([space], " "), ([half], "\ufffd"), ([space, half], " \ufffd")):
        scanner = TokenScanner(carrier, eos_token_ids=letter)
        assert run(scanner, [*token_ids, letter]) == [*[""] * len(token_ids), rest]
        assert (scanner.finish, scanner.tokens_kept) == (Finish("eos"), len(token_ids))


@given(pieces=st.lists(st.sampled_from([*" .?' 'ntmsa", "🚀", "n't", "ð", "<s>"]), max_size=12), data=st.data())
def test_copies_clean_up_like_whole_text(pieces: list[str], data: st.DataObject) -> None:
    carrier = load(Tidy)
    tokenizer = carrier.backend_tokenizer
    spelled = [[tokenizer.token_to_id("ð")] if piece == "ð" else tokenizer.encode(piece).ids for piece in pieces]
    token_ids = [token_id for ids in spelled for token_id in ids]
    start, cut = sorted(data.draw(st.integers(0, len(token_ids))) for _ in range(2))
    prompt, whole = carrier.decode(token_ids[:start], skip_special_tokens=True), carrier.decode(token_ids, True)
    scanner = TokenScanner(carrier, prompt_token_ids=token_ids[:start])
    before = scanner.feed_many(token_ids[start:cut])
    other = scanner.copy()
    assert before + other.feed_many(token_ids[cut:]) + other.flush() == whole[common(prompt, whole) :]
    assert before + scanner.feed_many(token_ids[cut:]) + scanner.flush() == whole[common(prompt, whole) :]
    assert scanner.tokens_kept == other.tokens_kept <= len(token_ids) - start


class TidyInPieces(InPieces):
    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return cleaned_up(self.backend_tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens))


def test_character_that_decode_retracts() -> None:
    token_ids = vocabulary_of(small_fallback).spell("é") + vocabulary_of(small_fallback).spell(b"\xff")
    assert run(TokenScanner(TidyInPieces()), token_ids) == ["", "é", "", "\ufffd"]
