"""Protected regions as pairs of markers, and the names that an engine's parsers give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Pair = tuple[str, str]
Pairs = tuple[Pair, ...]

# The names are those of `stopscan.segments.FORMATS`.
NAMES = ("reasoning", "tool_call")


def regions(protect: object, named: Mapping[str, Pairs] | None = None, *, pass_over: bool = False) -> Pairs:
    """The markers of each region that ``protect`` means.

    ``protect`` is a name, or a list of names and pairs; the markers of a pair may also stand in the list one after the
    other, because some requests cannot nest. ``named`` has the regions that the engine knows. A name that the engine
    does not know is a ``ValueError``, or passed over, as in a server's default. So is what is none of this.

    >>> regions(["reasoning", "<a>", "</a>"], {"reasoning": (("<think>", "</think>"),)})
    (('<think>', '</think>'), ('<a>', '</a>'))
    """
    if isinstance(protect, str):
        protect = [protect]
    if not isinstance(protect, Iterable):
        raise ValueError(f"protect must be a list of regions, not {protect!r}")
    found: list[Pair] = []
    opening: str | None = None
    for item in protect:
        if opening is not None:
            found.append((opening, _marker(item)))
            opening = None
        elif item in NAMES:
            known = (named or {}).get(str(item))
            if known is None and not pass_over:
                raise ValueError(f"protect: this model has no markers for {item!r}; name the markers instead")
            found.extend(known or ())
        elif isinstance(item, list | tuple):
            if len(item) != 2:
                raise ValueError(f"protect: {item!r} is not an opening and a closing marker")
            found.append((_marker(item[0]), _marker(item[1])))
        else:
            opening = _marker(item)
    if opening is not None:
        raise ValueError(f"protect: {opening!r} is neither a name, one of {NAMES}, nor has it a closing marker")
    return tuple(dict.fromkeys(found))


def _marker(item: object) -> str:
    if not isinstance(item, str) or not item:
        raise ValueError(f"protect: {item!r} is no marker")
    return item
