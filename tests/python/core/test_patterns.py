"""Patterns from Python: against `re`, which is asked for every beginning and every end, and against themselves."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings
from test_properties import cut

from stopscan import StopMatch, StopScanner, StopSet, ascan, scan, truncate
from stopscan.segments import SegmentSet, split

WORD = re.compile(r"[0-9A-Za-z_]")


class Pattern(NamedTuple):
    lead: str
    body: str
    trail: bool

    def __str__(self) -> str:
        return f"{self.lead}(?:{self.body}){chr(92) + 'b' if self.trail else ''}"


class Setup(NamedTuple):
    stop: tuple[str, ...]
    patterns: tuple[Pattern, ...]

    def stop_set(self) -> StopSet:
        return StopSet(self.stop, patterns=map(str, self.patterns))


letters = st.sampled_from("abé \n.")


def bodies() -> st.SearchStrategy[str]:
    letter = letters.map(re.escape)
    pairs = st.tuples
    return st.recursive(
        st.one_of(letter, letter.map("[^{}]".format), letter.map("{}+".format)),
        lambda inner: st.one_of(
            pairs(inner, inner).map("".join),
            pairs(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]})"),
            inner.map("(?:{})?".format),
            inner.map("(?:{}){{2}}".format),
        ),
        max_leaves=5,
    )


patterns = st.builds(
    Pattern, st.sampled_from(["", "", r"\b", "(?m)^"]), bodies(), st.sampled_from([False, False, True])
)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    stop = draw(st.lists(st.text("abé .", min_size=1, max_size=3), max_size=2, unique=True))
    setup = Setup(tuple(stop), tuple(draw(st.lists(patterns, min_size=1, max_size=2, unique_by=str))))
    try:
        setup.stop_set()
    except ValueError as error:
        assume(any(problem in str(error) for problem in ("empty string", "for ever")))
        assume(False)
    return setup


def expected(setup: Setup, text: str) -> StopMatch | None:
    """What completes first; with one character what began first, then the longer one, then a string."""
    bodies = [re.compile(pattern.body) for pattern in setup.patterns]
    for length in range(1, len(text) + 2):
        found: list[tuple[int, int, int, StopMatch]] = []
        for stop in setup.stop:
            if length <= len(text) and text[:length].endswith(stop):
                found.append((length - len(stop), -length, -1, StopMatch(stop, length - len(stop))))
        for index, (pattern, body) in enumerate(zip(setup.patterns, bodies, strict=True)):
            # With `\b` at its end a pattern completes one character later, or at the end of the text.
            end = length - 1 if pattern.trail else length
            if end > len(text) or (pattern.trail and word(text, end - 1) == word(text, end)):
                continue
            for start in range(end):
                if leads(pattern, text, start) and body.fullmatch(text, start, end):
                    found.append((start, -end, index, StopMatch(text[start:end], start, str(pattern))))
        if found:
            return min(found)[-1]
    return None


def word(text: str, index: int) -> bool:
    return 0 <= index < len(text) and WORD.match(text[index]) is not None


def leads(pattern: Pattern, text: str, start: int) -> bool:
    if pattern.lead == "(?m)^":
        return start == 0 or text[start - 1] == "\n"
    return not pattern.lead or word(text, start - 1) != word(text, start)


@settings(max_examples=400)
@given(data=st.data())
def test_agrees_with_re(data: st.DataObject) -> None:
    setup = data.draw(setups())
    text = data.draw(st.text("abé \n.", max_size=12))
    stops, match = setup.stop_set(), expected(setup, text)
    kept = text if match is None else text[: match.offset]
    assert stops.find(text) == match
    assert truncate(text, stops) == (kept, match)
    deltas = data.draw(cut(text))
    scanner = StopScanner(stops)
    out = ""
    for delta in deltas:
        out += scanner.feed(delta)
        scanner = data.draw(st.sampled_from(COPIES))(scanner)
    assert out + scanner.flush() == kept
    assert scanner.match == match
    stream = scan(deltas, stops)
    assert "".join(stream) == kept
    assert (stream.match, stream.held) == (match, "")


COPIES: list[Callable[[StopScanner], StopScanner]] = [
    lambda scanner: scanner,
    copy.copy,
    lambda scanner: pickle.loads(pickle.dumps(scanner)),
]


@settings(max_examples=200)
@given(data=st.data())
def test_every_way_to_include_the_stop(data: st.DataObject) -> None:
    setup = data.draw(setups())
    text = data.draw(st.text("abé \n.", max_size=12))
    stops, match = setup.stop_set(), expected(setup, text)
    scanner = StopScanner(stops, include_stop=True)
    out = ""
    for character in text:
        out += scanner.feed(character)
        scanner = data.draw(st.sampled_from(COPIES))(scanner)
    assert out + scanner.flush() == (text if match is None else text[: match.end])
    assert scanner.match == match
    assert stops.truncate(text, include_stop=True) == (out, match)


def test_a_match_says_its_pattern() -> None:
    match = StopSet(patterns=[r"\n(User|Human) ?\d*:"]).find("Hi\nUser 12: x")
    assert match == StopMatch("\nUser 12:", 2, r"\n(User|Human) ?\d*:")
    assert match is not None
    assert match.pattern == r"\n(User|Human) ?\d*:"
    assert match != StopMatch("\nUser 12:", 2)
    assert eval(repr(match)) == match
    assert pickle.loads(pickle.dumps(match)) == match
    assert hash(match) == hash(copy.copy(match))
    assert StopMatch("END", 2).pattern is None


def test_a_set_says_its_patterns() -> None:
    stops = StopSet("END", patterns=["a+", "b", "a+"], visible=".", max_held=7)
    assert (stops.patterns, stops.max_held, len(stops)) == (("a+", "b"), 7, 4)
    assert repr(stops) == "StopSet(('END',), patterns=('a+', 'b'), visible=('.',), max_held=7)"
    assert eval(repr(stops)) == stops
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(stops, protocol)) == stops
    assert stops != StopSet("END", patterns=["a+", "b"], visible=".")
    assert StopSet(patterns="a b").patterns == ("a b",)  # a bare string


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "unclosed group"),
        ("a*", "it can match the empty string"),
        ("END$", r"\$ and \\z need the end"),
        ("^END", r"\^ and \\A are not taken"),
        (r"a\bb", r"\\b is taken at the beginning and at the end only"),
        ("a.*b", "it can hold text for ever; max_held"),
        ("(a{1000}){1000}", "its automaton is too large"),
    ],
)
def test_a_pattern_that_cannot_be_scanned_for_is_named(pattern: str, problem: str) -> None:
    for make in (StopSet, lambda **options: SegmentSet({"a": {}}, **options)):
        with pytest.raises(ValueError, match=problem) as error:
            make(patterns=["ok", pattern])
        assert str(error.value).startswith("pattern 1, ")


def test_patterns_of_another_type() -> None:
    with pytest.raises(TypeError, match=r"pattern 1: expected str, got bytes; decode it first"):
        StopSet(patterns=["ok", b"x"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"pattern 0: expected str, got re\.Pattern|got Pattern"):
        StopSet(patterns=[re.compile("x")])  # type: ignore[list-item]
    with pytest.raises(UnicodeEncodeError, match="pattern 0: surrogates"):
        StopSet(patterns="\ud800")


def test_a_pattern_that_the_end_confirms() -> None:
    stops = StopSet(patterns=[r"(?i)\bend\b"])
    scanner = StopScanner(stops)
    assert scanner.feed("the END") == "the "
    assert (scanner.flush(), scanner.match) == ("", StopMatch("END", 4, r"(?i)\bend\b"))
    stream = scan(["the END"], stops)
    assert list(stream) == ["the "]
    assert stream.match == scanner.match

    async def deltas() -> AsyncIterator[str]:
        yield "the END"

    async def run() -> tuple[list[str], Any]:
        stream = ascan(deltas(), stops)
        return [text async for text in stream], stream.match

    assert asyncio.run(run()) == (["the "], scanner.match)


def test_patterns_of_segments() -> None:
    markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
    segments = SegmentSet(markers, patterns=[r"END\d"], stop_in=["answer"])
    stream = split(["<think>END1", "</think>1 EN", "D", "2"], segments)
    assert list(stream) == [("reasoning", "END1"), ("answer", "1 ")]
    assert stream.match == StopMatch("END2", 21, r"END\d")
    assert pickle.loads(pickle.dumps(segments)) == segments
    assert segments.patterns == (r"END\d",)


def test_restored_state_is_checked() -> None:
    scanner = StopScanner(StopSet(patterns=["ab+c"]))
    scanner.feed("xab")
    state = scanner.__reduce__()[2]
    with pytest.raises(ValueError, match="not the state of a scanner with these stops"):
        StopScanner(StopSet(patterns=["xy"])).__setstate__(state)
    with pytest.raises(ValueError, match="not the state of a scanner with these stops"):
        StopScanner("ab").__setstate__(state)
