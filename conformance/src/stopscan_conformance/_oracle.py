"""What the stops of a request make of a text: brute force, meant to be too simple to be wrong.

Rule 1: the stop that completes first wins, of several the longest. Rule 3: withheld is the longest end of the text that
begins a stop and is not all of it; a stop that has another one in it, ending before its own end, can never fire.
Nothing fires in reasoning, and nothing goes across its edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stopscan_conformance.scripts import THINKING

OPENING, CLOSING = THINKING


class Fired(NamedTuple):
    """The stop `text[start:end]`."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


class Reading(NamedTuple):
    """`fired` is the stop that ends the text, if one does. `begins[i]` is where the text begins that `text[:i]` is
    scanned from; None: its end is reasoning."""

    fired: Fired | None
    begins: list[int | None]


def read(text: str, stops: Sequence[str]) -> Reading:
    """The text, read character by character until a stop fires."""
    begin: int | None = 0
    begins: list[int | None] = [0]
    last = {end: sorted({s for s in stops if s[-1] == end}, key=len, reverse=True) for end in {s[-1] for s in stops}}
    for end in range(1, len(text) + 1):
        if begin is None:
            begin = end if text.endswith(CLOSING, 0, end) else None
        else:
            opens = text.endswith(OPENING, begin, end)
            stop = next((s for s in last.get(text[end - 1], ()) if text.endswith(s, begin, end)), "")
            if stop and not (opens and len(OPENING) > len(stop)):
                return Reading(Fired(end - len(stop), end), begins)
            begin = None if opens else begin
        begins.append(begin)
    return Reading(None, begins)


def can_fire(stops: Sequence[str]) -> list[str]:
    """The stops that have no other stop, and no opening of reasoning, in them that ends before their own end."""
    return [stop for stop in stops if not any(other in stop[:-1] for other in {*stops, OPENING} - {stop})]


def beginnings(stops: Sequence[str]) -> frozenset[str]:
    """Each text that may still become one of the stops, which all can fire."""
    return frozenset(stop[:length] for stop in stops for length in range(1, len(stop)))


def withheld(text: str, begun: frozenset[str]) -> int:
    """How many characters at the end of `text` are the longest of the beginnings. Each of them begins with a character
    that is one, too."""
    starts = (start for start, character in enumerate(text) if character in begun)
    return next((len(text) - start for start in starts if text[start:] in begun), 0)
