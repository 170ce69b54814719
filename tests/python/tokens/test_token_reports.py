"""Tests against bugs of other projects, named after the reports there."""

from __future__ import annotations

import pytest
from families import load, small_bytes
from vocabularies import staged
from whole import emitted, run, stopped

from stopscan.finish import Finish
from stopscan.tokens import TokenScanner


def test_exo_leaked_first_tokens_of_a_stop() -> None:
    tokenizer, token_ids = staged("Hi", "<|", "im", "_end", "|>")
    assert run(TokenScanner(tokenizer, "<|im_end|>"), token_ids) == ["Hi", "", "", "", ""]


@pytest.mark.parametrize("stop", ["END", "→", "a→"])
def test_smg_1447_1524_unencodable_stop_is_not_dropped(stop: str) -> None:
    tokenizer, token_ids = staged("a", b"\xe2\x86", b"\x92", "EN", "D")
    assert tokenizer.decode(tokenizer.encode(stop).ids) != stop
    scanner = TokenScanner(tokenizer, [stop])
    assert emitted(scanner, token_ids) == "a→END"[: "a→END".index(stop)]
    assert scanner.finish is not None
    assert scanner.finish.matched_stop == stop


def test_smg_1447_1524_match_names_the_string() -> None:
    tokenizer, token_ids = staged("5", " ", "6")
    scanner = TokenScanner(tokenizer, ["6"], stop_token_ids=token_ids[2:])
    assert emitted(scanner, token_ids) == "5 "
    assert scanner.finish is not None
    assert scanner.finish.matched_stop == "6"


def test_dynamo_min_tokens_missed_a_stop_that_straddles_it() -> None:
    tokenizer, token_ids = staged("a", "E", "N", "D", "b")
    for min_tokens in range(4):
        scanner = TokenScanner(tokenizer, "END", min_tokens=min_tokens)
        assert emitted(scanner, token_ids) == "a"
    assert emitted(TokenScanner(tokenizer, "END", min_tokens=4), token_ids) == "aENDb"


def test_vllm_stops_count_from_the_token_after_min_tokens() -> None:
    tokenizer, token_ids = staged("END", "a", "END")
    scanner = TokenScanner(tokenizer, "END", min_tokens=2)
    assert emitted(scanner, token_ids) == "ENDa"
    assert scanner.finish == stopped(4)


def test_llama_cpp_lost_held_text_at_the_token_limit() -> None:
    tokenizer, token_ids = staged("not ", "ST", "O", "x")
    assert run(TokenScanner(tokenizer, "STOP", max_tokens=3), token_ids) == ["not ", "", "STO"]


def test_mlx_engine_lost_its_held_tail_at_the_limit() -> None:
    tokenizer, token_ids = staged("a")
    scanner = TokenScanner(tokenizer, "ab", max_tokens=8)
    assert run(scanner, token_ids * 9) == ["", *["a"] * 6, "aa"]
    assert scanner.tokens_kept == 8


def test_mlx_lm_dropped_held_text_at_eos() -> None:
    tokenizer, token_ids = staged("not ", "ST", "O", "</s>", special=["</s>"])
    scanner = TokenScanner(tokenizer, "STOP", eos_token_ids=token_ids[3:])
    assert run(scanner, token_ids) == ["not ", "", "", "STO"]
    assert (scanner.finish, scanner.tokens_kept) == (Finish("eos"), 3)


def test_mlx_lm_re_read_held_text() -> None:
    tokenizer, token_ids = staged("##", " Title", "\n")
    assert run(TokenScanner(tokenizer, "###"), token_ids) == ["", "## Title", "\n", ""]


def test_sglang_missed_a_stop_in_unusual_tokens() -> None:
    vocabulary = load(small_bytes)
    assert len(vocabulary.encode("END")) < len("END")
    scanner = TokenScanner(vocabulary.tokenizer, "END")
    assert emitted(scanner, vocabulary.spell("the END", [1])) == "the "


def test_tgi_missed_a_stop_within_a_token() -> None:
    tokenizer, token_ids = staged("a", " END.\n")
    assert emitted(TokenScanner(tokenizer, "END"), token_ids) == "a "
