"""Properties that hold for all stops and texts. Compares the scanner with the reference and with itself.

The long texts have filler between the words, because the scanner may read long and short deltas with different code.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from reference import Match
from setups import Setup, setups, streams, texts

from stopscan import StopMatch, StopScanner, StopSet, ascan, scan, truncate

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
    """The scanner must not hold too much text. If it held too little, `test_nothing_is_lost` would fail."""
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
