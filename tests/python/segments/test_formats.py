"""Every form, on an answer that its model or its parsers' tests write, cut at every place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

import pytest
from format_answers import ANSWERS, Answer

from stopscan.segments import FORMATS, Segmenter, SegmentSet

each_answer = pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.form)


def segments_of(answer: Answer, deltas: Iterable[str]) -> list[tuple[str, str]]:
    """The segments of the whole stream, neighbours of one region joined."""
    segments = SegmentSet(FORMATS[answer.form])
    segmenter = Segmenter(segments, region=segments.region_after(answer.prompt))
    given = [segment for delta in deltas for segment in segmenter.feed(delta)]
    given += segmenter.flush()
    return [
        (region, "".join(text for _, text in group)) for region, group in groupby(given, lambda segment: segment[0])
    ]


@each_answer
def test_an_answer_has_its_parts_whatever_the_cut(answer: Answer) -> None:
    text = answer.text
    assert segments_of(answer, [text]) == answer.segments
    for cut in range(1, len(text)):
        assert segments_of(answer, [text[:cut], text[cut:]]) == answer.segments
    for size in (1, 2, 3, 5, 8):
        assert segments_of(answer, [text[at : at + size] for at in range(0, len(text), size)]) == answer.segments


def test_each_marker_of_each_form_is_in_an_answer() -> None:
    assert {answer.form for answer in ANSWERS} == set(FORMATS)
    for form, markers in FORMATS.items():
        texts = [answer.prompt + answer.text for answer in ANSWERS if answer.form == form]
        for marker in {marker for leads in markers.values() for marker in leads}:
            assert any(marker in text for text in texts), (form, marker)


@pytest.mark.parametrize("form", FORMATS)
def test_a_form_compiles_and_names_its_source(form: str) -> None:
    markers = FORMATS[form]
    segments = SegmentSet(markers, stop=["END"], stop_in=["answer"])
    assert segments.markers == {region: dict(leads) for region, leads in markers.items()}
    assert segments.regions[0] in {"answer", "header"}
    assert re.match(r".+: .+", markers.source)


@pytest.mark.parametrize("form", FORMATS)
def test_a_form_is_a_mapping_and_shows_what_makes_it(form: str) -> None:
    markers = FORMATS[form]
    assert len(markers) == len([*markers]) == len(dict(markers))
    assert dict(markers) == {region: markers[region] for region in markers}
    assert eval(repr(markers), {"Format": type(markers)}) == markers
    assert repr(markers.source) in repr(markers)


@pytest.mark.parametrize("form", FORMATS)
def test_every_region_is_reached_from_the_first(form: str) -> None:
    markers = FORMATS[form]
    reached = {next(iter(markers))}
    while more := {leads for region in reached for leads in markers[region].values()} - reached:
        reached |= more
    assert reached == set(markers)


def test_a_marker_that_is_not_expected_is_text() -> None:
    segmenter = Segmenter(FORMATS["qwen3"])
    assert segmenter.feed("Close it with </think>.") == [("answer", "Close it with </think>.")]
    segmenter = Segmenter(FORMATS["qwen3"], region="reasoning")
    assert segmenter.feed("What is <think>?</think>A tag.") == [("reasoning", "What is <think>?"), ("answer", "A tag.")]


def test_calls_with_nothing_between_them_are_one_segment() -> None:
    """As docs/formats.md says: neighbours of one region are joined, and the calls of these forms can be told apart."""
    segmenter = Segmenter(FORMATS["hermes"])
    assert segmenter.feed('<tool_call>{"a": 1}</tool_call><tool_call>{"b": 2}</tool_call>') == [
        ("tool_call", '{"a": 1}{"b": 2}')
    ]
