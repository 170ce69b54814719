"""If no stop can begin in a text, a scanner keeps the text unread until a later call needs it. The results must be the
same as without this delay."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stopscan import Repeat, StopMatch, StopScanner, StopSet
from stopscan.segments import Segmenter, SegmentSet

PIECES = [
    "a",
    "ab ",
    "é",
    "你好",
    "\n",
    " ",
    "E",
    "END",
    "Q:",
    "<",
    "<t>",
    "-",
    "plain words, of more than a word. ",
    "x" * 31,
]
SETS = {
    "strings": StopSet(["END.", "<t>!"]),
    "patterns": StopSet(["</s>"], patterns=[r"\bEND\b", r"(?m)^Q:", r"é{2}a"]),
    "loops": StopSet(repeat=Repeat(3, max_period=40, min_length=32)),
    "all": StopSet(["END."], patterns=[r"(?m)^Q:"], protect=[("<t>", "你")], repeat=Repeat(min_length=64)),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("include_stop", [False, True])
@settings(max_examples=100)
@given(deltas=st.lists(st.sampled_from(PIECES), max_size=60), armed=st.booleans())
def test_reading_state_does_not_change_a_scanner(name: str, include_stop: bool, deltas: list[str], armed: bool) -> None:
    scanner, looked_at = (StopScanner(SETS[name], include_stop=include_stop) for _ in range(2))
    for index, delta in enumerate(deltas):
        counts = armed or index % 7 > 2
        out = looked_at.feed(delta, armed=counts)
        assert scanner.feed(delta, armed=counts) == out
        looked_at = looked_at.copy()
    assert scanner.snapshot() == looked_at.snapshot()
    assert (scanner.match, scanner.held) == (looked_at.match, looked_at.held)


@settings(max_examples=100)
@given(deltas=st.lists(st.sampled_from(PIECES), max_size=60))
def test_reading_state_does_not_change_a_segmenter(deltas: list[str]) -> None:
    graph = {"answer": {"<t>": "reasoning"}, "reasoning": {"你": "answer"}}
    segments = SegmentSet(graph, patterns=[r"\bEND\b"], stop_in=["answer"], repeat=Repeat(min_length=64))
    segmenter, looked_at = Segmenter(segments), Segmenter(segments)
    for delta in deltas:
        assert segmenter.feed(delta) == looked_at.feed(delta)
        looked_at = looked_at.copy()
    assert segmenter.snapshot() == looked_at.snapshot()


@pytest.mark.parametrize("before", ["", "a", " ", "\n", "é", "plain words " * 20])
def test_what_stands_before_a_pattern_passed_unread(before: str) -> None:
    for pattern, found in [(r"\bEND", before[-1:] != "a"), (r"(?m)^END", before[-1:] in ("", "\n"))]:
        scanner = StopScanner(StopSet(patterns=[pattern]))
        for character in before:
            scanner.feed(character)
        scanner.feed("END")
        match = StopMatch("END", len(before), pattern=pattern)
        assert scanner.match == (match if found else None)


def test_a_loop_of_what_passed_unread() -> None:
    scanner = StopScanner(StopSet(repeat=Repeat()))
    line = ["I ", "will ", "now ", "fix ", "the ", "bug", ".\n"]
    count = 0
    while scanner.match is None:
        scanner.feed(line[count % len(line)])
        count += 1
    assert (scanner.match.offset, scanner.match.end, scanner.match.period) == (0, 256, 24)
