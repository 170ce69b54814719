"""Sets, matches and scanners as Python objects: arguments, attributes, equality, order and `repr`."""

from __future__ import annotations

from typing import Any

import pytest

from stopscan import StopMatch, StopScanner, StopSet, truncate


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("END", ("END",)),
        (["END", "STOP"], ("END", "STOP")),
        (("b", "a", "b", "c", "a"), ("b", "a", "c")),
        (iter(["END"]), ("END",)),
        ({"END": 1}.keys(), ("END",)),
        (None, ()),
        ((), ()),
        ([], ()),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "__next__") else repr(value),
)
def test_stops_of_a_set(stop: Any, expected: tuple[str, ...]) -> None:
    stops = StopSet(stop)
    assert (stops.stop, stops.visible, stops.protect, len(stops)) == (expected, (), (), len(expected))


def test_a_set_of_everything() -> None:
    stops = StopSet("END", visible=[".", "!", "."], protect=[["<", ">"], ("[", ">"), ("<", ">")])  # type: ignore[list-item]
    assert (stops.stop, stops.visible) == (("END",), (".", "!"))
    assert stops.protect == (("<", ">"), ("[", ">"))
    assert len(stops) == 3
    assert StopSet(visible=".").visible == (".",)


def test_sets_are_equal_by_what_they_were_given() -> None:
    stops = StopSet(["a", "b"], visible="c", protect=[("<", ">")])
    assert stops == StopSet(("a", "b", "a"), visible=["c"], protect=(("<", ">"),))
    assert hash(stops) == hash(StopSet(("a", "b", "a"), visible=["c"], protect=(("<", ">"),)))
    others = [
        StopSet(["b", "a"], visible="c", protect=[("<", ">")]),
        StopSet(["a", "b", "c"], protect=[("<", ">")]),
        StopSet(["a", "b"], visible="c", protect=[("<", "]")]),
        ("a", "b"),
    ]
    assert [other for other in others if other == stops] == []
    assert len({stops, *others, stops}) == 5


def test_a_set_of_a_set_is_that_set() -> None:
    stops = StopSet(["END"], visible=["."])
    assert StopSet(stops) is stops
    for options in ({"visible": "."}, {"protect": [("<", ">")]}):
        with pytest.raises(TypeError, match="stop is already a StopSet: give no other stops"):
            StopSet(stops, **options)


def test_a_match_in_a_match_statement() -> None:
    match StopSet("END").find("The END"):
        case StopMatch(sequence, offset):
            assert (sequence, offset) == ("END", 4)
        case _:
            pytest.fail("no match")


def test_a_set_shows_what_it_was_given() -> None:
    stops = StopSet(["a'b", "é"], visible=".", protect=[("<", ">")])
    assert eval(repr(stops)) == stops


def test_matches() -> None:
    match = StopMatch("é🦀", 26)
    assert (match.sequence, match.offset, match.end) == ("é🦀", 26, 28)
    assert match == StopMatch("é🦀", 26)
    assert hash(match) == hash(StopMatch("é🦀", 26))
    assert [other for other in (StopMatch("é🦀", 25), StopMatch("éx", 26), ("é🦀", 26), None) if other == match] == []
    assert eval(repr(match)) == match


def test_matches_are_ordered_by_offset_then_end_then_sequence() -> None:
    ordered = [StopMatch("zz", 1), StopMatch("b", 2), StopMatch("c", 2), StopMatch("aa", 2), StopMatch("a", 10)]
    assert sorted([ordered[3], ordered[1], ordered[4], ordered[0], ordered[2]]) == ordered
    assert ordered[0] < ordered[1] <= ordered[1] < ordered[2]
    assert ordered[2] > ordered[1] >= ordered[1]
    with pytest.raises(TypeError):
        _ = ordered[0] < ("zz", 1)  # type: ignore[operator]


def test_a_scanner_compiles_or_takes_its_set() -> None:
    stops = StopSet("END")
    assert StopScanner(stops).stops is stops
    assert StopScanner("END").stops == stops
    assert StopScanner(["END"], include_stop=True).stops == stops


def test_feed_returns_the_delta_when_nothing_is_held() -> None:
    scanner = StopScanner(StopSet("END", visible=".", protect=[("<think>", "</think>")]))
    for delta in ["some text", "é🦀字 text", "<think>", "END in a region", "</think>", "x" * 1_000]:
        assert scanner.feed(delta) is delta
        assert scanner.feed(delta.replace("END", ""), armed=False)


class Text(str):
    """Some tokenizers return a subclass of `str`."""

    __slots__ = ()


def test_a_subclass_of_str_is_text() -> None:
    delta = Text("a EN")
    scanner = StopScanner([Text("END")])
    assert (scanner.feed(delta), scanner.feed(Text("D"))) == ("a ", "")
    assert scanner.match == StopMatch("END", 2)
    whole = Text("no stop")
    assert StopScanner("END").feed(whole) is whole


@pytest.mark.parametrize("stop", ["END", ["END"], StopSet("END")], ids=["str", "list", "StopSet"])
def test_truncate(stop: Any) -> None:
    assert truncate("a END b", stop) == ("a ", StopMatch("END", 2))
    assert truncate("a END b", stop, include_stop=True) == ("a END", StopMatch("END", 2))
    assert truncate("a EN", stop) == ("a EN", None)
    assert truncate("", stop) == ("", None)


def test_find_and_truncate_in_a_prompted_region() -> None:
    stops = StopSet("END", protect=[("<think>", "</think>")])
    text = "END</think>a END"
    assert stops.find(text) == StopMatch("END", 0)
    assert stops.find(text, start_protected=True) == StopMatch("END", 13)
    assert stops.truncate(text, start_protected=True) == ("END</think>a ", StopMatch("END", 13))
    assert truncate(text, stops, start_protected=True, include_stop=True) == (text, StopMatch("END", 13))
