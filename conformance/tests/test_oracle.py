"""The kit's own brute force, against the library, whose rules are the same."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopscan import StopScanner, StopSet
from stopscan_conformance._recital import Recital, recite
from stopscan_conformance._scenarios import Scenario, scenarios
from stopscan_conformance.scripts import THINKING

PIECES = st.lists(st.sampled_from(["a", "b", "ab", "abc", "c", "é", "<think>", "</think>", "k>"]), max_size=12)
STOPS = st.lists(st.text("abcék>", min_size=1, max_size=4), max_size=3, unique=True)


def scanned(scenario: Scenario) -> Recital:
    """What the library makes of it, token by token."""
    scanner = StopScanner(StopSet(scenario.stops, protect=[THINKING]))
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text, tokens, reason, fires = "", 0, "eos", None
    said: list[int] = []
    safe: list[int] = []
    for tokens, piece in enumerate([*scenario.pieces, None], 1):
        if piece is None:
            break
        before, state = scanner.copy(), decoder.getstate()
        decoded = decoder.decode(piece)
        said.append((said or [0])[-1] + len(decoded))
        out = scanner.feed(decoded)
        if scanner.match is None and tokens - 1 in scenario.stop_pieces:
            scanner, reason, fires = before, "stop_token", tokens - 1
            decoder.setstate(state)
            break
        text += out
        safe.append(len(text))
        if scanner.match is not None:
            reason, fires = "stop_sequence", scanner.match.sequence
            break
        if tokens == scenario.max_tokens:
            reason = "length"
            break
    if scanner.match is None:
        text += scanner.feed(decoder.decode(b"", final=True)) + scanner.flush()
    return Recital(text, tokens, reason, fires, tuple(said), (*safe, len(text)))


@pytest.mark.parametrize("scenario", scenarios(vectors=True), ids=lambda scenario: scenario.name)
def test_the_oracle_says_what_the_library_says(scenario: Scenario) -> None:
    assert recite(scenario) == scanned(scenario)


@given(PIECES, STOPS, st.lists(st.integers(0, 11), max_size=2), st.sampled_from([3, 5, 200]))
def test_the_oracle_says_what_the_library_says_of_any_text(
    pieces: list[str], stops: list[str], tokens: list[int], limit: int
) -> None:
    encoded = tuple(piece.encode() for piece in pieces)
    scenario = Scenario("", "", "", "", encoded, stops, tuple(tokens), limit)
    assert recite(scenario) == scanned(scenario)
