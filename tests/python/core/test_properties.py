"""What holds for every set of stops and every text: the scanner against the reference, and against itself.

The alphabets are small, so that stops nest, overlap themselves and share bytes. The long texts put filler between such
words, because the scanner may skip through a long delta in another way than it steps through a short one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import combinations
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from reference import Match, Reference, region_of

from stopscan import Repeat, StopMatch, StopScanner, StopSet, ascan, scan, truncate
from stopscan.segments import keep

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


@st.composite
def setups(draw: st.DrawFn, *, hidden_only: bool = False) -> Setup:
    syllables = st.text(draw(st.sampled_from(ALPHABETS)), min_size=1, max_size=3)
    # Words of shared syllables contain and overlap one another more often than chance would have it.
    shared = st.sampled_from(draw(st.lists(syllables, min_size=1, max_size=3)))
    words = st.lists(st.one_of(shared, syllables), min_size=1, max_size=3).map("".join)
    several = st.lists(words, max_size=4, unique=True)
    stop = draw(several)
    if hidden_only:
        return Setup(tuple(stop))
    visible = [word for word in draw(several) if word not in stop]
    setup = Setup(tuple(stop), tuple(visible), repeat=draw(repeats), include_stop=draw(st.booleans()))
    if draw(st.booleans()):
        regions = draw(graphs(words, [*stop, *visible]))
        stop_in = draw(st.none() | st.lists(st.sampled_from([*map(region_of, regions)]), unique=True).map(tuple))
        return setup._replace(regions=regions, stop_in=stop_in, region=draw(st.none() | st.sampled_from([*regions])))
    marker = words.filter(lambda word: word not in stop and word not in visible)
    protect = draw(st.lists(st.tuples(marker, marker), max_size=2, unique_by=lambda pair: pair[0]))
    return setup._replace(protect=tuple(protect), start_protected=draw(st.booleans()) if protect else False)


# Loops of the least length that is allowed: the texts here have as many characters of one word only by design.
repeats = st.none() | st.builds(Repeat, st.integers(3, 40), max_period=st.integers(1, 9), min_length=st.just(32))

STATES = ("answer", "reasoning", "tool_call", "tool_call/in reasoning")


@st.composite
def graphs(draw: st.DrawFn, words: st.SearchStrategy[str], stops: list[str]) -> dict[str, dict[str, str]]:
    """States of regions, with markers that can be reached and are no stops; some stay in the text."""
    states = STATES[: draw(st.integers(1, len(STATES)))]
    targets = st.sampled_from(states) | st.sampled_from(states).map(keep)
    graph = {}
    for state in states:
        given = [word for word in draw(st.lists(words, max_size=3, unique=True)) if word not in stops]
        reachable = [word for word in given if not any(other in word[:-1] for other in given)]
        graph[state] = {marker: draw(targets) for marker in reachable}
    return graph


@st.composite
def texts(draw: st.DrawFn, setup: Setup, *, longest_filler: int = 0) -> str:
    """The text is put together from what matters to the setup: its words, their beginnings, their characters."""
    beginnings = sorted({word[:length] for word in setup.words for length in range(1, len(word) + 1)}) or ["a"]
    pieces = [st.sampled_from(beginnings), st.sampled_from(sorted(set("".join(setup.words))) or ["a"])]
    if setup.repeat:
        pieces.append(st.builds(str.__mul__, st.sampled_from([*beginnings, "x", "xyж"]), st.integers(1, 40)))
    if longest_filler:
        filler = st.builds(
            str.__mul__, st.sampled_from(["x", " ", "ж", "🦁", beginnings[0]]), st.integers(1, longest_filler)
        )
        pieces += [filler, filler]
    return "".join(draw(st.lists(st.one_of(pieces), max_size=12)))


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    return [text[start:end] for start, end in zip([0, *edges], [*edges, len(text)], strict=True)]


@st.composite
def streams(draw: st.DrawFn, *, longest_filler: int = 0, hidden_only: bool = False) -> tuple[Setup, list[str]]:
    setup = draw(setups(hidden_only=hidden_only))
    return setup, draw(cut(draw(texts(setup, longest_filler=longest_filler))))


either_length = pytest.mark.parametrize("longest_filler", [0, 700], ids=["short", "long"])


def same(found: StopMatch | None, expected: Match | None) -> bool:
    return (found and (found.sequence, found.offset, found.end, found.period)) == expected


def expected_output(setup: Setup, text: str) -> tuple[str, Match | None]:
    reference = setup.reference()
    return reference.feed(text) + reference.flush(), reference.match


@either_length
@settings(max_examples=400)
@given(data=st.data())
def test_every_step_agrees_with_the_reference(longest_filler: int, data: st.DataObject) -> None:
    setup, deltas = data.draw(streams(longest_filler=longest_filler))
    armed = data.draw(st.lists(st.booleans(), min_size=len(deltas), max_size=len(deltas)))
    scanner, reference = setup.scanner(), setup.reference()
    for delta, stops_count in zip(deltas, armed, strict=True):
        held_before = scanner.held
        out = scanner.feed(delta, armed=stops_count)
        assert out == reference.feed(delta, armed=stops_count)
        assert (scanner.held, scanner.unused) == (reference.held, reference.unused)
        assert same(scanner.match, reference.match)
        if scanner.match is None and not held_before and not scanner.held:
            assert out is delta
    assert scanner.flush() == reference.flush()


@settings(max_examples=150)
@given(data=st.data())
def test_every_chunking_gives_one_answer(data: st.DataObject) -> None:
    setup = data.draw(setups())
    text = data.draw(texts(setup))[:7]
    cuts = [edges for count in range(len(text)) for edges in combinations(range(1, len(text)), count)]
    answers = set()
    for edges in cuts:
        scanner = setup.scanner()
        pieces = [text[start:end] for start, end in zip((0, *edges), (*edges, len(text)), strict=True)]
        answers.add(("".join(map(scanner.feed, pieces)), scanner.held, scanner.match, scanner.flush()))
    assert len(answers) <= 1


@either_length
@settings(max_examples=150)
@given(data=st.data())
def test_character_by_character_equals_all_at_once(longest_filler: int, data: st.DataObject) -> None:
    setup, deltas = data.draw(streams(longest_filler=longest_filler))
    text = "".join(deltas)
    answers = []
    for pieces in (text, deltas, [text]):
        scanner = setup.scanner()
        answers.append(("".join(map(scanner.feed, pieces)), scanner.held, scanner.match))
    assert answers[0] == answers[1] == answers[2]


@either_length
@settings(max_examples=200)
@given(data=st.data())
def test_nothing_is_lost(longest_filler: int, data: st.DataObject) -> None:
    setup, deltas = data.draw(streams(longest_filler=longest_filler))
    scanner, text = setup.scanner(), "".join(deltas)
    fed = out = unused = ""
    for delta in deltas:
        unused += delta if scanner.match else ""
        out += scanner.feed(delta)
        fed += delta
        if scanner.match is None:
            assert out + scanner.held == fed
    out += scanner.flush()
    match = scanner.match
    if match is None:
        assert (out, scanner.unused) == (text, "")
    else:
        assert text[match.offset : match.end] == match.sequence
        stays = setup.include_stop or match.period or match.sequence in setup.visible
        assert out == text[: match.end if stays else match.offset]
        assert text[match.end :] == scanner.unused + unused


@settings(max_examples=300)
@given(streams(hidden_only=True))
@example((Setup(("abcd", "bc")), ["ab"]))
@example((Setup(("ab",)), ["aaaa"]))
def test_what_is_held_could_still_be_taken_out_whole(stream: tuple[Setup, list[str]]) -> None:
    """The other half of the minimum, that too little was held, is what `test_nothing_is_lost` would see."""
    setup, deltas = stream
    scanner, sent = setup.scanner(), 0
    for delta in deltas:
        sent += len(scanner.feed(delta))
        if held := scanner.held:
            matches = []
            for stop in setup.stop:
                if stop.startswith(held):
                    future = scanner.copy()
                    future.feed(stop[len(held) :])
                    matches.append(future.match)
            assert sent in [match.offset for match in matches if match]


async def asynchronously(deltas: Iterable[str]) -> AsyncIterator[str]:
    for delta in deltas:
        yield delta


@either_length
@settings(max_examples=150)
@given(data=st.data())
def test_all_the_ways_in_agree(longest_filler: int, data: st.DataObject) -> None:
    setup, deltas = data.draw(streams(longest_filler=longest_filler))
    text = "".join(deltas)
    stops = setup.stop_set()
    expected, match = expected_output(setup, text)

    found = stops.find(text, start_protected=setup.start_protected, region=setup.region)
    assert same(found, match)
    one_copy = match is not None and match.period is not None and not setup.include_stop
    cut_text = text[: match.offset + match.period] if one_copy else expected
    assert stops.truncate(text, **setup.options) == (cut_text, found)
    assert truncate(text, stops, **setup.options) == (cut_text, found)

    stream = scan(deltas, stops, **setup.options)
    pieces = list(stream)
    assert ("".join(pieces), stream.match, stream.held) == (expected, found, "")
    assert all(pieces)

    async def collect() -> list[str]:
        return [piece async for piece in astream]

    astream = ascan(asynchronously(deltas), stops, **setup.options)
    assert asyncio.run(collect()) == pieces
    assert (astream.match, astream.held, astream.unused) == (found, "", stream.unused)


@settings(max_examples=150)
@given(setups(), st.randoms(use_true_random=False))
def test_list_order_does_not_matter(setup: Setup, random: object) -> None:
    shuffled = [list(setup.stop), list(setup.visible)]
    for stops in shuffled:
        random.shuffle(stops)  # type: ignore[attr-defined]
    text = "".join(setup.words[::-1] + setup.words)
    other = StopSet(shuffled[0], **{**setup.arguments, "visible": shuffled[1]})
    assert setup.stop_set().find(text) == other.find(text)


@settings(max_examples=100)
@given(st.lists(st.text(max_size=300), max_size=8), st.sampled_from([None, (), []]))
def test_no_stops_pass_the_very_objects_through(deltas: list[str], stop: object) -> None:
    scanner = StopScanner(stop)  # type: ignore[arg-type]
    assert all(scanner.feed(delta) is delta for delta in deltas)
    assert (scanner.flush(), scanner.held, scanner.match, scanner.unused) == ("", "", None, "")
