"""Random stops, regions and texts that overlap, for the property tests of scanners.

The alphabets are small, so that stops nest, overlap themselves and share bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import hypothesis.strategies as st
from reference import Reference, region_of

from stopscan import Repeat, StopScanner, StopSet
from stopscan.segments import keep, stay

ALPHABETS = ["ab", "aжé🦀", "ab<>", "éèê"]


class Setup(NamedTuple):
    stop: tuple[str, ...]
    visible: tuple[str, ...] = ()
    protect: tuple[tuple[str, str], ...] = ()
    regions: dict[str, dict[str, str]] | None = None
    stop_in: tuple[str, ...] | None = None
    repeat: Repeat | None = None
    region: str | None = None
    include_stop: bool = False
    start_protected: bool = False

    @property
    def words(self) -> list[str]:
        leads = (self.regions or {}).values()
        markers = [
            *(marker for pair in self.protect for marker in pair),
            *(marker for lead in leads for marker in lead),
        ]
        return [*self.stop, *self.visible, *markers]

    @property
    def arguments(self) -> dict[str, Any]:
        names = ("visible", "protect", "regions", "stop_in", "repeat")
        return {name: getattr(self, name) for name in names}

    @property
    def options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("include_stop", "start_protected", "region")}

    def stop_set(self) -> StopSet:
        return StopSet(self.stop, **self.arguments)

    def scanner(self) -> StopScanner:
        return StopScanner(self.stop_set(), **self.options)

    def reference(self) -> Reference:
        return Reference(self.stop, **self.arguments, **self.options)


def numbers_in(drawn: bytes) -> list[int]:
    """Makes numbers from random bytes. The first byte decides how many numbers are made, and each of them takes three
    more bytes."""
    count = min(drawn[0] % (len(drawn) // 3 + 2), len(drawn) // 3)
    return [int.from_bytes(drawn[place : place + 3], "big") for place in range(1, 3 * count, 3)]


# Numbers are drawn as bytes, because hypothesis takes much longer to draw a list of integers. Strategies are made once,
# because making a strategy takes longer than running a test on one example.
NUMBERS = {most: st.binary(min_size=3 * most + 1, max_size=3 * most + 1).map(numbers_in) for most in (2, 3, 4, 8, 12)}
LETTERS = {alphabet: st.text(alphabet, min_size=4, max_size=12) for alphabet in ALPHABETS}
alphabets, coins, few = st.sampled_from(ALPHABETS), st.booleans(), st.integers(0, 7)


def word_of(letters: str, number: int) -> str:
    """Returns a word of one to three syllables, each of which is one to three letters. Words that share syllables
    contain and overlap each other more often than random words."""
    number, more = divmod(number, 3)
    word = ""
    for _ in range(more + 1):
        number, size = divmod(number, 3)
        number, begin = divmod(number, 12)
        begin %= len(letters)
        word += (letters + letters)[begin : begin + size + 1]
    return word


def words(draw: st.DrawFn, letters: str, most: int, besides: Iterable[str] = ()) -> list[str]:
    drawn = dict.fromkeys(word_of(letters, number) for number in draw(NUMBERS[most]))
    return [word for word in drawn if word not in besides]


def pick(draw: st.DrawFn, choices: Iterable[str]) -> str | None:
    """One of the choices, or `None`."""
    several = [*choices]
    return several[draw(few) % len(several)] if draw(coins) else None


def some(draw: st.DrawFn, choices: Iterable[str]) -> tuple[str, ...] | None:
    """Returns, at random, `None` or a subset of the first three `choices`. The subset may be empty, and `None` stands
    for the default."""
    chosen = draw(few)
    return tuple(choice for place, choice in enumerate(choices) if chosen >> place & 1) if draw(coins) else None


@st.composite
def setups(draw: st.DrawFn, *, hidden_only: bool = False) -> Setup:
    letters = draw(LETTERS[draw(alphabets)])
    stop = words(draw, letters, 4)
    if hidden_only:
        return Setup(tuple(stop))
    visible = words(draw, letters, 4, stop)
    setup = Setup(tuple(stop), tuple(visible), repeat=draw(repeats), include_stop=draw(coins))
    stops = [*stop, *visible]
    if draw(coins):
        regions = graphs(draw, letters, stops)
        stop_in = some(draw, dict.fromkeys(map(region_of, regions)))
        return setup._replace(regions=regions, stop_in=stop_in, region=pick(draw, regions))
    protect = tuple(zip(words(draw, letters, 3, stops), words(draw, letters, 3, stops), strict=False))
    return setup._replace(protect=protect, start_protected=draw(coins) if protect else False)


# Settings of `Repeat`. `min_length` is 32, the smallest allowed value, so that short texts can have loops.
repeats = st.none() | st.builds(Repeat, st.integers(3, 40), max_period=st.integers(1, 9), min_length=st.just(32))

STATES = ("answer", "reasoning", "tool_call", "tool_call/in reasoning")


def graphs(draw: st.DrawFn, letters: str, stops: list[str]) -> dict[str, dict[str, str]]:
    """Returns random regions with their markers. Leaves out markers that are stops, and markers that could never
    complete because they contain another marker. Some markers are given with `keep` or `stay`."""
    states = STATES[: draw(few) % len(STATES) + 1]
    graph = {}
    for state in states:
        given = words(draw, letters, 3, stops)
        reachable = [word for word in given if not any(other in word[:-1] for other in given)]
        targets = [divmod(number, len(states)) for number in draw(NUMBERS[3])]
        leads = [left(kind, state, states[to]) for kind, to in targets]
        graph[state] = dict(zip(reachable, [*leads, *states[:1] * 3], strict=False))
    return graph


def left(kind: int, state: str, to: str) -> str:
    if kind % 3 == 2 and state.partition("/")[0] == to.partition("/")[0]:
        return stay(to)
    return keep(to) if kind % 3 else to


@st.composite
def texts(draw: st.DrawFn, setup: Setup, *, longest_filler: int = 0) -> str:
    """Random texts, joined from stops, markers, beginnings of stops and markers, and single characters."""
    beginnings = sorted({word[:length] for word in setup.words for length in range(1, len(word) + 1)}) or ["a"]
    characters = sorted(set("".join(setup.words))) or ["a"]
    # Each item: pieces of text to choose from, and the maximum number of copies of the chosen piece in a row.
    kinds = [(beginnings, 1), (beginnings, 1), (characters, 1)]
    if setup.repeat:
        kinds.append(([*beginnings, "x", "xyж", *(f"{one}x{two}" for one in setup.words for two in setup.words)], 40))
    if longest_filler:
        kinds += [(["x", " ", "ж", "🦁", beginnings[0]], longest_filler)] * 2
    text = ""
    for number in draw(NUMBERS[12]):
        number, kind = divmod(number, len(kinds))
        pieces, most = kinds[kind]
        number, place = divmod(number, len(pieces))
        text += pieces[place] * (number % most + 1)
    return text


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    edges = sorted({number % (len(text) + 1) for number in draw(NUMBERS[8])})
    return [text[start:end] for start, end in zip([0, *edges], [*edges, len(text)], strict=True)]


@st.composite
def streams(draw: st.DrawFn, *, longest_filler: int = 0, hidden_only: bool = False) -> tuple[Setup, list[str]]:
    setup = draw(setups(hidden_only=hidden_only))
    return setup, draw(cut(draw(texts(setup, longest_filler=longest_filler))))
