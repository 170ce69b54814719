"""Named cases: the tokens, the stops, the text, and how many tokens were seen and kept."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pytest
from tokenizers import Tokenizer
from vocabularies import byte_level_book, staged
from whole import agree, emitted, run, stopped

from stopscan import StopSet
from stopscan.testing.reciter import Reciter
from stopscan.tokens import TokenScanner

SPELLINGS = {
    "one token": (["a ", "END", "x"], ["END"], "a ", 2, 1),
    "several tokens": (["a ", "E", "N", "D", "x"], ["END"], "a ", 4, 1),
    "pieces of neighbours": (["3 hel", "lo wor", "ld 4"], ["hello world"], "3 ", 3, 1),
    "inside one token": (["The", " WENDS", " on"], ["END"], "The W", 2, 2),
    "with its leading space": (["a", " END"], [" END"], "a", 2, 1),
    "without its leading space": (["a", " END"], ["END"], "a ", 2, 2),
    "half characters": (["a", b"\xf0\x9f", b"\x9b", b"\x91", "b"], ["🛑"], "a", 4, 1),
    "begins after the first half of a group": ([b"\xc3", b"\xa9X", "Y"], ["X"], "é", 2, 2),
    "begins in the middle of a group": ([b"\xc3", b"\xa9\xe4", b"\xbd", b"\xa0", "b"], ["你"], "é", 4, 2),
    "begins in one group and ends in the next": ([b"a\xe4", b"\xbd\xa0\xe5", b"\xa5\xbd!"], ["你好"], "a", 3, 1),
    "emoji of several": (["Hi ", "👩", b"\xe2\x80", b"\x8d\xf0\x9f\x92", b"\xbb", "."], ["👩\u200d💻"], "Hi ", 5, 1),
    "emoji cut from its sequence": (["👩", b"\xe2\x80", b"\x8d\xf0\x9f\x92", b"\xbb"], ["\u200d💻"], "👩", 4, 1),
    "CJK": (["你", b"\xe5\xa5", b"\xbd\xe3\x80", b"\x82x"], ["。"], "你好", 4, 3),
    "two stops of which one comes first": (["a", "bE", "ND"], ["END", "b"], "a", 2, 1),
    "a stop that begins twice": (["XYZW", " E", "N", "E", "ND!"], ["END"], "XYZW EN", 5, 3),
    "none": (["a", "EN", "d"], ["END"], "aENd", 3, 3),
}  # fmt: skip


@pytest.mark.parametrize(("pieces", "stop", "text", "seen", "kept"), SPELLINGS.values(), ids=SPELLINGS)
def test_spelling(pieces: list[str | bytes], stop: list[str], text: str, seen: int, kept: int) -> None:
    tokenizer, token_ids = staged(*pieces)
    scanner = agree(tokenizer, byte_level_book(tokenizer), token_ids, stop)
    again = TokenScanner(tokenizer, stop)
    assert emitted(again, token_ids) == text
    assert (scanner.tokens_seen, scanner.tokens_kept) == (seen, kept)


def test_nothing_is_withheld_without_need() -> None:
    tokenizer, token_ids = staged("This", " is", " E", "X", " E", "N", "D")
    scanner = TokenScanner(tokenizer, ["END"])
    assert run(scanner, token_ids) == ["This", " is", " ", "EX", " ", "", ""]


def test_include_stop_keeps_its_tokens() -> None:
    tokenizer, token_ids = staged("a ", "E", "NDx", "y")
    scanner = agree(tokenizer, byte_level_book(tokenizer), token_ids, ["END"], include_stop=True)
    assert scanner.finish == stopped(2)
    assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 3)


def test_special_tokens_between_text_are_kept_and_after_it_are_not() -> None:
    tokenizer, token_ids = staged("a", "<s>", "b", "<s>", "<s>", special=["<s>"])
    scanner = TokenScanner(tokenizer, ["END"])
    counts = []
    for token_id in token_ids:
        scanner.feed(token_id)
        counts.append(scanner.tokens_kept)
    assert scanner.close() == ""
    assert [*counts, scanner.tokens_kept] == [1, 1, 3, 3, 3, 3]


@pytest.mark.parametrize(("skip", "text", "reason"), [(True, "ab", "eos"), (False, "a", "stop_sequence")])
def test_special_tokens_have_text_only_if_they_are_not_skipped(skip: bool, text: str, reason: str) -> None:
    tokenizer, token_ids = staged("a", "<|end|>", "b", special=["<|end|>"])
    scanner = TokenScanner(tokenizer, ["<|end|>"], skip_special_tokens=skip)
    assert emitted(scanner, token_ids) == text
    assert scanner.finish is not None
    assert scanner.finish.reason == reason


def test_added_tokens_that_are_not_special_are_text() -> None:
    reciter = Reciter({"think": ["<think>", "E", "ND", "</think>", "a", "END"]})
    with TemporaryDirectory() as directory:
        tokenizer = Tokenizer.from_file(str(reciter.write(directory) / "tokenizer.json"))
    stops = StopSet("END", protect=[("<think>", "</think>")])
    scanner = TokenScanner(tokenizer, stops)
    assert emitted(scanner, reciter.token_ids("think")) == "<think>END</think>a"
    assert scanner.finish == stopped(19)
