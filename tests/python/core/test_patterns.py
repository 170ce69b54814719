"""Compares patterns with a reference that tries `re` on every part of the text. The tests cut the text at random
places, and copy scanners at random times."""

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
from setups import cut

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
    """The stop that completes first. Ties go to the stop that begins first, then to the one that ends first, then to a
    string before a pattern."""
    bodies = [re.compile(pattern.body) for pattern in setup.patterns]
    for length in range(1, len(text) + 2):
        found: list[tuple[int, int, int, StopMatch]] = []
        for stop in setup.stop:
            if length <= len(text) and text[:length].endswith(stop):
                found.append((length - len(stop), length, -1, StopMatch(stop, length - len(stop))))
        for index, (pattern, body) in enumerate(zip(setup.patterns, bodies, strict=True)):
            # A pattern with `\b` at its end completes with the character after its match, or at the end of the text.
            end = length - 1 if pattern.trail else length
            if end > len(text) or (pattern.trail and word(text, end - 1) == word(text, end)):
                continue
            for start in range(end):
                if leads(pattern, text, start) and body.fullmatch(text, start, end):
                    found.append((start, end, index, StopMatch(text[start:end], start, str(pattern))))
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
    assert StopSet(patterns="a b").patterns == ("a b",)  # a bare string is one pattern


def test_words_are_read_like_strings() -> None:
    words = [f"word {number}" for number in range(5_000)]
    stops = StopSet("word 17!", patterns=[*words, r"\d+:", "cd"], visible="abc")
    assert stops.patterns == (*words, r"\d+:", "cd")
    assert (len(stops), stops.stop, stops.visible) == (5_004, ("word 17!",), ("abc",))
    assert stops.find("a word 42") == StopMatch("word 4", 2, "word 4")
    assert stops.find("abcd") == StopMatch("abc", 0)
    for include_stop, kept in [(False, "a w"), (True, "a wword 3")]:
        scanner = StopScanner(stops, include_stop=include_stop)
        out = ""
        for character in "a wword 33":
            out += scanner.feed(character)
            scanner = pickle.loads(pickle.dumps(scanner))
        assert (out, scanner.match, scanner.unused) == (kept, StopMatch("word 3", 3, "word 3"), "")


def test_the_first_of_equal_patterns_is_named() -> None:
    assert StopSet(patterns=["ab", "[a]b"]).find("ab") == StopMatch("ab", 0, "ab")
    assert StopSet(patterns=["[a]b", "ab"]).find("ab") == StopMatch("ab", 0, "[a]b")
    assert StopSet("ab", patterns=["[a]b", "ab"]).find("ab") == StopMatch("ab", 0)


def test_max_held_counts_for_words_too() -> None:
    assert StopSet(patterns=["abc"], max_held=2).find("xabc") == StopMatch("abc", 1, "abc")
    assert StopSet("abc", patterns=["abcd"], max_held=1).find("xabcd") == StopMatch("abc", 1)
    assert StopSet(patterns=["abcd"], max_held=2).find("xabcd") is None


def shortest_expected(text: str, max_held: int) -> StopMatch | None:
    """The match of `<[^>]+>` that completes first, among matches within `max_held`. If several complete at the same
    place, returns the one that begins first."""
    for end in range(1, len(text) + 1):
        for start in range(max(0, end - max_held - 1), end):
            if re.fullmatch("<[^>]+>", text[start:end]):
                return StopMatch(text[start:end], start, "<[^>]+>")
    return None


@settings(max_examples=300)
@given(text=st.text("<>a ", max_size=30), max_held=st.integers(0, 8), data=st.data())
def test_max_held_loses_no_match_that_it_allows(text: str, max_held: int, data: st.DataObject) -> None:
    stops = StopSet(patterns=["<[^>]+>"], max_held=max_held)
    match = shortest_expected(text, max_held)
    assert stops.find(text) == match
    scanner = StopScanner(stops)
    for delta in data.draw(cut(text)):
        scanner.feed(delta)
        scanner = data.draw(st.sampled_from(COPIES))(scanner)
        assert len(scanner.held) <= max_held
    assert scanner.match == match


@pytest.mark.parametrize(
    ("pattern", "max_held", "text", "match"),
    [
        (r"<[^>]+>", 10, "a < b or <tool> c", StopMatch("<tool>", 9, r"<[^>]+>")),
        (r"<tool:.+>", 40, "<tool:" + "a" * 35 + " <tool:b>", StopMatch("<tool:b>", 42, r"<tool:.+>")),
    ],
)
def test_max_held_lost_the_only_match_that_fits(pattern: str, max_held: int, text: str, match: StopMatch) -> None:
    """If a match becomes too long, only that match is dropped. Before a fix, a match that had begun later was dropped
    as well, because both were in the same state of the automaton."""
    stops = StopSet(patterns=[pattern], max_held=max_held)
    scanner = StopScanner(stops)
    out = "".join(map(scanner.feed, text)) + scanner.flush()
    assert (stops.find(text), scanner.match, out) == (match, match, text[: match.offset])


def test_unarmed_text_and_patterns_reported_what_no_rule_gives() -> None:
    """The stops are the string `a`, and a pattern for `aa`, `caa` and `ccaa`. First `ca` is fed with `armed=False`, so
    its `a` does not fire. Then another `a` is fed. It fires as the string. The pattern does not fire, because its
    matches contain the first `a`, a stop that completed in unarmed text."""
    scanner = StopScanner(StopSet(["a"], patterns=["(?:c){0,2}aa"]))
    assert scanner.feed("ca", armed=False) + scanner.feed("a") == "ca"
    assert scanner.match == StopMatch("a", 2)


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
    assert list(stream) == [("reasoning", "END1", 1), ("answer", "1 ", 2)]
    assert stream.match == StopMatch("END2", 21, r"END\d")
    assert pickle.loads(pickle.dumps(segments)) == segments
    assert segments.patterns == (r"END\d",)


def test_restored_state_is_checked() -> None:
    scanner = StopScanner(StopSet(patterns=["ab+c"]))
    scanner.feed("xab")
    state = scanner.__reduce__()[2]
    with pytest.raises(ValueError, match="made with another set or other options"):
        StopScanner(StopSet(patterns=["xy"])).__setstate__(state)
    with pytest.raises(ValueError, match="made with another set or other options"):
        StopScanner("ab").__setstate__(state)
