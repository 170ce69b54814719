"""Stops that do not fire in some regions: what ``protect`` may have, and the sets that are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypedDict

from stopscan import StopSet
from stopscan.regions._names import NAMES, Graph, region_name, regions_in
from stopscan.segments import SegmentSet, keep

Protect = str | Iterable[str | Sequence[str]]

# How the name of a region ends that is between the markers of a pair.
PROTECTED = " protected"


class RegionOptions(TypedDict, total=False):
    """The options about regions: in which regions no stop fires, and whether the text begins in the first of these
    regions. ``None`` asks the prompt.
    """

    protect: Protect
    start_protected: bool | None


def protected(stops: StopSet, graph: Graph | None, protect: Protect = NAMES, /) -> StopSet:
    """Returns ``stops`` as a ``StopSet`` whose stops do not fire in the regions of ``protect`` either.

    ``protect`` has names of regions and pairs of markers. The two markers of a pair may also stand in the list one
    after the other. If a stop is a marker of a region, the stop counts, and the region is not protected. A set with
    ``regions`` of its own is returned as it is.

    Raises ``ValueError`` for a name that the graph lacks. Without ``protect`` such a name is no error.

    >>> stops = protected(StopSet("END"), FORMATS["qwen3"])
    >>> stops.truncate("<think>END</think>Yes. END")
    ('<think>END</think>Yes. ', StopMatch("END", 23))
    """
    if stops.regions is not None:
        read_protect(protect)  # for its errors
        return stops
    names, pairs = _chosen(stops, graph, protect)
    if names:
        regions, stop_in = _with_stops(stops, graph or {}, names, pairs)
        return StopSet(stops.stop, regions=regions, stop_in=stop_in, **_others(stops))
    return StopSet(stops.stop, protect=pairs, **_others(stops)) if pairs else stops


def segments_of(stops: StopSet, graph: Graph, protect: Protect = NAMES, /) -> SegmentSet:
    """Returns the segments of ``graph`` as a ``SegmentSet`` with the stops of ``stops``, which do not fire in the
    regions of ``protect`` either.

    ``protect`` and the errors are those of ``protected``. The markers of a pair stay in the text. The text between the
    two markers is a segment of its own, whose region has the name of the region around it and ``PROTECTED``.

    >>> segments = segments_of(StopSet("END"), FORMATS["qwen3"], ["reasoning", "(", ")"])
    >>> list(split(["<think>END</think>Yes (END). END"], segments))
    [('reasoning', 'END'), ('answer', 'Yes '), ('answer protected', '(END'), ('answer', '). ')]
    """
    regions, stop_in = _with_stops(stops, graph, *_chosen(stops, graph, protect))
    return SegmentSet(regions, stop=stops.stop, stop_in=stop_in, **_others(stops))


def known(graph: Graph | None, protect: Protect) -> list[Any]:
    """Returns ``protect`` without the names that the graph lacks, as for a server's default."""
    names, pairs = read_protect(protect)
    return [*(name for name in names if name in regions_in(graph or {})), *pairs]


def read_protect(protect: object, regions: Sequence[str] = NAMES, /) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the names of regions, and the pairs of markers, that ``protect`` has.

    Raises ``ValueError`` for an entry that is neither a name in ``regions`` nor a pair of markers.

    >>> read_protect(["reasoning", "<a>", "</a>"])
    (['reasoning'], [('<a>', '</a>')])
    """
    if isinstance(protect, str):
        protect = [protect]
    if not isinstance(protect, Iterable):
        raise ValueError(f"protect must be a list of regions, not {protect!r}")
    names, pairs = [], []
    items: Iterator[object] = iter(protect)
    for item in items:
        if item in regions:
            names.append(str(item))
        elif isinstance(item, list | tuple):
            if len(item) != 2:
                raise ValueError(f"protect: {item!r} is not an opening and a closing marker")
            pairs.append((_marker(item[0]), _marker(item[1])))
        else:
            closing = next(items, None)
            if closing is None:
                raise ValueError(f"protect: {item!r} is neither a name, one of {NAMES}, nor has it a closing marker")
            pairs.append((_marker(item), _marker(closing)))
    return names, pairs


def _marker(item: object) -> str:
    if not isinstance(item, str) or not item:
        raise ValueError(f"protect: {item!r} is no marker")
    return item


def _others(stops: StopSet) -> dict[str, Any]:
    """Returns the options that ``StopSet`` and ``SegmentSet`` share, but for stops and regions."""
    return {name: getattr(stops, name) for name in ("patterns", "visible", "max_held", "repeat")}


def _chosen(stops: StopSet, graph: Graph | None, protect: Protect) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the regions, and the pairs of markers, that are to be protected: those of ``stops``, too."""
    names, pairs = read_protect(protect)
    regions = regions_in(graph or {})
    if protect is NAMES:
        names = [name for name in names if name in regions]
    for name in names:
        if name not in regions:
            raise ValueError(f"protect: this model has no markers for {name!r}; name the markers instead")
    taken = {*stops.stop, *stops.visible}
    return names, [pair for pair in dict.fromkeys([*pairs, *stops.protect]) if taken.isdisjoint(pair)]


def _with_stops(
    stops: StopSet, graph: Graph, names: list[str], pairs: list[tuple[str, str]]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Returns the graph with the pairs and without the markers that are stops, and the regions where stops fire."""
    # The pair of a region that the graph has is another name of the region.
    own = {
        marker: region_name(to)
        for markers in graph.values()
        for marker, to in markers.items()
        if region_name(to) in NAMES
    }
    closed = {*names, *(own[opening] for opening, _ in pairs if opening in own)}
    taken = {*stops.stop, *stops.visible}
    spared = {region_name(region) for region, markers in graph.items() if not taken.isdisjoint(markers)}
    spared |= {region_name(to) for markers in graph.values() for mark, to in markers.items() if mark in taken}
    # What is neither is the form's own, such as Harmony's headers, and for nobody. A response template may have no name
    # for the answer: then the answer is where the text begins.
    ordered = list(dict.fromkeys(map(region_name, graph)))
    text = {"answer" if "answer" in ordered else ordered[0], *NAMES}
    stop_in = [region for region in ordered if region in (text - closed) | spared]
    regions = {
        state: {mark: to for mark, to in markers.items() if mark not in taken} for state, markers in graph.items()
    }
    inside: dict[str, dict[str, str]] = {}
    for state in [state for state in regions if region_name(state) in text]:
        for number, (opening, closing) in enumerate(pair for pair in pairs if pair[0] not in own):
            if opening not in graph[state]:
                between = f"{region_name(state)}{PROTECTED}/{number}/{state}"
                regions[state][opening] = keep(between)
                inside[between] = {closing: keep(state)}
    return regions | inside, stop_in
