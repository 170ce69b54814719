"""How tokens may spell a stop. A case has tokens, stops, the text emitted, and the counts of tokens seen and kept."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pytest
from tokenizers import Tokenizer
from vocabularies import byte_level_book, staged
from whole import agree, emitted, run, stopped

from stopscan import Repeat, StopMatch, StopSet
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter
from stopscan_conformance.reciter import Reciter

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


def test_special_tokens_are_kept_between_text_only() -> None:
    tokenizer, token_ids = staged("a", "<s>", "b", "<s>", "<s>", special=["<s>"])
    scanner = TokenScanner(tokenizer, ["END"])
    counts = []
    for token_id in token_ids:
        scanner.feed(token_id)
        counts.append(scanner.tokens_kept)
    assert scanner.flush() == ""
    assert [*counts, scanner.tokens_kept] == [1, 1, 3, 3, 3, 3]


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("include_stop", [True, False])
def test_stop_of_one_special_token_fires_without_text(skip: bool, include_stop: bool) -> None:
    tokenizer, token_ids = staged("aE", "<|end|>", "b", special=["<|end|>"])
    scanner = TokenScanner(tokenizer, ["<|end|>", "END"], include_stop=include_stop, skip_special_tokens=skip)
    shown = include_stop and not skip
    assert emitted(scanner, token_ids) == ("aE<|end|>" if shown else "aE")
    assert (scanner.match, scanner.tokens_seen) == (StopMatch("<|end|>", 2), 2)
    assert (scanner.finish and scanner.finish.matched_stop) == "<|end|>"


def test_stop_of_one_special_token_precedes_its_id() -> None:
    tokenizer, token_ids = staged("a", "<|end|>", special=["<|end|>"])
    options = {"stop_token_ids": [token_ids[1]], "eos_token_ids": [token_ids[1]]}
    scanner = TokenScanner(tokenizer, ["<|end|>"], **options)
    assert (emitted(scanner, token_ids), scanner.match) == ("a", StopMatch("<|end|>", 1))
    unarmed = TokenScanner(tokenizer, ["<|end|>"], min_tokens=2)
    assert (emitted(unarmed, token_ids), unarmed.match) == ("a", None)


def test_marker_of_special_tokens_and_text_is_refused() -> None:
    tokenizer, token_ids = staged("<|open|>", "think", "END", "<|open|>", "x", special=["<|open|>"])
    stops = StopSet("END", protect=[("<|open|>think", "<|open|>")])
    with pytest.raises(ValueError, match=r"<.open.>think.*skip_special_tokens=False"):
        TokenScanner(tokenizer, stops)
    scanner = TokenScanner(tokenizer, stops, skip_special_tokens=False)
    assert emitted(scanner, token_ids) == "<|open|>thinkEND<|open|>x"


def test_a_snapshot_has_no_vocabulary() -> None:
    tokenizer, token_ids = staged("a ", b"\xf0\x9f", b"\x9b\x91", "EN", "D")
    options = {"eos_token_ids": 7, "max_tokens": 9, "prompt_token_ids": token_ids[:1]}
    scanner = TokenScanner(tokenizer, ["END"], **options)
    for token_id in token_ids:
        snapshot = scanner.snapshot()
        assert len(snapshot) < 100
        other = TokenScanner(tokenizer, ["END"], **options)
        other.restore(snapshot)
        assert (other.held, other.tokens_seen, other.snapshot()) == (scanner.held, scanner.tokens_seen, snapshot)
        assert other.feed(token_id) == scanner.feed(token_id)
        assert (other.match, other.finish, other.tokens_kept) == (scanner.match, scanner.finish, scanner.tokens_kept)
    with pytest.raises(ValueError, match="other options"):
        TokenScanner(tokenizer, ["END"]).restore(scanner.snapshot())


def test_a_snapshot_of_version_4_goes_on() -> None:
    graph = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
    repeat = Repeat(3, max_period=4, min_length=32)
    segments = SegmentSet(graph, stop=["END"], patterns=[r"\d+:x"], repeat=repeat)
    spelled = ("<think>", "Hm ", "é", "</think>", "12", ":", "x")
    tokenizer, token_ids = staged(*spelled, special=["<think>", "</think>"])
    segmenter, other = (TokenSegmenter(tokenizer, segments, eos_token_ids=7, max_tokens=9) for _ in range(2))
    for token_id in token_ids[:-1]:
        segmenter.feed(token_id)
    assert segmenter.snapshot() == VERSION_4
    other.restore(VERSION_4)
    assert (other.held, other.region, other.tokens_in) == ("12:", "answer", {"answer": 0, "reasoning": 2})
    assert other.feed(token_ids[-1]) == []
    assert other.match == StopMatch("12:x", 4, pattern=r"\d+:x")


# A snapshot in version 4 of the format. Its `TokenSegmenter` looks for loops, and holds the beginning of a match.
VERSION_4 = bytes.fromhex(
    "0434a1fb8c1be4d1e10000000708020000000331323a08020202030202020005000031323a06030300050104"
    "040400020106010000000100000000010000164703cf"
)


def test_added_tokens_that_are_not_special_are_text() -> None:
    reciter = Reciter({"think": ["<think>", "E", "ND", "</think>", "a", "END"]})
    with TemporaryDirectory() as directory:
        tokenizer = Tokenizer.from_file(str(reciter.write(directory) / "tokenizer.json"))
    stops = StopSet("END", protect=[("<think>", "</think>")])
    scanner = TokenScanner(tokenizer, stops)
    assert emitted(scanner, reciter.token_ids("think")) == "<think>END</think>a"
    assert scanner.finish == stopped(19)
