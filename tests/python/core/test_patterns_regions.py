"""Patterns and loops in sets with regions. A single delta may leave a region and return to it."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from setups import cut, setups, texts

from stopscan import Repeat, StopMatch, StopScanner, StopSet, scan

THINK = [("<think>", "</think>")]


@pytest.mark.parametrize(
    ("pattern", "text", "match"),
    [
        ("END", "hm</think>Yes END of it", StopMatch("END", 14, pattern="END")),
        (r"\n\d+\.", "hm</think>Yes\n1. no <think>more", StopMatch("\n1.", 13, pattern=r"\n\d+\.")),
    ],
)
def test_patterns_fire_behind_a_marker_in_one_delta(pattern: str, text: str, match: StopMatch) -> None:
    """A match that follows a marker in the same delta must be found. Before a fix, such a match was missed, and `feed`
    panicked if the pattern was plain text."""
    stops = StopSet(patterns=[pattern], protect=THINK)
    for deltas in ([text], list(text)):
        scanner = StopScanner(stops, start_protected=True)
        assert "".join(map(scanner.feed, deltas)) == text[: match.offset]
        assert scanner.match == match
    stream = scan(["<think>", text], stops)
    assert "".join(stream) == f"<think>{text[: match.offset]}"


def test_loop_does_not_span_a_left_region() -> None:
    stops = StopSet(protect=[("<t>", "</t>")], repeat=Repeat(3, max_period=40, min_length=32))
    text = "<t>x</t>ab" * 4
    for size in (10, 1, 7):
        scanner = StopScanner(stops)
        assert "".join(scanner.feed(text[at : at + size]) for at in range(0, len(text), size)) == text
        assert scanner.match is None
    assert stops.find(text) is None


@settings(max_examples=400)
@given(data=st.data())
def test_deltas_do_not_matter_to_patterns_beside_regions(data: st.DataObject) -> None:
    """The same stop must fire in the whole text, in single characters, in random deltas, and in `find`, which runs in
    Rust alone."""
    setup = data.draw(setups())
    text = data.draw(texts(setup))
    words = [*setup.stop]
    patterns = [*words[1:], *(f"{one}[{two[0]}x]" for one, two in pairwise(words) if two[0] not in "<>")]
    stops = StopSet(words[:1], patterns=patterns, **setup.arguments)
    answers = []
    for deltas in ([text], list(text), data.draw(cut(text))):
        scanner = StopScanner(stops, **setup.options)
        out = "".join(map(scanner.feed, deltas))
        held, region, match = scanner.held, scanner.region, scanner.match
        answers.append((out, held, region, match, out + scanner.flush(), scanner.match))
    assert answers[0] == answers[1] == answers[2]
    if not setup.include_stop:
        found = stops.find(text, start_protected=setup.start_protected, region=setup.region)
        assert answers[0][-1] == found
