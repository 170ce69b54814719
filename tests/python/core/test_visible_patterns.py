"""Visible patterns: their matches stay in the output. The Rust tests compare them with the reference."""

from __future__ import annotations

import pickle

import pytest

from stopscan import StopMatch, StopScanner, StopSet, scan
from stopscan.segments import Segmenter, SegmentSet, split

SENTENCE = r"[.!?]\s"
TWO_LINES = r"\n.*\n"


def test_a_set_keeps_its_visible_patterns() -> None:
    stops = StopSet("END", patterns=["a+b"], visible_patterns=[SENTENCE, SENTENCE, "x"])
    assert (stops.patterns, stops.visible_patterns, len(stops)) == (("a+b",), (SENTENCE, "x"), 4)
    assert repr(stops) == r"StopSet(('END',), patterns=('a+b',), visible_patterns=('[.!?]\\s', 'x'))"
    other = pickle.loads(pickle.dumps(stops))
    assert (other, hash(other), other.visible_patterns) == (stops, hash(stops), stops.visible_patterns)
    hidden = StopSet("END", patterns=["a+b", SENTENCE, "x"])
    assert (hidden == stops, hash(hidden) == hash(stops)) == (False, False)
    with pytest.raises(ValueError, match="other options"):
        StopScanner(hidden).restore(StopScanner(stops).snapshot())


def test_find_and_truncate_keep_the_match() -> None:
    stops = StopSet(visible_patterns=[SENTENCE])
    assert stops.truncate("At 1.5 km. Then") == ("At 1.5 km. ", StopMatch(". ", 9, SENTENCE))
    assert stops.find("At 1.5 km.") is None


def test_a_delta_comes_out_as_it_went_in() -> None:
    scanner = StopScanner(StopSet(patterns=["<b>"], visible_patterns=["a.*b"]))
    for delta in ("an ", "c ", "apple"):
        assert scanner.feed(delta) is delta
        assert scanner.held == ""
    assert scanner.feed(" b c") == " b"
    assert (scanner.match, scanner.unused) == (StopMatch("an c apple b", 0, "a.*b"), " c")


@pytest.mark.parametrize("include_stop", [False, True])
def test_copy_and_snapshot_continue_within_a_match(*, include_stop: bool) -> None:
    scanner = StopScanner(StopSet(patterns=["cd.?e"], visible_patterns=["b.*f"]), include_stop=include_stop)
    assert scanner.feed("é b cd") == ("é b cd" if include_stop else "é b ")
    restored = StopScanner(scanner.stops, include_stop=include_stop)
    restored.restore(scanner.snapshot())
    for other in (scanner.copy(), pickle.loads(pickle.dumps(scanner)), restored):
        assert (other.held, other.snapshot()) == (scanner.held, scanner.snapshot())
        assert other.feed("xx") == ("xx" if include_stop else "cdxx")
        assert other.feed("f.") == "f"
        assert other.match == StopMatch("b cdxxf", 2, "b.*f")


def test_max_held_limits_hidden_patterns_alone() -> None:
    stops = StopSet(patterns=["<.*>"], visible_patterns=[r"\[.*\]"], max_held=2)
    text = "<long> [" + "x" * 70_000 + "] y"
    assert stops.truncate(text)[0] == text[:-2]
    assert StopSet(visible_patterns=["a.*b"]).max_held is None
    with pytest.raises(ValueError, match=r'^pattern 0, "a\.\*b": it can hold text for ever'):
        StopSet(patterns=["a.*b"], visible_patterns=["c.*d"])


def test_earlier_stop_bounds_a_holding_pattern() -> None:
    assert StopSet(patterns=["<[a-zA-Z ]+>"], visible_patterns=[r"\s"]).find("<a >") == StopMatch(" ", 2, r"\s")


def test_a_pattern_in_both_lists_is_refused() -> None:
    with pytest.raises(ValueError, match=r'"b\." is both a pattern and a visible pattern'):
        StopSet(patterns=["a.", "b."], visible_patterns=["b."])
    with pytest.raises(ValueError, match=r'^visible pattern 1, "\(": unclosed group'):
        SegmentSet({"answer": {}}, visible_patterns=["a", "("])
    with pytest.raises(TypeError, match="visible pattern"):
        StopSet(visible_patterns=[1])  # type: ignore[list-item]


def test_segments_end_behind_a_match() -> None:
    graph = {"answer": {"<t>": "reasoning"}, "reasoning": {"</t>": "answer"}}
    segments = SegmentSet(graph, visible_patterns=[TWO_LINES], stop_in=["answer"])
    assert segments.visible_patterns == (TWO_LINES,)
    assert pickle.loads(pickle.dumps(segments)) == segments
    assert SegmentSet(graph, visible_patterns=[TWO_LINES, "x"], stop_in=["answer"]) != segments
    deltas = ["<t>\na\nb", "</t>1\n", "2\n3"]
    expected = [("reasoning", "\na\nb", 1), ("answer", "1\n", 2), ("answer", "2\n", 2)]
    assert list(split(deltas, segments)) == expected
    segmenter = Segmenter(segments)
    assert "".join(text for delta in deltas for _, text, _ in segmenter.feed(delta)) == "\na\nb1\n2\n"
    assert segmenter.match == StopMatch("\n2\n", 12, TWO_LINES)


def test_the_end_confirms_a_visible_match() -> None:
    with scan(["All", " done"], StopSet(visible_patterns=[r"done\b"])) as stream:
        assert list(stream) == ["All", " done"]
        assert stream.match == StopMatch("done", 4, r"done\b")


def test_many_places_where_a_match_may_have_begun() -> None:
    stops = StopSet(visible_patterns=["a[^!]*!"])
    scanner = StopScanner(stops)
    for _ in range(300):
        assert scanner.feed("a" * 1_000) == "a" * 1_000
    assert scanner.feed("!?") == "!"
    assert scanner.match is not None
    assert (scanner.match.offset, scanner.match.end) == (0, 300_001)
