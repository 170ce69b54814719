"""Real patterns as stops: people wrote them to find where answers of models begin and end.

`patterns_in_use.json` has the patterns with their sources. Some are from issue trackers and agents. The others mark a
place in an answer, and are from eleven projects that search the answers of models. Most are accepted. The tests check
that each is accepted or refused as the file says.

In all, the eleven projects have 855 patterns, many of them for other texts than answers. 544 of the 855 are accepted.
210 more are accepted only with `max_held`, because a match may have text of any length between its beginning and its
end. 101 are refused: 47 have look-ahead or look-behind, 45 are not in the syntax of the regex crate (an unescaped
brace), 6 match the empty string, and 3 have backreferences.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from stopscan import StopMatch, StopScanner, StopSet

IN_USE = json.loads(Path(__file__).with_name("patterns_in_use.json").read_text(encoding="utf-8"))


def test_nearly_all_are_taken() -> None:
    outcomes = Counter(entry["outcome"] for entry in IN_USE)
    assert len({entry["pattern"] for entry in IN_USE}) == 264
    assert outcomes["taken"] + outcomes["max_held"] >= 250
    assert outcomes["max_held"] <= 20


@pytest.mark.parametrize("entry", IN_USE, ids=lambda entry: entry["pattern"])
def test_each_is_taken_as_it_says(entry: dict[str, str]) -> None:
    pattern, outcome = entry["pattern"], entry["outcome"]
    if outcome == "taken":
        StopScanner(StopSet(patterns=[pattern])).feed("The answer is")
    else:
        problem = "it can hold text for ever" if outcome == "max_held" else "not supported|empty string|too large"
        with pytest.raises(ValueError, match=problem):
            StopSet(patterns=[pattern])
    if outcome == "max_held":
        assert StopSet(patterns=[pattern], max_held=1_000).max_held == 1_000


@pytest.mark.parametrize(
    ("pattern", "text", "sequence"),
    [
        (r"<[^>]{1,40}>", "a < b <b> c", "< b <b>"),
        (r"https?://[^\s]{1,200}\s", "see https://a.b/c and", "https://a.b/c "),
        (r"Finish\[[^\]]{1,80}\]", "Action 3: Finish[Paris].", "Finish[Paris]"),
        (r"Action: \w{1,20}\[[^\]\n]{0,100}\]", "so\nAction: Search[a b] x", "Action: Search[a b]"),
        (r"[.!?](\s|$)", "3.14 is pi. And", ". "),
        (r"[.!?](\s|$)", "3.14 is pi!", "!"),
        (r"(?i)(^|\n)user:", "the user: or\nUSER: x", "\nUSER:"),
        (r"(?i)\b(the )?end\b[.!]?", "bend, The End", "The End"),
    ],
)
def test_a_class_with_the_patterns_own_beginning_was_refused(pattern: str, text: str, sequence: str) -> None:
    """These patterns must be accepted. Before a fix, each was refused: as "too large", or because an assertion such as
    `$` is not at the very end of the pattern."""
    stops = StopSet(patterns=[pattern])
    match = StopMatch(sequence, text.index(sequence), pattern)
    scanner = StopScanner(stops)
    out = "".join(map(scanner.feed, text)) + scanner.flush()
    assert (stops.find(text), scanner.match, out) == (match, match, text[: match.offset])
