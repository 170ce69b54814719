"""Markers, stops and texts that collide, for the properties of segmenters."""

from __future__ import annotations

from typing import Any, NamedTuple

import hypothesis.strategies as st
from reference import SegmentReference
from test_properties import ALPHABETS

from stopscan.segments import Segmenter, SegmentSet

REGIONS = ("answer", "reasoning", "tool_call")

Markers = dict[str, dict[str, str]]


class Setup(NamedTuple):
    markers: Markers
    stop: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    stop_in: tuple[str, ...] | None = None
    region: str | None = None
    include_stop: bool = False

    @property
    def words(self) -> list[str]:
        return [*self.stop, *self.visible, *(marker for leads in self.markers.values() for marker in leads)]

    @property
    def options(self) -> dict[str, Any]:
        return {"region": self.region, "include_stop": self.include_stop}

    def segment_set(self) -> SegmentSet:
        return SegmentSet(self.markers, stop=self.stop, visible=self.visible, stop_in=self.stop_in)

    def segmenter(self) -> Segmenter:
        return Segmenter(self.segment_set(), **self.options)

    def reference(self) -> SegmentReference:
        options = {"stop": self.stop, "visible": self.visible, "stop_in": self.stop_in}
        return SegmentReference(self.markers, **options, **self.options)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    syllables = st.text(draw(st.sampled_from(ALPHABETS)), min_size=1, max_size=3)
    # Words of shared syllables contain and overlap one another more often than chance would have it.
    shared = st.sampled_from(draw(st.lists(syllables, min_size=1, max_size=3)))
    words = st.lists(st.one_of(shared, syllables), min_size=1, max_size=3).map("".join)
    regions = REGIONS[: draw(st.integers(1, 3))]
    stop = draw(st.lists(words, max_size=3, unique=True))
    visible = [word for word in draw(st.lists(words, max_size=2, unique=True)) if word not in stop]
    markers: Markers = {}
    for region in regions:
        given = [word for word in draw(st.lists(words, max_size=3, unique=True)) if word not in [*stop, *visible]]
        reachable = [word for word in given if not any(other in word[:-1] for other in given)]
        markers[region] = {marker: draw(st.sampled_from(regions)) for marker in reachable}
    stop_in = draw(st.none() | st.lists(st.sampled_from(regions), unique=True).map(tuple))
    begin = draw(st.none() | st.sampled_from(regions))
    return Setup(markers, tuple(stop), tuple(visible), stop_in, begin, draw(st.booleans()))
