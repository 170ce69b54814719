"""Compares the oracle, which is the kit's own brute-force scanner, with stopscan. Both must give the same answers."""

from __future__ import annotations

import codecs
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopscan import StopScanner, StopSet
from stopscan_conformance.cases import named_cases
from stopscan_conformance.oracle import Recital, Task, recite
from stopscan_conformance.scripts import THINKING

# All cases except those with a stop inside a marker that is one token: `StopScanner` reads text, so it cannot know that
# the marker is one token.
EVERY = [one for one in named_cases() if "of-a-marker" not in one.name]
PIECES = st.lists(st.sampled_from(["a", "b", "ab", "abc", "c", "é", "<think>", "</think>", "k>"]), max_size=12)
STOPS = st.lists(st.text("abcék>", min_size=1, max_size=4), max_size=3, unique=True)


def plain(recital: Recital) -> Recital:
    return replace(recital, competes=False, at_limit=False)


def scanned(task: Task) -> Recital:
    """Returns the answer to `task` as stopscan computes it, token by token."""
    scanner = StopScanner(StopSet(task.stops, protect=[THINKING]))
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text, tokens, reason, fires = "", 0, "eos", None
    said: list[int] = []
    safe: list[int] = []
    for tokens, piece in enumerate([*task.pieces, None], 1):
        if piece is None:
            break
        before, state = scanner.copy(), decoder.getstate()
        decoded = decoder.decode(piece)
        said.append((said or [0])[-1] + len(decoded))
        out = scanner.feed(decoded)
        if scanner.match is None and tokens - 1 in task.stop_pieces:
            scanner, reason, fires = before, "stop_token", tokens - 1
            decoder.setstate(state)
            break
        text += out
        safe.append(len(text))
        if scanner.match is not None:
            reason, fires = "stop_sequence", scanner.match.sequence
            break
        if tokens == task.max_tokens:
            reason = "length"
            break
    if scanner.match is None:
        text += scanner.feed(decoder.decode(b"", final=True)) + scanner.flush()
    return Recital(text, tokens, reason, fires, tuple(said), (*safe, len(text)))


@pytest.mark.parametrize("task", [one.task for one in EVERY], ids=[one.name for one in EVERY])
def test_the_oracle_says_what_the_library_says(task: Task) -> None:
    assert plain(recite(task)) == scanned(task)


@given(PIECES, STOPS, st.lists(st.integers(0, 11), max_size=2), st.sampled_from([3, 5, 200]))
def test_the_oracle_agrees_with_the_library(pieces: list[str], stops: list[str], tokens: list[int], limit: int) -> None:
    encoded = tuple(piece.encode() for piece in pieces)
    task = Task("", encoded, stops, tuple(tokens), limit)
    assert plain(recite(task)) == scanned(task)


@pytest.mark.parametrize("stop", ["a<think>", "nk>"])
def test_a_stop_and_a_marker_that_complete_together(stop: str) -> None:
    """The longer of the two wins."""
    task = Task("", (b"one a<th", b"ink", b">", b" two"), [stop])
    assert plain(recite(task)) == scanned(task)


def test_no_stop_ends_inside_the_token_of_a_marker() -> None:
    pieces = (b"<think>", b"Is it", b"?", b"</think>", b"It is")
    assert recite(Task("", pieces, ["think"])).reason == "eos"
    assert recite(Task("", pieces, ["think"]), protected=False).text == "<"
    spelled = (b"<thi", b"nk>", *pieces[1:])
    assert recite(Task("", spelled, ["think"])).text == "<"


def test_a_stop_competes_with_stops_already_in_the_text() -> None:
    pieces = (b"one ", b"xabcdy", b" two")
    assert recite(Task("", pieces, ["abcd", "bc"])).competes
    assert recite(Task("", pieces, ["one ", "bc"])).competes is False
    assert recite(Task("", pieces, ["bc", "two"])).competes is False
    assert recite(Task("", pieces, ["bc"], stop_pieces=(1,))).competes


@pytest.mark.parametrize(("limit", "at_limit"), [(2, True), (3, False)])
def test_a_stop_in_the_last_token_of_the_limit(limit: int, at_limit: bool) -> None:
    assert recite(Task("", (b"one ", b"END", b" two"), ["END"], max_tokens=limit)).at_limit == at_limit


def test_an_end_in_the_last_token_of_the_limit() -> None:
    last = recite(Task("", (b"one", b" two"), max_tokens=3))
    assert (last.reason, last.at_limit) == ("eos", True)
    assert recite(Task("", (b"one", b" two"), max_tokens=2)).reason == "length"
