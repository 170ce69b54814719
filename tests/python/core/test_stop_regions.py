"""Stop sets with a graph of regions. The markers stay in the text. The option `protect` is a shorter way to write a
graph."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from stopscan import StopMatch, StopScanner, StopSet, scan, truncate
from stopscan.segments import Segmenter, SegmentSet, keep, stay

GRAPH = {
    "answer": {"<think>": "reasoning", "<call>": keep("call")},
    "reasoning": {"</think>": "answer", "<call>": "call/in reasoning"},
    "call": {"</call>": "answer"},
    "call/in reasoning": {"</call>": "answer", "</think>": "answer"},
}
TEXT = "<think>END<call>END</call>done END more"


def test_stop_fires_behind_a_call_that_ends_reasoning() -> None:
    stops = StopSet("END", regions=GRAPH, stop_in=["answer"])
    scanner = StopScanner(stops)
    assert scanner.feed(TEXT) == "<think>END<call>END</call>done "
    assert (scanner.match, scanner.region) == (StopMatch("END", 31), "answer")
    assert stops.truncate(TEXT) == (TEXT[:31], StopMatch("END", 31))


def test_a_text_begins_in_a_region() -> None:
    stops = StopSet("END", regions=GRAPH, stop_in=["answer"])
    assert stops.region_after("<think>\n<call>") == "call/in reasoning"
    text = "END</think>END"
    assert stops.find(text, region="reasoning") == StopMatch("END", 11)
    assert stops.truncate(text, region="reasoning")[0] == "END</think>"
    assert truncate(text, stops, region="call/in reasoning")[0] == "END</think>"
    assert list(scan([text], stops, region="reasoning")) == ["END</think>"]
    assert StopScanner(stops, region="call/in reasoning").region == "call"


def test_attributes_are_the_arguments() -> None:
    stops = StopSet("END", regions=GRAPH, stop_in=["answer"])
    assert (stops.regions, stops.stop_in, stops.protect) == (GRAPH, ("answer",), ())
    assert stops.regions
    assert isinstance(stops.regions["answer"]["<call>"], keep)
    plain = StopSet("END")
    assert (plain.regions, plain.stop_in) == (None, ("answer",))
    for other in (copy.copy(stops), copy.deepcopy(stops), pickle.loads(pickle.dumps(stops))):
        assert (other, hash(other)) == (stops, hash(stops))
    assert eval(repr(stops), {"StopSet": StopSet, "keep": keep}) == stops


def test_protect_is_short_for_a_graph() -> None:
    pairs = StopSet("END", protect=[("<think>", "</think>")])
    graph = {"answer": {"<think>": "<think>"}, "<think>": {"</think>": "answer"}}
    long = StopSet("END", regions=graph, stop_in=["answer"])
    for text in ("<think>END</think>END", "END", "<thinkEND"):
        assert pairs.find(text) == long.find(text)
    one, other = StopScanner(pairs), StopScanner(long)
    one.feed("<think>EN")
    other.restore(one.snapshot())  # the two sets are equal, so the snapshot fits both
    assert one.region == other.region == "<think>"
    assert StopScanner(pairs, start_protected=True).region == "<think>"


STAYS: dict[str, dict[str, str]] = {
    "answer": {"<call>": "call"},
    "call": {"</call>": "answer", "<arg>": stay("call/argument")},
    "call/argument": {"</arg>": stay("call")},
}


def test_a_marker_that_stays_begins_no_part() -> None:
    segments = SegmentSet(STAYS, stop=["END"], stop_in=["answer"])
    for deltas in (
        ["a<call><arg></call>", "END</ar", "g>x</call>b END"],
        [*"a<call><arg></call>END</arg>x</call>b END"],
    ):
        segmenter = Segmenter(segments)
        out = [segment for delta in deltas for segment in segmenter.feed(delta)]
        texts = {part: (region, "".join(text for _, text, at in out if at == part)) for region, _, part in out}
        assert texts == {0: ("answer", "a"), 1: ("call", "<arg></call>END</arg>x"), 2: ("answer", "b ")}
        assert segmenter.match == StopMatch("END", len("a<call><arg></call>END</arg>x</call>b "))
    plain = {state: {marker: str(to) for marker, to in leads.items()} for state, leads in STAYS.items()}
    assert SegmentSet(plain) != SegmentSet(STAYS)
    with pytest.raises(ValueError, match="other options"):
        Segmenter(SegmentSet(plain)).restore(Segmenter(SegmentSet(STAYS)).snapshot())
    for other in (copy.deepcopy(segments), pickle.loads(pickle.dumps(segments))):
        assert (other, hash(other), repr(other)) == (segments, hash(segments), repr(segments))
        assert type(other.markers["call"]["<arg>"]) is stay
    assert eval(repr(segments), {"SegmentSet": SegmentSet, "stay": stay}) == segments
    assert (stay("call"), type(pickle.loads(pickle.dumps(stay("call"))))) == ("call", stay)


def test_staying_marker_cannot_leave_its_region() -> None:
    leaving = {"answer": {"|": stay("call")}, "call": {}}
    error = re.escape('marker "|" of region "answer" stays in its part, so it cannot lead to "call"')
    with pytest.raises(ValueError, match=error):
        SegmentSet(leaving)
    stops = StopSet("END", regions=leaving, stop_in=["answer"])
    assert stops == StopSet("END", regions={"answer": {"|": "call"}, "call": {}}, stop_in=["answer"])
    assert stops.regions is not None
    assert type(stops.regions["answer"]["|"]) is str


def test_a_kept_marker_begins_the_text_of_its_region() -> None:
    segmenter = Segmenter(SegmentSet(GRAPH))
    out = [segment for delta in ["a<c", "all>b</call>c", "<think>r<call>q"] for segment in segmenter.feed(delta)]
    assert out == [
        ("answer", "a", 0),
        ("call", "<call>b", 1),
        ("answer", "c", 2),
        ("reasoning", "r", 3),
        ("call", "q", 4),
    ]
    assert SegmentSet(GRAPH).regions == ("answer", "reasoning", "call")
    assert SegmentSet(GRAPH) != SegmentSet({**GRAPH, "answer": {"<think>": "reasoning", "<call>": "call"}})
    assert (keep("call"), type(pickle.loads(pickle.dumps(keep("call"))))) == ("call", keep)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regions": GRAPH, "protect": [("<a>", "</a>")]}, "give regions or protect, not both"),
        ({"regions": {}}, "at least one region"),
        ({"regions": {"a": {"|": "b"}}}, 'no region "b"'),
        ({"regions": {"a": {"": "a"}}}, "empty"),
        ({"regions": {"a": {"xyz": "a", "y": "a"}}}, '"xyz".*never found.*"y"'),
        ({"regions": {"END": {"END": "END"}}}, '"END" is both a stop and a marker'),
        ({"stop_in": ["reasoning"]}, "stop_in.*reasoning"),
    ],
)
def test_what_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StopSet("END", **options)  # type: ignore[arg-type]


def test_a_stream_begins_in_one_place() -> None:
    stops = StopSet("END", protect=[("<think>", "</think>")])
    with pytest.raises(ValueError, match="give region or start_protected, not both"):
        StopScanner(stops, start_protected=True, region="answer")
    with pytest.raises(ValueError, match='no region "x"'):
        StopScanner(stops, region="x")
    with pytest.raises(ValueError, match="start_protected"):
        StopScanner(StopSet("END", regions=GRAPH), start_protected=True)
