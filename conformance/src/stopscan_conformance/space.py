"""The space of requests. A `Point` describes a request. Its fields are the dimensions of the space. `small`, `deep` and
`thorough` return the points (requests) that a run sends.

To add a value to a dimension, add it to `DIMENSIONS`, and define what it does: values of `among` in `_AMONG`, values of
`says` in `options.json`, and values of `company`, `kept` and `after` in `generated.py`.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import accumulate
from typing import Any

from stopscan_conformance.apis import Extras
from stopscan_conformance.oracle import pieces_text
from stopscan_conformance.scripts import BORDER, FOLDER, NEAR, made_scripts, written


@dataclass(frozen=True)
class Point:
    """A request. The defaults of the fields make the smallest request. If a request fails, `least_failing` looks for a
    smaller one that also fails, in which more fields have their defaults.

    The stop has `length` characters. It begins in the token `place` of `script`, `skip` characters after the start of
    this token. If `place` is None, the stop never comes.
    """

    script: str = "deep"
    place: int | None = 5
    skip: int = 0
    length: int = 6
    among: str = "alone"  # the other stops; "none": no stops at all; "id": a stop token in place of the stop
    limit: str = "enough"  # the limit of tokens, relative to the place of the stop
    says: str = "nothing"  # what else the request says: options, earlier turns
    usage: str = "asked"
    company: int = 1  # how many requests run at once
    kept: int = 0  # how many requests the connection has had before
    after: str = "nothing"  # what happens just before: a client leaves, a request is refused
    stream: bool = False

    def __str__(self) -> str:
        least = Point()
        parts = [
            name if value is True else f"{name}-{value}".replace("None", "never")
            for name, value in ((field.name, getattr(self, field.name)) for field in fields(self))
            if value != getattr(least, name) and name != "stream"
        ]
        return "+".join(parts) or "least"

    @property
    def longest(self) -> int:
        """About how many tokens the answer has at most. If the stop never comes, the token limit of 300 ends the
        answer. If `limit` is "all", the answer may be the whole script."""
        if self.limit == "all":
            return len(script(self.script).pieces)
        return 300 if self.place is None else self.place + self.length // 3

    def smaller(self) -> Iterator[Point]:
        """Yields smaller points (requests). Each differs from this point in one field, which has its default value. If
        the value of the field is a number, also yields a point with the number halfway to the default."""
        least = Point()
        for field in fields(self):
            value, default = getattr(self, field.name), getattr(least, field.name)
            if value == default or field.name in ("script", "stream"):
                continue
            yield _with(self, field.name, default)
            if isinstance(value, int) and isinstance(default, int) and abs(value - default) > 1:
                yield _with(self, field.name, (value + default) // 2)


def _with(point: Point, name: str, value: Any) -> Point:
    return replace(point, **{name: value})


FAR = 4200
DIMENSIONS: Mapping[str, Sequence[Any]] = {
    "place": (0, 1, 5, 24, 63, 64, 100, 126, 127, 254, 255, 256, 400, 511, 512, 700, 1023, 2000, 3100, None),
    "skip": (0, 1, 2),
    "length": (1, 2, 3, 6, 12, 30, 60, 140, 400, 1100),
    "among": ("alone", "decoys-3", "decoys-40", "decoys-63", "begun", "continued", "ends-another", "later-first",
              "twice", "nul", "equal-joined", "case-twin", "none", "id", "id-first"),
    "limit": ("enough", "none", "at-the-stop", "one-after", "one-before", "within", "tight"),
    "says": ("nothing", "temperature", "greedy", "penalties", "seed", "top-p", "top-k", "logprobs", "response-format",
             "tools", "metadata", "no-thinking", "think-not", "user", "newer-limit", "both-limits", "echo", "parts",
             "system", "system-with-the-stop", "turns", "turns-with-the-stop", "long-prompt", "long-message",
             "prompt-begins-the-stop"),
    "usage": ("asked", "not-asked", "false"),
    "company": (1, 3, 12, 40, 64),
    "kept": (0, 1, 8, 11),
    "after": ("nothing", "left", "left-held", "refused", "broken", "refused-stops"),
}  # fmt: skip
CHARACTER_BORDERS = (2048, 4096, 8192, 65536)
INSIDE = Point(script="wide-deep", place=1200, skip=5)  # a stop within one token, far into the text
RANDOM, MORE_AT_RANDOM = 60, 600
SMALL = 700  # the most tokens of an answer, except in `deep` and in four points of `small`


def small(seed: int) -> list[Point]:
    """Returns the points (requests) of a default run:

    - for each value of each field, a point with this value, unless its answer is long
    - points whose stop lies across a border, such as token 128
    - random points
    - four points with long answers: two have a stop across a large border, and two have a stop after many tokens
    """
    far = (Point(place=1022, length=12), INSIDE, at_character(65533, 8, stream=True), Point(place=FAR))
    short = [point for point in deep(seed) if point.longest <= SMALL]
    return [*far, *short]  # the long answers first, so that the short ones run beside them


def deep(seed: int, count: int = RANDOM) -> list[Point]:
    """Returns points (requests) of the same kinds as `small` does, but with any number of long answers."""
    points = [*_each_value(), *_ids(), *_looks(), *_borders(), *_around_reasoning(), *_random(seed, count)]
    return list(dict.fromkeys(points))


def thorough(seed: int) -> list[Point]:
    """Returns the points of `deep`, each as a stream and as a whole answer, and many further points."""
    points = [replace(one, stream=stream) for one in deep(seed) for stream in (False, True)]
    return list(dict.fromkeys([*points, *_deep_borders(), *_pairs(), *_random(seed + 1, MORE_AT_RANDOM)]))


def _each_value() -> Iterator[Point]:
    for name, values in DIMENSIONS.items():
        for index, value in enumerate(values):
            yield _with(Point(stream=bool(index % 2)), name, value)
    for stream in (False, True):
        yield from (Point(says=says, stream=stream) for says in ("turns-with-the-stop", "system-with-the-stop"))
        yield Point(among="decoys-63", stream=stream)
        yield Point(says="newer-limit", limit="one-before", stream=stream)
        yield Point(place=3, length=12, limit="within", stream=stream)
        # The first of the next two points has the stop in the first step after a long prompt. In the second, the stop
        # is a part of one token.
        yield Point(place=0, length=2, says="long-message", stream=stream)
        yield Point(script="wide-deep", place=300, skip=5, length=4, stream=stream)
        yield Point(place=12, after="refused-stops", stream=stream)
        yield Point(among="none", after="refused-stops", stream=stream)
    yield Point(place=200, length=140, stream=True)
    yield Point(script="wide-deep", place=10, length=1100, stream=True)
    yield Point(script="wide-deep", place=10, length=1100, among="begun")


def _ids() -> Iterator[Point]:
    """Yields points (requests) with a stop token, each with one further option or with an unusual limit of tokens."""
    for index, says in enumerate(DIMENSIONS["says"][1:]):
        yield Point(among="id", says=says, stream=bool(index % 2))
    for limit in ("at-the-stop", "one-before", "tight", "none"):
        yield Point(among="id", limit=limit)


def _looks() -> Iterator[Point]:
    for index, name in enumerate(NEAR):
        yield Point(script=f"looks-{name}", stream=bool(index % 2))


def _borders() -> Iterator[Point]:
    """Yields points (requests) in which a stop or held text lies across a border, such as token 128 or character 4096,
    and points with long texts. Servers that process text in blocks may miss a stop across a border."""
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
    yield INSIDE


def _deep_borders() -> Iterator[Point]:
    for border in range(BORDER, 1200, BORDER):
        for skip, place, length in ((0, border - 3, 14), (0, border - 2, 10), (1, border - 1, 5)):
            for stream in (False, True):
                yield Point(place=place, skip=skip, length=length, stream=stream)
    for border in (1024, 2048, 4096, 16384, 32768, 65536):
        for before in (1, 4):
            yield at_character(border - before, 6, stream=before == 1)


def _around_reasoning() -> Iterator[Point]:
    # The stop begins in one of the first three tokens after the reasoning, or in a later one.
    for index, place in enumerate((59, 60, 61, 80)):
        yield Point(script="thought", place=place, length=4, stream=bool(index % 2))
        yield Point(script="thought", place=place, length=1, stream=not index % 2)
    for limit in ("in-reasoning", "after-reasoning"):
        yield Point(script="thought", place=90, limit=limit, stream=limit == "in-reasoning")
        yield Point(script="thought", place=90, limit=limit, stream=limit != "in-reasoning")


def _pairs() -> Iterator[Point]:
    """Yields points (requests) for every two fields of `names`: one for each combination of the values of these two
    fields. The first value of each field is left out. Every second point is a stream."""
    stream = False
    names = ("among", "limit", "says", "usage", "after", "length")
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            for one in DIMENSIONS[first][1:]:
                for other in DIMENSIONS[second][1:]:
                    stream = not stream
                    yield _with(_with(Point(place=40, stream=stream), first, one), second, other)


def _random(seed: int, count: int) -> Iterator[Point]:
    """Yields `count` random points (requests). The values of most fields are drawn by shuffling, so that each value is
    used about equally often."""
    draw = random.Random(seed)
    columns: dict[str, list[Any]] = {}
    for name, values in DIMENSIONS.items():
        column = [values[index % len(values)] for index in range(count)]
        draw.shuffle(column)
        # Most requests have no other requests beside them or just before them.
        rare = name in ("company", "kept", "after")
        columns[name] = [value if not rare or draw.random() < 0.25 else values[0] for value in column]
    for index in range(count):
        point = Point(**{name: column[index] for name, column in columns.items()}, stream=draw.random() < 0.6)
        if point.company > 3:
            point = replace(point, place=(point.place or 0) % 64, length=min(point.length, 30))
        yield point


def at_character(start: int, length: int, *, stream: bool) -> Point:
    """Returns the point (request) whose stop begins at the character `start` of the text named `wide-deep`."""
    known = 0
    for index, piece in enumerate(made_scripts()["wide-deep"]):
        if known + len(piece) > start:
            return Point(script="wide-deep", place=index, skip=start - known, length=length, stream=stream)
        known += len(piece)
    raise ValueError(f"character {start} is after the end of the script, which has {known} characters")


def least_failing(point: Point, fails: Callable[[Point], bool], *, tries: int = 30) -> Point:
    """Makes a failing point (request) smaller, one field at a time, and returns the smallest point that still fails.
    Calls `fails` at most `tries` times, to find out whether a smaller point fails."""
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


# The functions below make the stops of a point (request). The main stop is the text at `Point.place` in the script. If
# `Point.place` is None, it is `NEVER`. `Point.among` says which further stops the request has.
NEVER = "@never@"


class Script:
    """A script of `made_scripts`: its pieces, its text, and the number of characters before each piece."""

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
    """Returns the main stop of a point (request). It is the text of the script at `point.place`. If `point.place` is
    None, the stop is `NEVER`. Each script named `looks-...` has a fixed stop instead."""
    name = point.script.removeprefix("looks-")
    if name in NEAR and name != point.script:
        return NEAR[name][1]
    return NEVER if point.place is None else script(point.script).at(point.place, point.skip, point.length)


def stops_of(point: Point) -> list[str]:
    """Returns all stop strings of the point (request) in the order in which they are sent, without the stop token."""
    stop = stop_of(point)
    kind, _, number = point.among.partition("-")
    if kind == "decoys":
        return [*(f"[[{index}]]" for index in range(int(number))), stop]
    return _AMONG[point.among](stop, point)


def _before(point: Point, back: int, length: int) -> str:
    """Returns a text from the script that begins `back` characters before the token in which the stop begins."""
    one = script(point.script)
    start = max(0, one.starts[min(point.place or 9, len(one.pieces) - 1)] - back)
    return one.text[start : start + length]


def _later(point: Point) -> str:
    return script(point.script).at((point.place or 0) + 7, 1, 9)


def _at_borders(point: Point) -> list[str]:
    """Returns stops that never come, but at which a server must hold text. Each stop is the six characters around a
    border of the text, and then a "#". The borders are every 128th token, up to eight of them, and the offsets in
    `CHARACTER_BORDERS`."""
    one = script(point.script)
    tokens = [one.starts[border] for border in range(BORDER, len(one.pieces), BORDER)][:8]
    places = [*tokens, *(border for border in CHARACTER_BORDERS if border < len(one.text))]
    return [one.text[at - 4 : at + 2] + "#" for at in places]


def _at_tokens(point: Point) -> list[str]:
    """Returns stops that never come, but at which a server must hold text. Each stop is five characters of the text,
    and then a "#". The five characters begin at a token. There is a stop for every third token."""
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
    "none": lambda stop, point: [],
    "id": lambda stop, point: [],
    "id-first": lambda stop, point: [_later(point)],
}


def stop_pieces_of(point: Point) -> tuple[int, ...]:
    """Returns the indexes of the pieces that are stop tokens of the point (request): one index or none."""
    return (point.place or 0,) if point.among in ("id", "id-first") else ()


# Pairs of requests that differ in only one field. A server that caches or merges requests, and ignores this field,
# gives one of them the answer of the other.
PAIRS: Mapping[str, tuple[Point, Point]] = {
    "with-and-without-stops": (Point(), Point(among="none")),
    "with-and-without-stops-greedy": (Point(says="greedy"), Point(among="none", says="greedy")),
    "another-stop": (Point(), Point(place=12)),
    "another-stop-greedy": (Point(says="greedy"), Point(place=12, says="greedy")),
    "one-more-stop": (Point(among="later-first"), Point(place=12, skip=1, length=9)),
    "one-more-id": (Point(among="id-first"), Point(place=12, skip=1, length=9)),
    "another-id": (Point(among="id"), Point(place=12, among="id")),
    "another-limit": (Point(place=40), Point(place=40, limit="tight")),
    "no-limit": (Point(limit="tight"), Point(limit="none")),
    "as-a-stream-and-whole": (Point(place=30), Point(place=30, stream=True)),
}


# The other options of a request.
CHATS = ("openai-chat", "anthropic", "ollama-chat")
LONG_PROMPT = "Here is what was said before, and it is long. " * 60
# What each value of `Point.says` adds to a request. The value has a list of entries, and the first entry for the
# request's API is used. An entry with the key `apis` is only for these APIs. An entry without it is for all APIs.
OPTIONS: Mapping[str, list[dict[str, Any]]] = written(FOLDER / "options.json")


def extras(says: str, api: str, stop: str = "") -> Extras | None:
    """Returns what the value `says` adds to a request of `api`, or None if the API has no field for it."""
    if says in OPTIONS:
        words = next((one for one in OPTIONS[says] if api in one.get("apis", [api])), None)
        fields = ("options", "limits", "parts")
        return None if words is None else Extras(**{name: words[name] for name in fields if name in words})
    if says == "long-message":
        return Extras(prefix=LONG_PROMPT)
    turns = _turns(says, stop)
    if not turns:
        return Extras()
    return Extras(before=turns) if api in CHATS or says == "long-prompt" else None


def _turns(says: str, stop: str) -> tuple[tuple[str, str], ...]:
    earlier = f"You asked for {stop} and here it is." if says.endswith("with-the-stop") else "Yes, gladly."
    if says.startswith("system"):
        return (("system", earlier),)
    if says.startswith("turns"):
        return ("user", "Do you know it?"), ("assistant", earlier)
    return (("user", LONG_PROMPT), ("assistant", "I see.")) if says == "long-prompt" else ()
