"""Markers, stops and texts that collide, for the properties of segmenters."""

from __future__ import annotations

from typing import Any, NamedTuple

import hypothesis.strategies as st
from reference import SegmentReference
from test_properties import ALPHABETS, graphs, region_of, repeats

from stopscan import Repeat
from stopscan.segments import Segmenter, SegmentSet

Markers = dict[str, dict[str, str]]


class Setup(NamedTuple):
    markers: Markers
    stop: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    stop_in: tuple[str, ...] | None = None
    repeat: Repeat | None = None
    region: str | None = None
    include_stop: bool = False

    @property
    def words(self) -> list[str]:
        return [*self.stop, *self.visible, *(marker for leads in self.markers.values() for marker in leads)]

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("stop", "visible", "stop_in", "repeat")}

    @property
    def options(self) -> dict[str, Any]:
        return {"region": self.region, "include_stop": self.include_stop}

    def segment_set(self) -> SegmentSet:
        return SegmentSet(self.markers, **self.arguments)

    def segmenter(self) -> Segmenter:
        return Segmenter(self.segment_set(), **self.options)

    def reference(self) -> SegmentReference:
        return SegmentReference(self.markers, **self.arguments, **self.options)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    syllables = st.text(draw(st.sampled_from(ALPHABETS)), min_size=1, max_size=3)
    # Words of shared syllables contain and overlap one another more often than chance would have it.
    shared = st.sampled_from(draw(st.lists(syllables, min_size=1, max_size=3)))
    words = st.lists(st.one_of(shared, syllables), min_size=1, max_size=3).map("".join)
    stop = draw(st.lists(words, max_size=3, unique=True))
    visible = [word for word in draw(st.lists(words, max_size=2, unique=True)) if word not in stop]
    markers = draw(graphs(words, [*stop, *visible]))
    stop_in = draw(st.none() | st.lists(st.sampled_from([*map(region_of, markers)]), unique=True).map(tuple))
    begin = draw(st.none() | st.sampled_from([*markers]))
    return Setup(markers, tuple(stop), tuple(visible), stop_in, draw(repeats), begin, draw(st.booleans()))
