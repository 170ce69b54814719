"""The stops of a point: one that comes where the point says, among others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cache
from itertools import accumulate

from stopscan_conformance._recital import pieces_text
from stopscan_conformance._space import CHARACTER_BORDERS, Point
from stopscan_conformance.corpus import BORDER, NEAR, made_scripts

NEVER = "@never@"


class Script:
    """A made script: its pieces, its text, and how many characters are known before each piece."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces = made_scripts()[name]
        self.text = pieces_text(self.pieces)
        lengths = (sum(byte & 0xC0 != 0x80 for byte in piece) for piece in self.pieces)
        self.starts = [0, *accumulate(lengths)]

    def at(self, place: int, skip: int, length: int) -> str:
        start = self.starts[min(place, len(self.pieces) - 1)] + skip
        return self.text[start : start + length] or self.text[-1]

    def token_of(self, character: int) -> int:
        return bisect_right(self.starts, character) - 1


@cache
def script(name: str) -> Script:
    return Script(name)


def stop_of(point: Point) -> str:
    """The stop that the point is about."""
    name = point.script.removeprefix("looks-")
    if name in NEAR and name != point.script:
        return NEAR[name][1]
    return NEVER if point.place is None else script(point.script).at(point.place, point.skip, point.length)


def stops_of(point: Point) -> list[str]:
    """All stops of the point, as the request lists them."""
    stop = stop_of(point)
    kind, _, number = point.among.partition("-")
    if kind == "decoys":
        return [*(f"[[{index}]]" for index in range(int(number))), stop]
    return _AMONG[point.among](stop, point)


def _before(point: Point, back: int, length: int) -> str:
    """Text that comes a little before the stop."""
    one = script(point.script)
    start = max(0, one.starts[min(point.place or 9, len(one.pieces) - 1)] - back)
    return one.text[start : start + length]


def _later(point: Point) -> str:
    return script(point.script).at((point.place or 0) + 7, 1, 9)


def _at_borders(point: Point) -> list[str]:
    """Stops that begin before a border, and do not go on behind it as the text does."""
    one = script(point.script)
    tokens = [one.starts[border] for border in range(BORDER, len(one.pieces), BORDER)][:8]
    places = [*tokens, *(border for border in CHARACTER_BORDERS if border < len(one.text))]
    return [one.text[at - 4 : at + 2] + "#" for at in places]


def _at_tokens(point: Point) -> list[str]:
    """Stops that begin in every third token, and do not go on as the text does."""
    one = script(point.script)
    return [one.text[at : at + 5] + "#" for at in one.starts[3:180:3]]


_AMONG: Mapping[str, Callable[[str, Point], list[str]]] = {
    "alone": lambda stop, point: [stop],
    "begun": lambda stop, point: [_before(point, 8, 6) + "#", _before(point, 3, 2) + "@", stop],
    "continued": lambda stop, point: [stop + "#", stop[:-1] + "@" if len(stop) > 1 else stop + "@", stop],
    "ends-another": lambda stop, point: ["#" + stop, stop + "@@", stop],
    "later-first": lambda stop, point: [_later(point), stop],
    "twice": lambda stop, point: [stop, stop],
    "nul": lambda stop, point: [_before(point, 6, 3) + "\0z", stop],
    "equal-joined": lambda stop, point: [stop[:3], stop[3:]] if len(stop) > 3 else [stop],
    "held-here": lambda stop, point: [*_at_tokens(point), stop],
    "joined-otherwise": lambda stop, point: [stop[:2], stop[2:]],
    "case-twin": lambda stop, point: [stop.swapcase(), stop],
    "held-at-borders": lambda stop, point: [*_at_borders(point), stop],
}
