"""`TokenScanner` says what scanning the whole decoded text says, whatever tokens the text came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from itertools import pairwise, takewhile
from operator import eq
from tempfile import TemporaryDirectory
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import Match, Reference
from tokenizers import Tokenizer, decoders, models
from vocabularies import (
    VOCABULARIES,
    Vocabulary,
    claude,
    load,
    mistral,
    small_bytes,
    small_fallback,
    staged,
)

from stopscan import StopSet
from stopscan.finish import EndReason, Finish
from stopscan.testing.reciter import SCRIPTS, Reciter
from stopscan.tokens import TokenScanner

REASONS = get_args(EndReason)


# The oracle


class Whole:
    """What a token scanner must say, found by decoding all tokens again after each one and scanning by the book."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        token_ids: Sequence[int],
        stop: Sequence[str] = (),
        *,
        visible: Sequence[str] = (),
        protect: Sequence[tuple[str, str]] = (),
        stop_token_ids: Sequence[int] = (),
        eos_token_ids: Sequence[int] = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        include_stop: bool = False,
        start_protected: bool = False,
        skip_special_tokens: bool = True,
        prompt_token_ids: Sequence[int] = (),
        reason: str = "eos",
    ) -> None:
        self.token_ids = [*token_ids]
        self.prompt = [*prompt_token_ids]
        self.decode = lambda ids: tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        # Its last tokens may be half a character, which would turn all of a byte-fallback run into U+FFFD.
        cut = len(self.prompt)
        while cut and self.decode(self.prompt[:cut]).endswith("\ufffd"):
            cut -= 1
        self.before = self.decode(self.prompt[:cut]) + self.decode(self.prompt[cut:])
        self.reference = Reference(
            stop, visible=visible, protect=protect, include_stop=include_stop, start_protected=start_protected
        )
        self.read = ""  # the text of the first `done` tokens
        self.done = 0
        self.anchor = 0, ""  # where decoding begins, and the text before
        self.starts: list[int] = []
        self.outputs: list[str] = []
        self.seen = 0
        self.finish = None
        for token_id in token_ids:
            armed = self.seen >= min_tokens
            if armed and token_id in [*stop_token_ids, *eos_token_ids]:
                is_stop = token_id in stop_token_ids
                self.end(Finish("stop_token", token_id) if is_stop else Finish("eos"), armed=True, ids=1)
                break
            self.seen += 1
            self.outputs.append(self.feed(self.ready(), armed=armed))
            self.finish = self.matched()
            if self.finish is None and self.seen == max_tokens:
                self.end(Finish("length"), armed=armed)
                self.outputs[-2:] = ["".join(self.outputs[-2:])]
            if self.finish is not None:
                break
        else:
            self.end(Finish(reason), armed=self.seen > min_tokens)
        self.emitted = "".join(self.outputs)
        self.kept = sum(start < len(self.emitted) for start in self.starts)

    def text(self, tokens: int) -> str:
        """The text of the first tokens, without what the prompt's own tokens say."""
        anchor, text = self.anchor
        if tokens == anchor:
            return text
        whole = self.decode(self.prompt + self.token_ids[anchor:tokens])
        text += whole[common(self.before, whole) :]
        if tokens > self.done and not text.startswith(self.read):  # the exception that byte fallback makes
            self.anchor, self.prompt, self.before = (self.done, self.read), [], ""
            return self.text(tokens)
        return text

    def ready(self) -> int:
        """How many of the tokens do not end in half a character."""
        counts = range(self.seen, self.done, -1)
        return next((count for count in counts if not self.text(count).endswith("\ufffd")), self.done)

    def feed(self, tokens: int, *, armed: bool) -> str:
        text = self.text(tokens)
        new = text[len(self.read) :]
        for count in range(self.done, tokens):
            before = self.text(count)
            # Several tokens may share the U+FFFD that ends the text.
            self.starts.append(common(before.rstrip("\ufffd") if before == text else before, text))
        self.read, self.done = text, tokens
        return self.reference.feed(new, armed=armed)

    def end(self, finish: Finish, *, armed: bool, ids: int = 0) -> None:
        """The end, with one token more if its text completes a stop."""
        with_token = copy(self.reference)
        with_token.feed(self.text(self.seen + ids)[len(self.read) :], armed=armed)
        tokens = self.seen + ids if with_token.match else self.seen
        self.outputs.append(self.feed(tokens, armed=armed) + self.reference.flush())
        self.finish = self.matched() or finish
        self.seen += ids

    def matched(self) -> Finish | None:
        match = self.reference.match
        return match and Finish("stop_sequence", match.sequence, match.offset)


def common(text: str, other: str) -> int:
    return sum(takewhile(bool, map(eq, text, other)))


def run(scanner: TokenScanner, token_ids: Sequence[int], reason: Any = "eos") -> list[str]:
    """What each token emitted, and what the end did if it was not one of them."""
    outputs = []
    for token_id in token_ids:
        outputs.append(scanner.feed(token_id))
        if scanner.finish is not None:
            return outputs
    return [*outputs, scanner.close(reason)]


def agree(tokenizer: Tokenizer, token_ids: Sequence[int], stop: Sequence[str] = (), **options: Any) -> TokenScanner:
    """The scanner after all tokens, each output, count and the finish of which were what the oracle says."""
    whole = Whole(tokenizer, token_ids, stop, **options)
    reason = options.pop("reason", "eos")
    stops = StopSet(stop, visible=options.pop("visible", ()), protect=options.pop("protect", ()))
    scanner = TokenScanner(tokenizer, stops, **options)
    assert run(scanner, token_ids, reason) == whole.outputs
    assert scanner.finish == whole.finish
    assert (scanner.tokens_seen, scanner.tokens_kept) == (whole.seen, whole.kept)
    return scanner


def emitted(scanner: TokenScanner, token_ids: Sequence[int], reason: Any = "eos") -> str:
    return "".join(run(scanner, token_ids, reason))


def stopped(offset: int, stop: str = "END") -> Finish:
    return Finish("stop_sequence", stop, offset)


def ended(token_id: int) -> Finish:
    return Finish("stop_token", token_id)


# Every way to spell a text


@pytest.fixture(scope="module", params=VOCABULARIES, ids=lambda make: make.__name__)
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    return load(request.param)


WORDS = [
    "END",
    "E",
    "ND",
    " ",
    " END",
    "the ",
    "ab",
    "a",
    "b",
    "\n\n",
    "1, 2",
    "naïve",
    "é",
    "你好",
    "世",
    "再见",
    "አማ",
]
WORDS += ["🚀", "😀", "👩\u200d💻", "e\u0301", "<think>", "</think>", "\t", "  ", "x", "ENDS", "\u00a0", "Ω"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map("".join)
WISHES = st.lists(st.integers(0, 6), min_size=1, max_size=6)


@st.composite
def stops_of(draw: Callable[..., Any], text: str) -> list[str]:
    """Stops that are in the text, or nearly."""
    pieces = st.sampled_from(WORDS)
    if text:
        bounds = st.tuples(st.integers(0, len(text) - 1), st.integers(1, 6))
        pieces = st.one_of(bounds.map(lambda at: text[at[0] : at[0] + at[1]]), pieces)
        pieces = st.one_of(pieces, st.tuples(pieces, pieces).map("".join))
    return draw(st.lists(pieces, max_size=4, unique=True))


@st.composite
def streams(draw: Callable[..., Any], vocabulary: Vocabulary) -> tuple[list[int], list[str]]:
    """Token ids and stops."""
    text = draw(TEXTS)
    token_ids = vocabulary.spell(text, draw(WISHES)) if draw(st.booleans()) else vocabulary.encode(text)
    for at in draw(st.lists(st.integers(0, len(token_ids)), max_size=2)):
        token_ids.insert(at, vocabulary.special)
    return token_ids, draw(stops_of(text))


@given(st.data())
def test_text_match_and_counts_are_those_of_the_whole_text(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    agree(
        vocabulary.tokenizer,
        token_ids,
        stop,
        include_stop=data.draw(st.booleans()),
        skip_special_tokens=data.draw(st.booleans()),
        reason=data.draw(st.sampled_from(REASONS)),
    )


@given(st.data())
def test_ids_that_end_and_limits_beside_strings(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    ends = st.lists(st.sampled_from([*token_ids, vocabulary.special]), max_size=2)
    min_tokens = data.draw(st.integers(0, len(token_ids)))
    agree(
        vocabulary.tokenizer,
        token_ids,
        stop,
        stop_token_ids=data.draw(ends),
        eos_token_ids=data.draw(ends),
        min_tokens=min_tokens,
        max_tokens=data.draw(st.none() | st.integers(max(min_tokens, 1), len(token_ids) + 1)),
        include_stop=data.draw(st.booleans()),
        skip_special_tokens=data.draw(st.booleans()),
    )


@given(st.data())
def test_visible_stops_and_protected_regions(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    markers = ("<think>", "</think>")
    hidden = [sequence for sequence in stop if sequence not in markers]
    cut = data.draw(st.integers(0, len(hidden)))
    agree(
        vocabulary.tokenizer,
        token_ids,
        hidden[cut:],
        visible=hidden[:cut],
        protect=[markers],
        start_protected=data.draw(st.booleans()),
    )


@given(st.data())
def test_prompt_decides_on_the_space_and_keeps_its_own_text(vocabulary: Vocabulary, data: st.DataObject) -> None:
    prompt, _ = data.draw(streams(vocabulary))
    token_ids, stop = data.draw(streams(vocabulary))
    agree(vocabulary.tokenizer, token_ids, stop, prompt_token_ids=prompt)


@given(st.data())
def test_prompt_may_end_anywhere_in_the_text(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    cut = data.draw(st.integers(0, len(token_ids)))
    agree(vocabulary.tokenizer, token_ids[cut:], stop, prompt_token_ids=token_ids[:cut])


@given(st.data())
def test_half_characters_at_the_end(vocabulary: Vocabulary, data: st.DataObject) -> None:
    text = data.draw(TEXTS)
    half = data.draw(st.sampled_from(["é", "你", "🚀"])).encode()[:-1]
    # A space keeps the half apart from characters in byte-fallback tokens: see the test of those.
    token_ids = vocabulary.spell(text + " ", [6]) + vocabulary.spell(half, data.draw(WISHES))
    stop = [*data.draw(stops_of(text)), *data.draw(st.sampled_from([(), ("\ufffd",), (" \ufffd",)]))]
    agree(vocabulary.tokenizer, token_ids, stop, reason=data.draw(st.sampled_from(REASONS)))


@pytest.mark.parametrize("make", [claude, small_bytes])
@given(st.data())
def test_any_bytes(make: Callable[[], Vocabulary], data: st.DataObject) -> None:
    vocabulary = load(make)
    pieces = st.sampled_from([b"END", b"\xe4", b"\xbd\xa0", b"\xff", b"\x80", "🚀".encode(), b"\xf0\x9f", b"a", b" "])
    text = b"".join(data.draw(st.lists(pieces, max_size=10)))
    stop = data.draw(stops_of(text.decode(errors="replace")))
    scanner = TokenScanner(vocabulary.tokenizer, stop)
    reference = Reference(stop)
    token_ids = vocabulary.spell(text, data.draw(WISHES))
    whole = reference.feed(vocabulary.tokenizer.decode(token_ids)) + reference.flush()
    assert emitted(scanner, token_ids) == whole
    assert match_of(scanner) == reference.match


def match_of(scanner: TokenScanner) -> Match | None:
    match = scanner.finish and scanner.finish.match
    return match and Match(match.sequence, match.offset, match.end)


@given(st.data())
def test_several_tokens_in_one_step_give_what_one_at_a_time_gives(vocabulary: Vocabulary, data: st.DataObject) -> None:
    token_ids, stop = data.draw(streams(vocabulary))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(token_ids)), max_size=4)))
    steps = [token_ids[start:end] for start, end in pairwise([0, *cuts, len(token_ids)])]
    one, several = TokenScanner(vocabulary.tokenizer, stop), TokenScanner(vocabulary.tokenizer, stop)
    text = "".join("".join(map(several.feed, step)) for step in steps) + several.close()
    assert text == emitted(one, token_ids)
    assert (several.finish, several.tokens_seen, several.tokens_kept) == (one.finish, one.tokens_seen, one.tokens_kept)


# Named cases: the tokens, the stops, the text, and how many tokens were seen and kept

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
    scanner = agree(tokenizer, token_ids, stop)
    again = TokenScanner(tokenizer, stop)
    assert emitted(again, token_ids) == text
    assert (scanner.tokens_seen, scanner.tokens_kept) == (seen, kept)


def test_nothing_is_withheld_without_need() -> None:
    tokenizer, token_ids = staged("This", " is", " E", "X", " E", "N", "D")
    scanner = TokenScanner(tokenizer, ["END"])
    assert run(scanner, token_ids) == ["This", " is", " ", "EX", " ", "", ""]


def test_include_stop_keeps_its_tokens() -> None:
    tokenizer, token_ids = staged("a ", "E", "NDx", "y")
    scanner = agree(tokenizer, token_ids, ["END"], include_stop=True)
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


# What ends a stream, beside strings

ENDS = {
    "stop token": ({"stop_token_ids": ["b"]}, "a", ended(1), 2, 1),
    "eos": ({"eos_token_ids": ["b"]}, "a", Finish("eos"), 2, 1),
    "both": ({"eos_token_ids": ["b"], "stop_token_ids": ["b"]}, "a", ended(1), 2, 1),
    "the first of several": ({"stop_token_ids": ["EN", "b"], "eos_token_ids": ["D"]}, "a", ended(1), 2, 1),
    "a stop token that completes a stop": ({"stop_token_ids": ["D"]}, "ab", stopped(2), 4, 2),
    "an EOS that completes a stop": ({"eos_token_ids": ["D"]}, "ab", stopped(2), 4, 2),
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
                                               "a\ufffd", Finish("eos"), 4, 3),
    "a stop on the last token": ({"max_tokens": 4}, "ab", stopped(2), 4, 2),
    "a stop token as the last": ({"max_tokens": 2, "stop_token_ids": ["b"]}, "a", ended(1), 2, 1),
    "an EOS before min_tokens": ({"min_tokens": 2, "eos_token_ids": ["b"]}, "ab", stopped(2), 4, 2),
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
    agree(tokenizer, token_ids, ["END"], **options)
    scanner = TokenScanner(tokenizer, ["END"], **options)
    assert emitted(scanner, token_ids) == text
    assert scanner.finish == finish
    assert (scanner.tokens_seen, scanner.tokens_kept) == (seen, kept)


def test_a_special_token_that_ends_the_stream_is_not_text() -> None:
    tokenizer, token_ids = staged("a", "EN", "</s>", special=["</s>"])
    for skip in (True, False):
        scanner = TokenScanner(tokenizer, ["END"], eos_token_ids=token_ids[2:], skip_special_tokens=skip)
        assert run(scanner, token_ids) == ["a", "", "EN"]
        assert scanner.finish == Finish("eos")
        assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 2)


def test_an_end_that_the_tokenizer_does_not_know() -> None:
    tokenizer, token_ids = staged("a", b"\xc3")
    scanner = TokenScanner(tokenizer, eos_token_ids=[99, 2**32 - 1])
    assert run(scanner, [*token_ids, 2**32 - 1]) == ["a", "", "\ufffd"]
    assert scanner.finish == Finish("eos")
    assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 2)


@pytest.mark.parametrize("reason", REASONS)
def test_close_brings_out_what_is_held_and_half_a_character(reason: Any) -> None:
    tokenizer, token_ids = staged("a", "EN", b"\xc3")
    scanner = TokenScanner(tokenizer, ["END"])
    assert [scanner.feed(token_id) for token_id in token_ids] == ["a", "", ""]
    assert scanner.close(reason) == "EN\ufffd"
    assert scanner.finish == Finish(reason)
    assert (scanner.tokens_seen, scanner.tokens_kept) == (3, 3)


def test_close_finds_a_stop_that_half_a_character_completes() -> None:
    tokenizer, token_ids = staged("a", b"\xc3")
    scanner = TokenScanner(tokenizer, ["a\ufffd"])
    assert emitted(scanner, token_ids, "abort") == ""
    assert scanner.finish == stopped(0, "a\ufffd")


@pytest.mark.parametrize("reason", ["stop_sequence", "stop_token", "end_turn", ""])
def test_close_refuses_what_it_cannot_know(reason: Any) -> None:
    tokenizer, token_ids = staged("a", "EN", "D")
    scanner = TokenScanner(tokenizer, ["END"])
    scanner.feed(token_ids[0])
    scanner.feed(token_ids[1])
    with pytest.raises(ValueError, match=repr(reason)):
        scanner.close(reason)
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
    assert scanner.close("abort") == ""
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
    assert scanner.close("abort") == ""
    assert (scanner.finish, scanner.tokens_seen, scanner.tokens_kept) == state


# Prompts


def test_a_prompt_keeps_the_leading_space() -> None:
    vocabulary = load(mistral)
    prompt, token_ids = vocabulary.encode("The capital of France is"), vocabulary.encode("Paris. END")
    assert emitted(TokenScanner(vocabulary.tokenizer, " END"), token_ids) == "Paris."
    assert emitted(TokenScanner(vocabulary.tokenizer, " END", prompt_token_ids=prompt), token_ids) == " Paris."


def test_a_prompt_of_special_tokens_has_no_text_before() -> None:
    vocabulary = load(small_fallback)
    token_ids = vocabulary.spell(" the END", [4])
    prompt = [vocabulary.special] * 40
    scanner = TokenScanner(vocabulary.tokenizer, "END", prompt_token_ids=prompt)
    assert emitted(scanner, token_ids) == "the "


def test_many_special_tokens_after_the_text_of_the_prompt() -> None:
    vocabulary = load(small_fallback)
    token_ids = vocabulary.spell(" the END", [4])
    prompt = [*vocabulary.spell("no", [2]), *[vocabulary.special] * 40]
    scanner = TokenScanner(vocabulary.tokenizer, "END", prompt_token_ids=prompt)
    assert emitted(scanner, token_ids) == " the "


def test_a_prompt_in_a_script_that_is_spelled_in_bytes() -> None:
    # The last 16 tokens begin within a character, and a byte-fallback run is valid as a whole or not at all.
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
    scanner = agree(tokenizer, token_ids[cut:], ["X"], prompt_token_ids=token_ids[:cut])
    assert scanner.finish == Finish("eos")
    scanner = TokenScanner(tokenizer, ["X"], prompt_token_ids=token_ids[:cut])
    assert run(scanner, token_ids[cut:]) == outputs


def test_stops_do_not_reach_into_the_prompt() -> None:
    tokenizer, token_ids = staged("E", "ND", "END")
    scanner = TokenScanner(tokenizer, "END", prompt_token_ids=token_ids[:1])
    assert run(scanner, token_ids[1:]) == ["ND", ""]


# Faults of the decoder and of callers


def test_stray_bytes_after_a_character_in_bytes() -> None:
    # DecodeStream raises "Invalid prefix" here, and from then on for every token.
    vocabulary = load(small_fallback)
    token_ids = vocabulary.spell("你") + vocabulary.spell(b"\x80\x80") + vocabulary.spell("the 你 END", [3, 0])
    scanner = TokenScanner(vocabulary.tokenizer, "END")
    assert emitted(scanner, token_ids) == "你\ufffd\ufffdthe 你 "
    assert scanner.finish == stopped(9)


def test_decode_takes_back_a_character_before_stray_bytes_and_a_stream_cannot() -> None:
    # The one difference from decoding the whole: a run of byte tokens that is not UTF-8 has no character at all there.
    vocabulary = load(small_fallback)
    for end, tail in (("", ["\ufffd"]), (" the", ["\ufffd the", ""])):
        token_ids = vocabulary.spell("a你", [1, 0]) + vocabulary.spell(b"\x80") + vocabulary.spell(end, [4])
        assert vocabulary.tokenizer.decode(token_ids) == "a" + 4 * "\ufffd" + end
        assert run(TokenScanner(vocabulary.tokenizer), token_ids) == ["a", "", "", "你", "", *tail]


def test_a_space_as_a_byte_comes_again_before_stray_bytes() -> None:
    # DecodeStream decodes its window by itself, where a leading space is stripped, and so does not see it taken back.
    vocabulary = load(small_fallback)
    spaced = [*vocabulary.spell("the", [3]), *vocabulary.spell(b" ")]
    assert run(TokenScanner(vocabulary.tokenizer), spaced + vocabulary.spell("é")) == ["the", " ", "", "é", ""]
    assert run(TokenScanner(vocabulary.tokenizer), spaced + vocabulary.spell(b"\xc3")) == ["the", " ", "", 2 * "\ufffd"]


@given(st.data())
def test_runs_of_byte_tokens(data: st.DataObject) -> None:
    """A run's characters come out while it is UTF-8; from the first stray byte on, each byte is U+FFFD."""
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


BAD_IDS = [(-1, ValueError), (5, ValueError), (99, ValueError), (2**32, ValueError), (2**40, ValueError)]
BAD_IDS += [
    (1.0, TypeError),
    ("1", TypeError),
    (None, TypeError),
    ([1], TypeError),
    ((1,), TypeError),
    (b"1", TypeError),
]


@pytest.mark.parametrize(("bad", "error"), BAD_IDS, ids=repr)
def test_a_bad_id_is_refused_and_the_stream_goes_on(bad: Any, error: type[Exception]) -> None:
    tokenizer, token_ids = staged("a", b"\xc3", b"\xa9", "EN", "D")
    scanner = TokenScanner(tokenizer, ["END"], max_tokens=5, stop_token_ids=[99_999])
    outputs = []
    for token_id in token_ids:
        with pytest.raises(error, match=str(bad) if error is ValueError else type(bad).__name__):
            scanner.feed(bad)
        outputs.append(scanner.feed(token_id))
    assert outputs == ["a", "", "é", "", ""]
    assert scanner.finish == stopped(2)
    assert (scanner.tokens_seen, scanner.tokens_kept) == (5, 3)


def test_an_id_in_a_gap_of_the_vocabulary_is_refused() -> None:
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 7}, []))
    tokenizer.decoder = decoders.Fuse()
    scanner = TokenScanner(tokenizer)
    assert scanner.feed(0) == "a"
    for gap in (1, 6, 8):
        with pytest.raises(ValueError, match=f"token id {gap} "):
            scanner.feed(gap)
    assert scanner.feed(7) == "b"
    assert (scanner.tokens_seen, scanner.tokens_kept) == (2, 2)


def test_integers_of_other_types() -> None:
    tokenizer, token_ids = staged("a", "b", "c")
    scanner = TokenScanner(tokenizer, stop_token_ids=np.array(token_ids[2:]), prompt_token_ids=np.array(token_ids[:1]))
    assert [scanner.feed(token_id) for token_id in np.array(token_ids, dtype=np.int32)] == ["a", "b", ""]
    assert scanner.finish == ended(2)
    assert scanner.finish is not None
    assert type(scanner.finish.matched_stop) is int
    assert TokenScanner(tokenizer).feed(True) == "b"


BAD_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"min_tokens": -1}, ValueError, "min_tokens -1"),
    ({"max_tokens": -1}, ValueError, "max_tokens -1"),
    ({"min_tokens": 3, "max_tokens": 2}, ValueError, "min_tokens 3 .* max_tokens 2"),
    ({"stop_token_ids": [-1]}, ValueError, "stop_token_ids: -1"),
    ({"eos_token_ids": [2**40]}, ValueError, f"eos_token_ids: {2**40}"),
    ({"stop_token_ids": ["a"]}, TypeError, "str"),
    ({"stop_token_ids": [1.5]}, TypeError, "float"),
    ({"prompt_token_ids": [0, 99]}, ValueError, "token id 99"),
    ({"prompt_token_ids": [-1, 0]}, ValueError, "token id -1"),
    ({"prompt_token_ids": "a"}, TypeError, "str"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_OPTIONS, ids=lambda value: str(value))
def test_bad_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    tokenizer, _ = staged("a", "b")
    with pytest.raises(error, match=message):
        TokenScanner(tokenizer, **options)


def test_stops_are_those_of_the_scanner() -> None:
    tokenizer, token_ids = staged("a", "b")
    with pytest.raises(ValueError, match="0"):
        TokenScanner(tokenizer, [""])
    with pytest.raises(TypeError):
        TokenScanner(tokenizer, [b"a"])  # type: ignore[list-item]
    for stop in ("b", ["b"], StopSet("b")):
        assert emitted(TokenScanner(tokenizer, stop), token_ids) == "a"
    for nothing in (None, (), []):
        assert emitted(TokenScanner(tokenizer, nothing), token_ids) == "ab"


@pytest.mark.parametrize("tokenizer", [None, "gpt2", {}, object()])
def test_what_carries_no_tokenizer_is_named(tokenizer: Any) -> None:
    with pytest.raises(TypeError, match=f"tokenizer: .* {type(tokenizer).__name__}"):
        TokenScanner(tokenizer, "END")


def test_a_transformers_fast_tokenizer() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    reciter = Reciter({"split": SCRIPTS["split"]})
    with TemporaryDirectory() as directory:
        tokenizer = transformers.AutoTokenizer.from_pretrained(reciter.write(directory))
    scanner = TokenScanner(tokenizer, "END", eos_token_ids=[tokenizer.eos_token_id])
    assert emitted(scanner, [*reciter.token_ids("split"), reciter.eos_token_id]) == "This is the "
    assert scanner.finish == stopped(12)


# Regressions, named after the reports of other projects


def test_exo_leaked_the_first_tokens_of_a_stop_of_several() -> None:
    tokenizer, token_ids = staged("Hi", "<|", "im", "_end", "|>")
    assert run(TokenScanner(tokenizer, "<|im_end|>"), token_ids) == ["Hi", "", "", "", ""]


@pytest.mark.parametrize("stop", ["END", "→", "a→"])
def test_smg_1447_1524_a_stop_that_the_tokenizer_cannot_encode_is_not_dropped(stop: str) -> None:
    tokenizer, token_ids = staged("a", b"\xe2\x86", b"\x92", "EN", "D")
    assert tokenizer.decode(tokenizer.encode(stop).ids) != stop
    scanner = TokenScanner(tokenizer, [stop])
    assert emitted(scanner, token_ids) == "a→END"[: "a→END".index(stop)]
    assert scanner.finish is not None
    assert scanner.finish.matched_stop == stop


def test_smg_1447_1524_the_users_string_is_reported_and_no_id() -> None:
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


def test_sglang_missed_a_stop_spelled_in_more_tokens_than_encode_gives() -> None:
    vocabulary = load(small_bytes)
    assert len(vocabulary.encode("END")) < len("END")
    scanner = TokenScanner(vocabulary.tokenizer, "END")
    assert emitted(scanner, vocabulary.spell("the END", [1])) == "the "


def test_tgi_missed_a_stop_followed_by_anything_in_its_token() -> None:
    tokenizer, token_ids = staged("a", " END.\n")
    assert emitted(TokenScanner(tokenizer, "END"), token_ids) == "a "
