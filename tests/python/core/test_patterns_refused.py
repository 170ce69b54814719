"""Patterns that are refused: each error says which pattern is refused, why, and what to write instead."""

from __future__ import annotations

import re

import pytest

from stopscan import StopSet
from stopscan.segments import SegmentSet


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "unclosed group"),
        ("a*", "it can match the empty string"),
        ("END$x", r"\$ and \\z are supported only at the end of a pattern or branch"),
        ("(?R)(?m)^END", r"\(\?R\) is not supported"),
        (r"\p{L}", "write the ranges"),
        (r"\b{start}a", r"look-around is not supported, except \^, \$, \\A, \\z, \\b and \\B; use \\b for a word"),
        ("(?=a)b", "look-around, .* is not supported; use"),
        (r"(a)\1", "backreferences are not supported; write the alternatives out"),
        ("a.*b", "it can hold text for ever; set max_held to limit how much"),
        ("(a{1000}){1000}", "its automaton is too large"),
    ],
)
def test_a_pattern_that_cannot_be_scanned_for_is_named(pattern: str, problem: str) -> None:
    for make in (StopSet, lambda **options: SegmentSet({"a": {}}, **options)):
        with pytest.raises(ValueError, match=problem) as error:
            make(patterns=["ok", pattern])
        assert str(error.value).startswith("pattern 1, ")


@pytest.mark.parametrize(
    ("pattern", "part"),
    [("x(a{1000}){1000}", "(a{1000}){1000}"), ("Name: [a-z ]{5000}!", "[a-z ]{5000}"), ("[ab]*a[ab]{12}c", "[ab]{12}")],
)
def test_what_is_too_large_is_quoted(pattern: str, part: str) -> None:
    with pytest.raises(ValueError, match="its automaton is too large") as error:
        StopSet(patterns=["ok", pattern])
    assert str(error.value).startswith(f'pattern 1, "{pattern}": its automaton is too large: "{part}" alone is ')


def test_patterns_of_another_type() -> None:
    with pytest.raises(TypeError, match=r"pattern 1: expected str, got bytes; decode it first"):
        StopSet(patterns=["ok", b"x"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"pattern 0: expected str, got re\.Pattern|got Pattern"):
        StopSet(patterns=[re.compile("x")])  # type: ignore[list-item]
    with pytest.raises(UnicodeEncodeError, match="pattern 0: surrogates"):
        StopSet(patterns="\ud800")
