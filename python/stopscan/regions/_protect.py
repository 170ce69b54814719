"""Reads the option ``protect``, and makes sets whose stops do not fire in the protected regions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypedDict

from stopscan import StopSet
from stopscan.regions._names import NAMES, Graph, edges_of, readable_in, region_name, region_names
from stopscan.segments import SegmentSet, keep

Protect = str | Iterable[str | Sequence[str]]

# The text between the two markers of a pair becomes a separate region. Its name is the name of the region around it,
# with this suffix: "answer protected".
PROTECTED = " protected"


class RegionOptions(TypedDict, total=False):
    """The options about regions: the regions in which no stop fires, and whether the text begins in the first of
    these regions.

    With ``start_protected=None`` the end of the prompt decides.
    """

    protect: Protect
    start_protected: bool | None


def protected(stops: StopSet, graph: Graph | None, protect: Protect = NAMES, /) -> StopSet:
    """Returns a ``StopSet`` like ``stops``, but no stop fires in the regions of ``protect``.

    ``protect`` has names of regions and pairs of markers. A pair is a tuple, a list, or two consecutive strings. If a
    marker of a region is also a stop, it stays a stop, and the region is not protected. A set that already has
    ``regions`` is returned unchanged.

    Raises ``ValueError`` for a name that the graph lacks. If ``protect`` is the default, a name that the graph lacks is
    ignored.

    >>> stops = protected(StopSet("END"), FORMATS["qwen3"])
    >>> stops.truncate("<think>END</think>Yes. END")
    ('<think>END</think>Yes. ', StopMatch('END', 23))
    """
    if stops.regions is not None:
        read_protect(protect)  # raises `ValueError` for malformed entries
        return stops
    names, pairs = _names_and_pairs(stops, graph, protect)
    if names:
        regions, stop_in = _regions_and_stop_in(stops, graph or {}, names, pairs)
        return StopSet(stops.stop, regions=regions, stop_in=stop_in, **_shared_options(stops))
    return StopSet(stops.stop, protect=pairs, **_shared_options(stops)) if pairs else stops


def segments_of(stops: StopSet, graph: Graph, protect: Protect = NAMES, /) -> SegmentSet:
    """Returns a ``SegmentSet`` of ``graph`` and ``stops``. Its stops do not fire in the regions of ``protect``.

    ``protect`` and the errors are the same as in ``protected``. The text between the markers of a pair becomes a
    separate segment. The markers stay in the text: this segment begins with the opening marker, and the next segment
    with the closing marker. Inside the answer, the separate segment has the region ``answer protected``.

    >>> segments = segments_of(StopSet("END"), FORMATS["qwen3"], ["reasoning", "(", ")"])
    >>> list(split(["<think>END</think>Yes (END). END"], segments))
    [('reasoning', 'END', 1), ('answer', 'Yes ', 2), ('answer protected', '(END', 3), ('answer', '). ', 4)]
    """
    regions, stop_in = _regions_and_stop_in(stops, graph, *_names_and_pairs(stops, graph, protect))
    return SegmentSet(regions, stop=stops.stop, stop_in=stop_in, **_shared_options(stops))


def regions_in(graph: Graph | None, protect: Protect) -> list[Any]:
    """Returns ``protect`` without the names that the graph lacks. A server's default may name regions that a model does
    not have."""
    (names, pairs), regions = read_protect(protect), region_names(graph or {})
    return [*(name for name in names if name in regions), *pairs]


def read_protect(protect: object, regions: Sequence[str] = NAMES, /) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the names of regions in ``protect``, and its pairs of markers.

    Raises ``ValueError`` for an entry that is neither a name in ``regions`` nor a pair of markers.

    >>> read_protect(["reasoning", "<a>", "</a>"])
    (['reasoning'], [('<a>', '</a>')])
    """
    if isinstance(protect, str):
        protect = [protect]
    if not isinstance(protect, Iterable):
        raise ValueError(f"protect must be a list of names of regions or pairs of markers, not {protect!r}")
    names, pairs = [], []
    items: Iterator[object] = iter(protect)
    for item in items:
        if item in regions:
            names.append(str(item))
        elif isinstance(item, list | tuple):
            if len(item) != 2:
                raise ValueError(f"protect: {item!r} is not a pair of an opening and a closing marker")
            pairs.append((_checked_marker(item[0]), _checked_marker(item[1])))
        else:
            closing = next(items, None)
            if closing is None:
                known_names = ", ".join(regions)
                raise ValueError(f"protect: {item!r} is not a region ({known_names}), and no closing marker follows it")
            pairs.append((_checked_marker(item), _checked_marker(closing)))
    return names, pairs


def _checked_marker(item: object) -> str:
    if not isinstance(item, str) or not item:
        raise ValueError(f"protect: {item!r} is not a marker")
    return item


def _shared_options(stops: StopSet) -> dict[str, Any]:
    """Returns the options of ``stops``, except ``stop`` and those about regions, as arguments of a new set."""
    return {name: getattr(stops, name) for name in ("patterns", "visible", "visible_patterns", "max_held", "repeat")}


def _names_and_pairs(stops: StopSet, graph: Graph | None, protect: Protect) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the names of the regions to protect, and the pairs of markers to protect. Adds the pairs that ``stops``
    already protects. Leaves out each pair with a marker that is a stop.

    Raises ``ValueError`` for an opening marker with two closing markers.
    """
    names, pairs = read_protect(protect)
    regions = region_names(graph or {})
    if protect is NAMES:
        names = [name for name in names if name in regions]
    for name in names:
        if name not in regions:
            raise ValueError(f"protect: this model has no markers for {name!r}; name the markers instead")
    if pairs := [*pairs, *stops.protect]:
        taken = {*stops.stop, *stops.visible}
        pairs = [pair for pair in StopSet(protect=pairs).protect if taken.isdisjoint(pair)]
    return names, pairs


def _regions_and_stop_in(
    stops: StopSet, graph: Graph, names: list[str], pairs: list[tuple[str, str]]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Returns the regions of the new set, and the names of the regions in which its stops fire.

    The new set has the regions of ``graph``, without the markers that are stops, and a region for the text between the
    markers of each pair.
    """
    edges, taken, readable = edges_of(graph), {*stops.stop, *stops.visible}, readable_in(graph)
    # If the opening marker of a pair also opens a region of the graph, protect this region instead of the pair.
    opened_by = {marker: to for _, marker, to in edges if to in NAMES}
    closed = {*names, *(opened_by[opening] for opening, _ in pairs if opening in opened_by)}
    # A region is not protected if one of its markers is a stop.
    unprotected = {region for start, marker, to in edges if marker in taken for region in (start, to)}
    # No stop fires in markup.
    stop_in = [region for region in region_names(graph) if region in (readable - closed) | unprotected]
    regions = {
        state: {marker: to for marker, to in markers.items() if marker not in taken} for state, markers in graph.items()
    }
    between_pairs: dict[str, dict[str, str]] = {}
    for state in [state for state in regions if region_name(state) in readable]:
        for number, (opening, closing) in enumerate(pair for pair in pairs if pair[0] not in opened_by):
            if opening not in graph[state]:
                between = f"{region_name(state)}{PROTECTED}/{number}/{state}"
                regions[state][opening] = keep(between)
                between_pairs[between] = {closing: keep(state)}
    return regions | between_pairs, stop_in
