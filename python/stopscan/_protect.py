"""What the adapters and servers do about protected regions: one policy, with one set of names.

``protect`` says which regions no stop fires in: pairs of markers, or the names of regions that the engine knows the
markers of. ``start_protected`` says whether the answer begins in the first of them; ``None`` asks the prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from stopscan._stopscan import SegmentSet, StopSet

Region = tuple[str, str]
Regions = tuple[Region, ...]

# The names of the regions that engines know.
Name = Literal["reasoning", "tool_calls"]
NAMES: tuple[Name, ...] = ("reasoning", "tool_calls")

Protect = Name | Iterable[Name | str | Sequence[str]]

# How many of a prompt's last tokens are looked at: chat templates end with the marker and line breaks.
PROMPT_TOKENS = 32


def regions(protect: object, named: Mapping[str, Regions] | None = None) -> Regions:
    """The markers of each region that ``protect`` means.

    ``protect`` is a name, or a list of names and pairs; the two markers of a pair may also stand in the list one after
    the other, because some requests cannot nest. ``named`` has the regions that the engine knows; without it, no name
    is known. Raises ``ValueError`` for what is none of this.

    >>> regions(["reasoning", "<a>", "</a>"], {"reasoning": (("<think>", "</think>"),)})
    (('<think>', '</think>'), ('<a>', '</a>'))
    """
    if isinstance(protect, str):
        protect = [protect]
    if not isinstance(protect, Iterable):
        raise ValueError(f"protect must be a list of regions, not {protect!r}")
    found: list[Region] = []
    opening: str | None = None
    for item in protect:
        if opening is not None:
            found.append((opening, _marker(item)))
            opening = None
        elif item in NAMES:
            found.extend(_known(str(item), named))
        elif isinstance(item, list | tuple):
            found.append(_pair(item))
        else:
            opening = _marker(item)
    if opening is not None:
        raise ValueError(f"protect: {opening!r} is neither a name, one of {NAMES}, nor has it a closing marker")
    return tuple(dict.fromkeys(found))


def protected(stops: StopSet, protect: Regions, prompt_end: str, start_protected: bool | None) -> tuple[StopSet, bool]:
    """``stops`` that do not fire in ``protect`` either, and whether the answer begins inside the set's first region.

    A stop that equals a marker wins: that region is not protected. Only the prompt's end opens a region, where chat
    templates put the marker: a user who writes about markers must not take the operator's stops away.

    >>> stops, inside = protected(StopSet("END"), (("<think>", "</think>"),), "<|assistant|><think>\\n", None)
    >>> inside
    True
    """
    taken = {*stops.stop, *stops.visible}
    pairs = [pair for pair in dict.fromkeys([*protect, *stops.protect]) if taken.isdisjoint(pair)]
    opened = next((pair for pair in pairs if prompt_end.rstrip().endswith(pair[0])), None)
    if start_protected is None:
        start_protected = opened is not None
    # The first region is the one that `start_protected` begins in.
    pairs.sort(key=lambda pair: pair != opened)
    outside = StopSet(
        stops.stop, patterns=stops.patterns, visible=stops.visible, protect=pairs, max_held=stops.max_held
    )
    return outside, start_protected


def begins_in(segments: SegmentSet, prompt_end: str) -> str:
    """The region in which an answer begins. As in `protected`, only a marker at the prompt's end opens one.

    >>> begins_in(SegmentSet(FORMATS["think"]), "<|assistant|><think>\\n")
    'reasoning'
    """
    first = segments.regions[0]
    ends = (prompt_end, prompt_end.rstrip())
    markers = [marker for marker in segments.markers[first] if any(end.endswith(marker) for end in ends)]
    return segments.region_after(max(markers, key=len)) if markers else first


def _known(name: str, named: Mapping[str, Regions] | None) -> Regions:
    if named is None or name not in named:
        raise ValueError(f"protect: this model has no markers for {name!r}; name the markers instead")
    return named[name]


def _pair(item: Sequence[object]) -> Region:
    if len(item) != 2:
        raise ValueError(f"protect: {item!r} is not an opening and a closing marker")
    return _marker(item[0]), _marker(item[1])


def _marker(item: object) -> str:
    if not isinstance(item, str) or not item:
        raise ValueError(f"protect: {item!r} is no marker")
    return item
