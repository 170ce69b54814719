"""How streams end without a stop string (at EOS, at a stop token, at a limit), and the text that comes out then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from families import gemma
from tokenizers import Tokenizer
from vocabularies import byte_level_book, staged
from whole import REASONS, agree, emitted, ended, run, stopped

from stopscan import StopSet
from stopscan.finish import Finish
from stopscan.tokens import TokenScanner, Vocabulary


class Carrier:
    """Wraps a tokenizer and changes its text in ``decode``. So stopscan must call ``decode``: ``native`` is false."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.backend_tokenizer = tokenizer

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        text: str = self.backend_tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens)
        return text.replace("b", "B")


ENDS = {
    "stop token": ({"stop_token_ids": ["b"]}, "a", ended(1), 2, 1),
    "eos": ({"eos_token_ids": ["b"]}, "a", Finish("eos"), 2, 1),
    "both": ({"eos_token_ids": ["b"], "stop_token_ids": ["b"]}, "a", ended(1), 2, 1),
    "the first of several": ({"stop_token_ids": ["EN", "b"], "eos_token_ids": ["D"]}, "a", ended(1), 2, 1),
    "a stop token whose text would complete a stop": ({"stop_token_ids": ["D"]}, "abEN", ended(3), 4, 3),
    "an EOS whose text would complete a stop": ({"eos_token_ids": ["D"]}, "abEN", Finish("eos"), 4, 3),
    "a stop token that is a stop": ({"stop_token_ids": ["END"], "pieces": ["a", "b", "END"]}, "ab", stopped(2), 3, 2),
    "an EOS that is a stop": ({"eos_token_ids": ["END"], "pieces": ["a", "b", "END"]}, "ab", stopped(2), 3, 2),
    "an EOS with a stop inside": ({"eos_token_ids": ["|END|"], "pieces": ["a", "|END|"]}, "a", Finish("eos"), 2, 1),
    "a stop token inside a stop": ({"stop_token_ids": ["EN"]}, "ab", ended(2), 3, 2),
    "held text at a stop token": ({"stop_token_ids": ["x"], "pieces": ["a", "b", "EN", "x"]}, "abEN", ended(3), 4, 3),
    "held text at EOS": ({"eos_token_ids": ["x"], "pieces": ["a", "b", "EN", "x"]}, "abEN", Finish("eos"), 4, 3),
    "half a character at EOS": ({"eos_token_ids": ["x"], "pieces": ["a", b"\xe4", b"\xbd", "x"]},
                                "a\ufffd", Finish("eos"), 4, 3),
    "a stop token that completes a character": ({"stop_token_ids": [b"\xa9"], "pieces": ["a", b"\xc3", b"\xa9"]},
                                                "a\ufffd", ended(2), 3, 2),
    "length": ({"max_tokens": 2}, "ab", Finish("length"), 2, 2),
    "held text at length": ({"max_tokens": 3}, "abEN", Finish("length"), 3, 3),
    "half a character at length": ({"max_tokens": 3, "pieces": ["a", b"\xf0", b"\x9f", b"\x9a\x80"]},
                                   "a\ufffd", Finish("length"), 3, 3),
    "a special token after half a character": ({"eos_token_ids": ["x"], "pieces": ["a", b"\xc3", "<s>", "x"]},
                                               "a\ufffd", Finish("eos"), 4, 2),
    "a stop on the last token": ({"max_tokens": 4}, "ab", stopped(2), 4, 2),
    "a stop token as the last": ({"max_tokens": 2, "stop_token_ids": ["b"]}, "a", ended(1), 2, 1),
    "an EOS before min_tokens": ({"min_tokens": 2, "eos_token_ids": ["b"]}, "a", stopped(1), 4, 1),
    "an EOS before min_tokens that ends the stream": ({"min_tokens": 2, "eos_token_ids": ["b"], "eos_ends_early": True},
                                                      "a", Finish("eos"), 2, 1),
    "a stop token before min_tokens": ({"min_tokens": 2, "stop_token_ids": ["b", "EN"]}, "ab", ended(2), 3, 2),
    "an EOS right after min_tokens": ({"min_tokens": 1, "eos_token_ids": ["b"]}, "a", Finish("eos"), 2, 1),
    "a stop that straddles min_tokens": ({"min_tokens": 3}, "ab", stopped(2), 4, 2),
    "a stop within min_tokens": ({"min_tokens": 4}, "abENDc", Finish("eos"), 5, 5),
    "min_tokens is max_tokens": ({"min_tokens": 4, "max_tokens": 4}, "abEND", Finish("length"), 4, 4),
}  # fmt: skip


@pytest.mark.parametrize(("options", "text", "finish", "seen", "kept"), ENDS.values(), ids=ENDS)
def test_end(options: dict[str, Any], text: str, finish: Finish, seen: int, kept: int) -> None:
    pieces = options.get("pieces", ["a", "b", "EN", "D", "c"])
    tokenizer, token_ids = staged(*pieces, special=["<s>"])
    options = {name: value for name, value in options.items() if name != "pieces"}
    for name in options.keys() & {"stop_token_ids", "eos_token_ids"}:
        options[name] = [token_ids[pieces.index(piece)] for piece in options[name]]
    agree(tokenizer, byte_level_book(tokenizer), token_ids, ["END"], **options)
    scanner = TokenScanner(tokenizer, ["END"], **options)
    assert emitted(scanner, token_ids) == text
    assert scanner.finish == finish
    assert (scanner.tokens_seen, scanner.tokens_kept) == (seen, kept)


def test_special_token_that_ends_is_not_text() -> None:
    tokenizer, token_ids = staged("a", "EN", "</s>", special=["</s>"])
    for skip in (True, False):
        scanner = TokenScanner(tokenizer, ["END"], eos_token_ids=token_ids[2:], skip_special_tokens=skip)
        assert run(scanner, token_ids) == ["a", "", "EN"]
        assert scanner.finish == Finish("eos")
        assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 2)


@pytest.mark.parametrize("native", [True, False])
def test_half_a_character_before_a_special_stop_comes_out(native: bool) -> None:
    """Half a character before a special token that is a stop must come out as U+FFFD. Before a fix, it was lost, and
    the stop's offset was too small by one."""
    tokenizer, token_ids = staged("a", b"\xc3", "<|im_end|>", special=["<|im_end|>"])
    carrier = tokenizer if native else Carrier(tokenizer)
    scanner = TokenScanner(carrier, ["<|im_end|>"])
    assert run(scanner, token_ids) == ["a", "", "\ufffd"]
    assert scanner.finish == stopped(2, "<|im_end|>")
    assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 2)
    scanner = TokenScanner(carrier, ["\ufffd", "<|im_end|>"])
    assert run(scanner, token_ids) == ["a", "", ""]
    assert scanner.finish == stopped(1, "\ufffd")


def test_an_end_that_the_tokenizer_does_not_know() -> None:
    tokenizer, token_ids = staged("a", b"\xc3")
    scanner = TokenScanner(tokenizer, eos_token_ids=[99, 2**32 - 1])
    assert run(scanner, [*token_ids, 2**32 - 1]) == ["a", "", "\ufffd"]
    assert scanner.finish == Finish("eos")
    assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 2)


@pytest.mark.parametrize("reason", REASONS)
def test_flush_returns_held_text_and_half_a_character(reason: Any) -> None:
    tokenizer, token_ids = staged("a", "EN", b"\xc3")
    scanner = TokenScanner(tokenizer, ["END"])
    assert [scanner.feed(token_id) for token_id in token_ids] == ["a", "", ""]
    assert scanner.flush(reason) == "EN\ufffd"
    assert scanner.finish == Finish(reason)
    assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 3)


def test_close_finds_a_stop_that_half_a_character_completes() -> None:
    tokenizer, token_ids = staged("a", b"\xc3")
    scanner = TokenScanner(tokenizer, ["a\ufffd"])
    assert emitted(scanner, token_ids, "abort") == ""
    assert scanner.finish == stopped(0, "a\ufffd")


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(("min_tokens", "fires"), [(0, True), (1, True), (2, False), (3, False)])
def test_close_finds_a_stop_in_a_counted_token(native: bool, min_tokens: int, fires: bool) -> None:
    tokenizer, token_ids = staged("a", b"\xc3", "b")
    carrier = tokenizer if native else Carrier(tokenizer)
    assert Vocabulary(carrier).native == native
    scanner = TokenScanner(carrier, ["a\ufffd"], min_tokens=min_tokens)
    assert emitted(scanner, token_ids[:2]) == ("" if fires else "a\ufffd")
    assert scanner.finish == (stopped(0, "a\ufffd") if fires else Finish("eos"))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", ["stop_token_ids", "eos_token_ids"])
@pytest.mark.parametrize("beyond", [3, 4, 99, 2**32 - 1])
def test_an_end_beyond_the_vocabulary_is_counted(native: bool, name: str, beyond: int) -> None:
    tokenizer, token_ids = staged("a", b"\xc3", "b")
    carrier = tokenizer if native else Carrier(tokenizer)
    scanner = TokenScanner(carrier, ["a\ufffd\ufffd"], **{name: [beyond]})
    assert run(scanner, [*token_ids[:2], beyond]) == ["", "", "a\ufffd"]
    assert scanner.finish == (ended(beyond) if name == "stop_token_ids" else Finish("eos"))
    assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 2)


@pytest.mark.parametrize("reason", ["stop_sequence", "stop_token", "end_turn", ""])
def test_close_refuses_what_it_cannot_know(reason: Any) -> None:
    tokenizer, token_ids = staged("a", "EN", "D")
    scanner = TokenScanner(tokenizer, ["END"])
    scanner.feed(token_ids[0])
    scanner.feed(token_ids[1])
    with pytest.raises(ValueError, match=repr(reason)):
        scanner.flush(reason)
    assert scanner.finish is None
    assert scanner.feed(token_ids[2]) == ""
    assert scanner.finish == stopped(1)


def test_no_token_is_wanted() -> None:
    tokenizer, token_ids = staged("a")
    scanner = TokenScanner(tokenizer, ["END"], max_tokens=0)
    assert scanner.finish == Finish("length")
    assert scanner.feed(token_ids[0]) == ""
    assert (scanner.tokens_seen, scanner.tokens_kept) == (0, 0)


def test_close_at_once() -> None:
    tokenizer, _ = staged("a")
    scanner = TokenScanner(tokenizer, ["END"])
    assert scanner.flush("abort") == ""
    assert (scanner.finish, scanner.tokens_seen, scanner.tokens_kept) == (Finish("abort"), 0, 0)


@pytest.mark.parametrize(
    "options", [{"stop": ["b"]}, {"stop_token_ids": [1]}, {"eos_token_ids": [1]}, {"max_tokens": 2}, {}]
)
def test_after_the_end_nothing_changes(options: dict[str, Any]) -> None:
    tokenizer, token_ids = staged("a", "b", "c")
    scanner = TokenScanner(tokenizer, options.pop("stop", "END"), **options)
    run(scanner, token_ids[:2])
    state = scanner.finish, scanner.tokens_seen, scanner.tokens_kept
    assert scanner.feed(token_ids[2]) == ""
    assert scanner.feed(-1) == ""
    assert scanner.flush("abort") == ""
    assert (scanner.finish, scanner.tokens_seen, scanner.tokens_kept) == state


IM_END = ["It", " is", " 6", ".", "<|im_end|>"]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("stop", ["end", "|", " 6.<", ".<|im_end|>", "<|im_end"])
def test_no_stop_fires_in_an_end_token(native: bool, stop: str) -> None:
    """The text of an end token (an EOS or a stop token) is not scanned for stops.

    Before a fix, if special tokens were kept in the text, a stop could fire in an end token. The stop ``end`` fired
    after ``It is 6.<|im_``. The stop `` 6.<`` removed `` 6.`` from the answer.
    """
    tokenizer, token_ids = staged(*IM_END, special=["<|im_end|>"])
    carrier = tokenizer if native else Carrier(tokenizer)
    for end in ("eos_token_ids", "stop_token_ids"):
        for include_stop in (False, True):
            options: dict[str, Any] = {end: token_ids[-1], "include_stop": include_stop}
            scanner = TokenScanner(carrier, [stop], skip_special_tokens=False, **options)
            assert emitted(scanner, token_ids) == "It is 6."
            assert scanner.finish == (Finish("eos") if end == "eos_token_ids" else ended(token_ids[-1]))


def test_no_stop_fires_at_an_end_token_that_completes_a_character() -> None:
    """The stop is a character that earlier tokens began and that the end token completes. The text of the end token
    alone is not equal to the stop, so the stop does not fire. Before a fix, it fired in the reference."""
    vocabulary = gemma()
    token_ids = [vocabulary.tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in "见".encode()]
    scanner = agree(vocabulary.tokenizer, vocabulary.book, token_ids, ["见"], eos_token_ids=token_ids[-1:])
    assert scanner.finish == Finish("eos")


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("skips", [True, False])
def test_stop_equal_to_an_end_token_fires(native: bool, skips: bool) -> None:
    tokenizer, token_ids = staged(*IM_END, special=["<|im_end|>"])
    carrier = tokenizer if native else Carrier(tokenizer)
    scanner = TokenScanner(
        carrier, ["<|im_end|>"], eos_token_ids=token_ids[-1], skip_special_tokens=skips, include_stop=True
    )
    assert emitted(scanner, token_ids) == "It is 6."
    assert scanner.finish == stopped(8, "<|im_end|>")


@pytest.mark.parametrize("native", [True, False])
def test_an_id_that_the_vocabulary_lacks_counts_if_asked(native: bool) -> None:
    tokenizer, (a, end) = staged("a", "END")
    carrier = tokenizer if native else Carrier(tokenizer)
    scanner = TokenScanner(carrier, ["END"], unknown_ids="count", max_tokens=4)
    assert [scanner.feed(token_id) for token_id in (a, 77, end)] == ["a", "", ""]
    assert (scanner.tokens_seen, scanner.tokens_kept, scanner.finish) == (3, 1, stopped(1))
    scanner.reset()
    assert scanner.feed_many([a, 77, 78, 79]) == "a"
    assert (scanner.tokens_seen, scanner.finish) == (4, Finish("length"))
    assert TokenScanner(carrier, ["END"], unknown_ids="count", prompt_token_ids=[77, a]).feed(a) == "a"
    with pytest.raises(ValueError, match="prompt_token_ids: token id 77"):
        TokenScanner(carrier, prompt_token_ids=[77, a])
    with pytest.raises(ValueError, match="'refuse' or 'count'"):
        TokenScanner(carrier, unknown_ids="ignore")  # type: ignore[arg-type]


class Interrupted:
    """An id whose ``__index__`` raises. ``calls`` counts the calls of ``__index__``."""

    calls = 0

    def __index__(self) -> int:
        self.calls += 1
        raise KeyboardInterrupt


def test_an_id_that_raises_is_asked_once() -> None:
    tokenizer, (a,) = staged("a")
    scanner, token_id = TokenScanner(tokenizer, ["END"]), Interrupted()
    with pytest.raises(KeyboardInterrupt):
        scanner.feed(token_id)  # type: ignore[arg-type]
    assert token_id.calls == 1
    assert scanner.feed(a) == "a"


def test_a_marker_that_is_one_token_is_one_step() -> None:
    """If a marker is one token, no stop fires inside it. Before a fix, the stop ``<`` fired in ``<think>``, so the
    answer was empty."""
    tokenizer, (think, less, text) = staged("<think>", "<", "think>")
    stops = StopSet(["<"], protect=[("<think>", "</think>")])
    scanner = TokenScanner(tokenizer, stops)
    assert (scanner.feed(think), scanner.region, scanner.finish) == ("<think>", "<think>", None)
    scanner = TokenScanner(tokenizer, stops)
    assert (scanner.feed_many([less, text]), scanner.finish) == ("", stopped(0, "<"))


def test_longest_marker_wins_at_its_last_character() -> None:
    tokenizer, (x, think) = staged("x", "<think>")
    for stop, finish in [("x<think>", stopped(0, "x<think>")), ("k>", None), ("x<th", None)]:
        scanner = TokenScanner(tokenizer, StopSet([stop], protect=[("<think>", "</think>")]))
        text = scanner.feed_many([x, think])
        assert (text, scanner.finish) == ("" if finish else "x<think>", finish)
    for pattern, finish in [(r"x<\w+>", stopped(0, "x<think>")), (r"<\w+", None)]:
        scanner = TokenScanner(tokenizer, StopSet(patterns=[pattern], max_held=9, protect=[("<think>", "</think>")]))
        text = scanner.feed_many([x, think])
        assert (text, scanner.finish) == ("" if finish else "x<think>", finish)
