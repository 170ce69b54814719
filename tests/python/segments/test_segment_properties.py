"""Properties that hold for all markers, stops and texts. Compares segmenters with the reference and with each other."""

from __future__ import annotations

import asyncio
from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from reference import region_of
from segment_setups import Setup, setups
from setups import cut, texts
from test_properties import asynchronously, either_length, same

from stopscan.segments import SegmentSet, asplit, split

Segments = list[tuple[str, str, int]]


def joined(segments: Segments) -> Segments:
    """Joins neighbouring segments of the same part."""
    whole: Segments = []
    for region, text, part in segments:
        if whole and whole[-1][2] == part:
            text = whole.pop()[1] + text
        whole.append((region, text, part))
    return whole


def expected(setup: Setup, text: str) -> Segments:
    reference = setup.reference()
    return joined(reference.feed(text) + reference.flush())


@either_length
@settings(max_examples=400)
@given(data=st.data())
def test_every_step_agrees_with_the_reference(longest_filler: int, data: st.DataObject) -> None:
    setup = data.draw(setups())
    deltas = data.draw(cut(data.draw(texts(setup, longest_filler=longest_filler))))
    armed = data.draw(st.lists(st.booleans(), min_size=len(deltas), max_size=len(deltas)))
    segmenter, reference = setup.segmenter(), setup.reference()
    for delta, stops_count in zip(deltas, armed, strict=True):
        held_before = segmenter.held
        out = segmenter.feed(delta, armed=stops_count)
        assert out == reference.feed(delta, armed=stops_count)
        assert (segmenter.held, segmenter.unused) == (reference.held, reference.unused)
        assert segmenter.region == reference.region
        assert same(segmenter.match, reference.match)
        plain = not held_before and not segmenter.held and not any(word in delta for word in setup.words)
        if plain and segmenter.match is None and delta:
            assert [text for _, text, _ in out] == [delta]
            assert out[0][1] is delta
    assert segmenter.flush() == reference.flush()


@settings(max_examples=150)
@given(data=st.data())
def test_every_chunking_gives_one_answer(data: st.DataObject) -> None:
    setup = data.draw(setups())
    text = data.draw(texts(setup))[:7]
    answers = []
    for edges in [edges for count in range(len(text)) for edges in combinations(range(1, len(text)), count)]:
        segmenter = setup.segmenter()
        pieces = [text[start:end] for start, end in zip((0, *edges), (*edges, len(text)), strict=True)]
        segments = [segment for piece in pieces for segment in segmenter.feed(piece)]
        answer = (
            joined(segments),
            segmenter.held,
            segmenter.region,
            segmenter.match,
            joined(segments + segmenter.flush()),
        )
        if answer not in answers:
            answers.append(answer)
    assert len(answers) <= 1


@either_length
@settings(max_examples=200)
@given(data=st.data())
def test_texts_and_markers_joined_are_the_input(longest_filler: int, data: st.DataObject) -> None:
    """Between two segments, the input has nothing or only markers. These markers lead to the region of the second
    segment."""
    setup = data.draw(setups())
    # This test needs markers that are not part of a segment's text. So it replaces each kept marker, which stays in the
    # text, by a marker that is taken out.
    taken_out = {state: {marker: str(to) for marker, to in leads.items()} for state, leads in setup.markers.items()}
    setup = setup._replace(markers=taken_out)
    text = data.draw(texts(setup, longest_filler=longest_filler))
    segmenter = setup.segmenter()
    segments = [segment for character in text for segment in segmenter.feed(character)] + segmenter.flush()
    read = text if segmenter.match is None else text[: segmenter.match.end]
    places = {(0, setup.region or next(iter(setup.markers)))}
    for region, piece, _ in segments:
        places = {
            (end + len(piece), state)
            for end, state in reachable(setup, read, places)
            if region_of(state) == region and read.startswith(piece, end)
        }
        assert places
    hidden = segmenter.match is not None and segmenter.match.sequence in setup.stop and not setup.include_stop
    end = segmenter.match.offset if hidden and segmenter.match else len(read)
    assert (end, segmenter.region) in {(place, region_of(state)) for place, state in reachable(setup, read, places)}


def reachable(setup: Setup, text: str, places: set[tuple[int, str]]) -> set[tuple[int, str]]:
    """Returns all pairs of a position in ``text`` and a state that can be reached from ``places`` by reading only
    markers. The pairs in ``places`` are included."""
    found, new = set(places), set(places)
    while new:
        new = {
            (place + len(marker), lead)
            for place, region in new
            for marker, lead in setup.markers[region].items()
            if text.startswith(marker, place)
        } - found
        found |= new
    return found


@either_length
@settings(max_examples=150)
@given(data=st.data())
def test_all_the_ways_in_agree(longest_filler: int, data: st.DataObject) -> None:
    setup = data.draw(setups())
    deltas = data.draw(cut(data.draw(texts(setup, longest_filler=longest_filler))))
    segments = setup.segment_set()
    stream = split(deltas, segments, **setup.options)
    pieces = list(stream)
    assert joined(pieces) == expected(setup, "".join(deltas))
    assert all(text for _, text, _ in pieces)
    assert stream.held == ""

    async def collect() -> Segments:
        return [segment async for segment in astream]

    astream = asplit(asynchronously(deltas), segments, **setup.options)
    assert asyncio.run(collect()) == pieces
    assert (astream.match, astream.held, astream.unused) == (stream.match, "", stream.unused)
    assert astream.region == stream.region


@settings(max_examples=200)
@given(data=st.data())
def test_region_after_is_where_a_stream_without_stops_ends(data: st.DataObject) -> None:
    setup = data.draw(setups())
    prefix = data.draw(texts(setup))
    reference = Setup(setup.markers).reference()
    reference.feed(prefix)
    assert setup.segment_set().region_after(prefix) == reference.state


@settings(max_examples=200)
@given(data=st.data())
def test_only_unreachable_markers_are_errors(data: st.DataObject) -> None:
    words = st.text("ab", min_size=1, max_size=5)
    markers = data.draw(st.lists(words, min_size=1, max_size=4, unique=True))
    hopeless = [marker for marker in markers if any(other in marker[:-1] for other in markers)]
    regions = {"a": dict.fromkeys(markers, "a")}
    if not hopeless:
        SegmentSet(regions)
        return
    with pytest.raises(ValueError, match="is never found") as error:
        SegmentSet(regions)
    named = [marker for marker in hopeless if str(error.value).startswith(f"marker {marker!r}".replace("'", '"'))]
    assert len(named) == 1
