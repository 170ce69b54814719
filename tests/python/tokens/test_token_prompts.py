"""The prompt decides how a stream begins, and is never emitted."""

from __future__ import annotations

import pytest
from families import llama, load, small_fallback
from tokenizers import decoders
from vocabularies import byte_level_book, staged
from whole import agree, emitted, run

from stopscan.finish import Finish
from stopscan.tokens import TokenScanner, Vocabulary


def test_a_prompt_keeps_the_leading_space() -> None:
    vocabulary = load(llama)
    prompt, token_ids = vocabulary.encode("The capital of France is"), vocabulary.encode("Paris. END")
    assert emitted(TokenScanner(vocabulary.tokenizer, " END"), token_ids) == "Paris."
    assert emitted(TokenScanner(vocabulary.tokenizer, " END", prompt_token_ids=prompt), token_ids) == " Paris."


def test_a_prompt_of_special_tokens_has_no_text_before() -> None:
    vocabulary = load(small_fallback)
    token_ids = vocabulary.spell(" the END", [4])
    prompt = [vocabulary.special[0]] * 40
    scanner = TokenScanner(vocabulary.tokenizer, "END", prompt_token_ids=prompt)
    assert emitted(scanner, token_ids) == "the "


def test_many_special_tokens_after_the_text_of_the_prompt() -> None:
    vocabulary = load(small_fallback)
    token_ids = vocabulary.spell(" the END", [4])
    prompt = [*vocabulary.spell("no", [2]), *[vocabulary.special[0]] * 40]
    scanner = TokenScanner(vocabulary.tokenizer, "END", prompt_token_ids=prompt)
    assert emitted(scanner, token_ids) == " the "


def test_prompt_in_a_byte_spelled_script() -> None:
    # The prompt's last 16 tokens (`PROMPT_CONTEXT`) begin within a character. Decoded alone, their bytes are invalid.
    vocabulary = load(small_fallback)
    prompt, token_ids = vocabulary.spell("ገንዘብ" * 3), vocabulary.spell("አማርኛ the")
    scanner = TokenScanner(vocabulary.tokenizer, "END", prompt_token_ids=prompt)
    assert run(scanner, token_ids[:6]) == ["", "", "አ", "", "", "ማ", ""]


HALVES = {
    "completed": (["a", b"X\xe4"], [b"\xbd", b"\xa0", "b"], ["", "你", "b", ""]),
    "left as it is": (["a", b"X\xe4"], ["b"], ["b", ""]),
    "and no more": (["a", b"X\xe4"], [], [""]),
    "and another half": (["a", b"X\xe4"], [b"\xbd"], ["", ""]),
}


@pytest.mark.parametrize(("prompt", "pieces", "outputs"), HALVES.values(), ids=HALVES)
def test_a_prompt_that_ends_in_half_a_character(
    prompt: list[str | bytes], pieces: list[str | bytes], outputs: list[str]
) -> None:
    tokenizer, token_ids = staged(*prompt, *pieces)
    cut = len(prompt)
    scanner = agree(tokenizer, byte_level_book(tokenizer), token_ids[cut:], ["X"], prompt_token_ids=token_ids[:cut])
    assert scanner.finish == Finish("eos")
    scanner = TokenScanner(tokenizer, ["X"], prompt_token_ids=token_ids[:cut])
    assert run(scanner, token_ids[cut:]) == outputs


def test_run_of_bytes_over_the_prompt_keeps_its_character() -> None:
    """The prompt ends with the first byte of a character, and the stream begins with the remaining bytes. Before a fix,
    the remaining bytes were decoded without the first one, as invalid UTF-8."""
    # This test changes the decoder, so it makes its own tokenizer. It must not change the one that other tests share.
    tokenizer = small_fallback().tokenizer
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)]
    )
    assert not Vocabulary(tokenizer).native
    first, *rest = [tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in "你好世".encode()]
    scanner = TokenScanner(tokenizer, prompt_token_ids=[first])
    assert run(scanner, rest) == ["", "你", "", "", "好", "", "", "世", ""]


def test_stops_do_not_reach_into_the_prompt() -> None:
    tokenizer, token_ids = staged("E", "ND", "END")
    scanner = TokenScanner(tokenizer, "END", prompt_token_ids=token_ids[:1])
    assert run(scanner, token_ids[1:]) == ["ND", ""]
