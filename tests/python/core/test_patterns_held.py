"""Patterns with `max_held`: only text that can still become a match within the limit is held."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from setups import cut

from stopscan import StopScanner, StopSet

# Each pattern, and whether the character after a match must confirm the match, as `\b` requires.
PATTERNS = {
    "a[ab]{2}b": False,
    "ab+a": False,
    "(?:a|bb)ab": False,
    "aab|ba": False,
    r"a{2,4}\b": True,
    "aaaa": False,
}


@cache
def matches(pattern: str, length: int) -> list[str]:
    """The matches that have `length` characters."""
    words = ("".join(word) for word in product("ab ", repeat=length))
    bare = pattern.removesuffix(r"\b")
    return [word for word in words if re.fullmatch(bare, word)]


def can_match(pattern: str, begun: str, max_held: int) -> bool:
    """Whether `begun` can become a match of `pattern` within `max_held` if more text follows.

    Most patterns fire as soon as `begun` is a match. So if they have not fired, a match needs at least one more
    character. A pattern with `\\b` at its end waits for the character after the match, so `begun` may already be the
    match.
    """
    longest = max_held + (not PATTERNS[pattern])
    least = len(begun) + (not PATTERNS[pattern])
    found = (word for length in range(least, longest + 1) for word in matches(pattern, length))
    return any(word.startswith(begun) for word in found)


@settings(max_examples=400)
@given(
    pattern=st.sampled_from([*PATTERNS]), text=st.text("ab ", max_size=14), max_held=st.integers(0, 7), data=st.data()
)
def test_text_beyond_the_limit_is_not_held(pattern: str, text: str, max_held: int, data: st.DataObject) -> None:
    scanner = StopScanner(StopSet(patterns=[pattern], max_held=max_held))
    fed = ""
    for delta in data.draw(cut(text)):
        scanner.feed(delta)
        fed += delta
        if scanner.match is not None:
            return
        begun = [fed[place:] for place in range(len(fed))]
        expected = next((rest for rest in begun if can_match(pattern, rest, max_held)), "")
        assert scanner.held == expected


@pytest.mark.parametrize(
    ("pattern", "max_held", "text", "held"),
    [
        ("Question: [0-9]{5}", 5, "Quest", ""),
        ("<tool>.*</tool>", 20, "<tool>0123456789", ""),
        ("<tool>.*</tool>", 20, "<tool>01234567", "<tool>01234567"),
        ("ENDOF", 2, "EN", ""),
    ],
)
def test_a_pattern_held_what_is_too_long_for_it(pattern: str, max_held: int, text: str, held: str) -> None:
    scanner = StopScanner(StopSet(patterns=[pattern], max_held=max_held))
    scanner.feed(text)
    assert scanner.held == held
