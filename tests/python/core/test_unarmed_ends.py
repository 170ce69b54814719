"""A match of a pattern such as `END\\b` may be complete only because the text ends. It does not fire if its last
character was fed with `armed=False`."""

from __future__ import annotations

import pytest

from stopscan import StopScanner, StopSet
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter, SegmentSet
from stopscan.tokens import TokenScanner

STOPS = StopSet(patterns=["6$"])


@pytest.mark.parametrize("pattern", ["6$", r"6\z", r"6\b", "(?m)6$", "[56]+$"])
@pytest.mark.parametrize("include_stop", [False, True])
@pytest.mark.parametrize("fires", [False, True])
def test_the_end_confirms_no_unarmed_match(pattern: str, include_stop: bool, fires: bool) -> None:
    for scanner in (
        StopScanner(StopSet(patterns=[pattern]), include_stop=include_stop),
        Segmenter(SegmentSet({"answer": {}}, patterns=[pattern]), include_stop=include_stop),
    ):
        scanner.feed("5, ")
        scanner.feed("6", armed=fires)
        scanner.feed("", armed=not fires)
        restored = scanner.copy()
        restored.reset()
        restored.restore(scanner.snapshot())
        for each in (scanner.copy(), restored, scanner):
            each.flush()
            assert (each.match is not None) == fires, (each, pattern)


def test_an_armed_character_behind_unarmed_text_completes_the_match() -> None:
    scanner = StopScanner(StopSet(patterns=["56$"]))
    scanner.feed("5", armed=False)
    scanner.feed("6")
    assert (scanner.flush(), str(scanner.match)) == ("", "StopMatch('56', 0, '56$')")


def test_an_armed_line_feed_confirms_an_unarmed_match() -> None:
    scanner = StopScanner(StopSet(patterns=["(?m)6$"]))
    scanner.feed("6", armed=False)
    scanner.feed("\n")
    assert scanner.match is not None


@pytest.mark.parametrize("end", ["eos", "length", "flush"])
@pytest.mark.parametrize(("min_tokens", "reason"), [(0, "stop_sequence"), (1, "stop_sequence"), (2, None)])
def test_the_end_confirms_no_match_among_min_tokens(end: str, min_tokens: int, reason: str | None) -> None:
    vocabulary = Vocabulary(["5", "6", "</s>"], special={2})
    scanner = TokenScanner(
        vocabulary, STOPS, eos_token_ids=2, min_tokens=min_tokens, max_tokens=2 if end == "length" else None
    )
    scanner.feed_many([0, 1])
    if end == "eos":
        scanner.feed(2)
    elif end == "flush":
        scanner.flush()
    assert scanner.finish is not None
    assert scanner.finish.reason == (reason or ("length" if end == "length" else "eos"))
