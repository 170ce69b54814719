"""The space of requests: a point of it is a request, and the choices of points that a run takes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from stopscan_conformance.corpus import BORDER, NEAR, made_scripts


@dataclass(frozen=True)
class Point:
    """A request. Each field is a dimension, and its default is the least value.

    The stop begins in token `place` of `script`, `skip` characters after its beginning, and has `length` characters; a
    stop of None never comes. `among` are the other stops, `limit` is where the limit lies, `says` what else the request
    says, `company` how many requests there are at once, `kept` how many came before on the connection, and `after`
    what came just before.
    """

    script: str = "deep"
    place: int | None = 5
    skip: int = 0
    length: int = 6
    among: str = "alone"
    limit: str = "enough"
    says: str = "nothing"
    usage: str = "asked"
    company: int = 1
    kept: int = 0
    after: str = "nothing"
    stream: bool = False

    def __str__(self) -> str:
        least = Point()
        said = [
            name if value is True else f"{name}-{value}".replace("None", "never")
            for name, value in ((field.name, getattr(self, field.name)) for field in fields(self))
            if value != getattr(least, name) and name != "stream"
        ]
        return "+".join(said) or "least"

    def smaller(self) -> Iterator[Point]:
        """Points with one dimension nearer to the least, the boldest first."""
        least = Point()
        for field in fields(self):
            mine, default = getattr(self, field.name), getattr(least, field.name)
            if mine == default or field.name in ("script", "stream"):
                continue
            yield _with(self, field.name, default)
            if isinstance(mine, int) and isinstance(default, int) and abs(mine - default) > 1:
                yield _with(self, field.name, (mine + default) // 2)


def _with(point: Point, name: str, value: Any) -> Point:
    return replace(point, **{name: value})


PLACES = (0, 1, 5, 24, 63, 64, 100, 126, 127, 254, 255, 256, 400, 511, 512, 700, 1023, 2000, 3100)
FAR = 4200
LENGTHS = (1, 2, 3, 6, 12, 30, 60, 140, 400, 1100)
SKIPS = (0, 1, 2)
AMONG = (
    "alone",
    "decoys-3",
    "decoys-40",
    "decoys-63",
    "begun",
    "continued",
    "ends-another",
    "later-first",
    "twice",
    "nul",
    "equal-joined",
    "case-twin",
)
LIMITS = ("enough", "none", "at-the-stop", "one-after", "one-before", "within", "tight")
SAYS = (
    "nothing",
    "temperature",
    "greedy",
    "penalties",
    "seed",
    "top-p",
    "top-k",
    "logprobs",
    "response-format",
    "tools",
    "user",
    "newer-limit",
    "both-limits",
    "echo",
    "parts",
    "system",
    "system-with-the-stop",
    "turns",
    "turns-with-the-stop",
    "long-prompt",
    "prompt-begins-the-stop",
)
USAGES = ("asked", "not-asked", "false")
COMPANIES = (1, 3, 12, 40, 64)
KEPT = (0, 1, 8, 11)
AFTER = ("nothing", "left", "left-held", "refused", "broken")
DIMENSIONS: Mapping[str, Sequence[Any]] = {
    "place": (*PLACES, None),
    "skip": SKIPS,
    "length": LENGTHS,
    "among": AMONG,
    "limit": LIMITS,
    "says": SAYS,
    "usage": USAGES,
    "company": COMPANIES,
    "kept": KEPT,
    "after": AFTER,
}
CHARACTER_BORDERS = (2048, 4096, 8192, 65536)
QUICK, THOROUGH = 60, 600


def quick(seed: int, count: int = QUICK) -> list[Point]:
    """Each value of each dimension by itself, the borders, and points at random."""
    return list(dict.fromkeys([*_each_value(), *_looks(), *_borders(), *_around_reasoning(), *_random(seed, count)]))


def thorough(seed: int) -> list[Point]:
    """What `quick` has, both ways, and many more."""
    points = [replace(one, stream=stream) for one in quick(seed) for stream in (False, True)]
    return list(dict.fromkeys([*points, *_deep_borders(), *_pairs(), *_random(seed + 1, THOROUGH)]))


def _each_value() -> Iterator[Point]:
    for name, values in DIMENSIONS.items():
        for index, value in enumerate(values):
            yield _with(Point(stream=bool(index % 2)), name, value)
    for stream in (False, True):
        yield from (Point(says=says, stream=stream) for says in ("turns-with-the-stop", "system-with-the-stop"))
        yield Point(among="decoys-63", stream=stream)
        yield Point(says="newer-limit", limit="one-before", stream=stream)
        yield Point(place=3, length=12, limit="within", stream=stream)
    yield Point(place=200, length=140, stream=True)
    yield Point(script="wide-deep", place=10, length=1100, stream=True)
    yield Point(script="wide-deep", place=10, length=1100, among="begun")


def _looks() -> Iterator[Point]:
    for index, name in enumerate(NEAR):
        yield Point(script=f"looks-{name}", stream=bool(index % 2))


def _borders() -> Iterator[Point]:
    """A stop across each border, what is withheld there, and texts that end behind all of them."""
    for index, border in enumerate((BORDER, 2 * BORDER, 8 * BORDER)):
        for skip, place, length in ((0, border - 2, 12), (1, border - 1, 7)):
            yield Point(place=place, skip=skip, length=length, stream=bool((index + skip) % 2))
        yield Point(place=border - 2, length=12, among="continued", stream=True)
    for index, border in enumerate(CHARACTER_BORDERS):
        yield at_character(border - 3, 8, stream=bool(index % 2))
    yield at_character(20000, 8, stream=False)
    yield at_character(66000, 8, stream=True)
    yield Point(place=None, among="decoys-3", limit="all", stream=True)
    yield Point(script="wide-deep", place=None, among="held-at-borders", limit="all", stream=False)
    yield Point(script="deep", place=None, among="held-at-borders", limit="all", stream=True)
    yield Point(place=FAR, stream=False)


def _deep_borders() -> Iterator[Point]:
    for border in range(BORDER, 1200, BORDER):
        for skip, place, length in ((0, border - 3, 14), (0, border - 2, 10), (1, border - 1, 5)):
            for stream in (False, True):
                yield Point(place=place, skip=skip, length=length, stream=stream)
    for border in (1024, 2048, 4096, 16384, 32768, 65536):
        for before in (1, 4):
            yield at_character(border - before, 6, stream=before == 1)


def _around_reasoning() -> Iterator[Point]:
    for index, place in enumerate((59, 60, 61, 80)):  # the first tokens of the answer
        yield Point(script="thought", place=place, length=4, stream=bool(index % 2))
        yield Point(script="thought", place=place, length=1, stream=not index % 2)
    for limit in ("in-reasoning", "after-reasoning"):
        yield Point(script="thought", place=90, limit=limit, stream=limit == "in-reasoning")
        yield Point(script="thought", place=90, limit=limit, stream=limit != "in-reasoning")


def _pairs() -> Iterator[Point]:
    """Each value of one small dimension with each of another, as streams and not in turn."""
    stream = False
    names = ("among", "limit", "says", "usage", "after", "length")
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            for one in DIMENSIONS[first][1:]:
                for other in DIMENSIONS[second][1:]:
                    stream = not stream
                    yield _with(_with(Point(place=40, stream=stream), first, one), second, other)


def _random(seed: int, count: int) -> Iterator[Point]:
    """Values go round, so that each comes about as often as others of its dimension."""
    draw = random.Random(seed)
    columns: dict[str, list[Any]] = {}
    for name, values in DIMENSIONS.items():
        column = [values[index % len(values)] for index in range(count)]
        draw.shuffle(column)
        # Most requests are alone and far from the end of the text.
        rare = name in ("company", "kept", "after")
        columns[name] = [value if not rare or draw.random() < 0.25 else values[0] for value in column]
    for index in range(count):
        point = Point(**{name: column[index] for name, column in columns.items()}, stream=draw.random() < 0.6)
        if point.company > 3:
            point = replace(point, place=(point.place or 0) % 64, length=min(point.length, 30))
        yield point


def at_character(start: int, length: int, *, stream: bool) -> Point:
    """A stop of `wide-deep` that begins at this character."""
    known = 0
    for index, piece in enumerate(made_scripts()["wide-deep"]):
        if known + len(piece) > start:
            return Point(script="wide-deep", place=index, skip=start - known, length=length, stream=stream)
        known += len(piece)
    raise ValueError(f"the script has {known} characters, not {start}")


def least_failing(point: Point, fails: Callable[[Point], bool], *, tries: int = 30) -> Point:
    """The least point that still fails, of those that can be reached one dimension at a time."""
    shrinking = True
    while shrinking:
        shrinking = False
        for smaller in point.smaller():
            if tries <= 0:
                return point
            tries -= 1
            if fails(smaller):
                point, shrinking = smaller, True
                break
    return point
