"""Random sets of overlapping markers and stops, for the property tests of segmenters, and ways to join segments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

import hypothesis.strategies as st
from reference import SegmentReference, region_of
from setups import LETTERS, alphabets, coins, graphs, pick, repeats, some, words

from stopscan import Repeat
from stopscan.segments import Segment, Segmenter, SegmentSet

Markers = dict[str, dict[str, str]]


def by_region(segments: Iterable[Segment]) -> list[tuple[str, str]]:
    """Regions and texts without part numbers: neighbouring segments of one region are joined."""
    regions = groupby(segments, key=lambda segment: segment[0])
    return [(region, "".join(text for _, text, _ in run)) for region, run in regions]


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


def as_read(segments: Iterable[Segment]) -> list[tuple[str, str]]:
    """Returns the region and the text of each segment. Neighbouring segments of one region are joined, but two tool
    calls stay apart."""
    runs = groupby(segments, key=lambda segment: (segment[0], segment[2] if segment[0] == "tool_call" else None))
    return [(region, "".join(text for _, text, _ in run)) for (region, _), run in runs]


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    letters = draw(LETTERS[draw(alphabets)])
    stop = words(draw, letters, 3)
    visible = words(draw, letters, 2, stop)
    markers = graphs(draw, letters, [*stop, *visible])
    stop_in = some(draw, dict.fromkeys(map(region_of, markers)))
    begin = pick(draw, markers)
    return Setup(markers, tuple(stop), tuple(visible), stop_in, draw(repeats), begin, draw(coins))
