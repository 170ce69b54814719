"""Copies and unpickled objects behave like the original, and do not change it or each other."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import AsyncIterator, Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from setups import Setup, setups, streams, texts
from test_properties import same

from stopscan import StopMatch, StopScanner, StopSet, ascan, scan
from stopscan.segments import SegmentSet, asplit, split

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
STOPS = StopSet(["END", "é🦀"], visible=["."], protect=[("<think>", "</think>"), ("`", "`")])

Duplicate = Callable[[Any], Any]


def pickled(protocol: int) -> Duplicate:
    return lambda thing: pickle.loads(pickle.dumps(thing, protocol))


COPIES: dict[str, Duplicate] = {"copy.copy": copy.copy, "copy.deepcopy": copy.deepcopy}
PICKLES: dict[str, Duplicate] = {f"pickle {protocol}": pickled(protocol) for protocol in PROTOCOLS}
every_way = pytest.mark.parametrize("duplicate", [*COPIES.values(), *PICKLES.values()], ids=[*COPIES, *PICKLES])
every_scanner_way = pytest.mark.parametrize(
    "duplicate", [StopScanner.copy, *COPIES.values(), *PICKLES.values()], ids=["copy", *COPIES, *PICKLES]
)


@every_way
def test_sets(duplicate: Duplicate) -> None:
    twin = duplicate(STOPS)
    assert twin == STOPS
    assert hash(twin) == hash(STOPS)
    assert (twin.stop, twin.visible, twin.protect) == (STOPS.stop, STOPS.visible, STOPS.protect)
    assert twin.find("<think>END</think>é🦀") == StopMatch("é🦀", 18)


def test_a_copied_set_is_the_set_itself() -> None:
    assert copy.copy(STOPS) is copy.deepcopy(STOPS) is STOPS


@every_way
def test_matches(duplicate: Duplicate) -> None:
    match = StopMatch("é🦀", 26)
    twin = duplicate(match)
    assert (twin, hash(twin), twin.end) == (match, hash(match), 28)


@every_scanner_way
@pytest.mark.parametrize(
    ("before", "after", "out", "match"),
    [
        ("", "a END", "a ", StopMatch("END", 2)),
        ("a EN", "D b", "", StopMatch("END", 2)),
        ("a EN", "x", "ENx", None),
        ("é", "🦀", "", StopMatch("é🦀", 0)),
        ("<think>END", "END</think>END", "END</think>", StopMatch("END", 21)),
        ("<thi", "nk>END", "nk>END", None),
        ("<think></thi", "nk>END", "nk>", StopMatch("END", 15)),
        ("`END", "</think>END`END", "</think>END`", StopMatch("END", 16)),
        ("a END b", "more", "", StopMatch("END", 2)),
        ("a.b", "more", "", StopMatch(".", 1)),
    ],
)
def test_scanners_go_on(duplicate: Duplicate, before: str, after: str, out: str, match: StopMatch | None) -> None:
    scanner = StopScanner(STOPS)
    scanner.feed(before)
    twin = duplicate(scanner)
    assert (twin.held, twin.match, twin.unused) == (scanner.held, scanner.match, scanner.unused)
    assert (twin.feed(after), twin.match) == (out, match)
    assert (scanner.feed(after), scanner.match) == (out, match)


@every_scanner_way
def test_options_go_along(duplicate: Duplicate) -> None:
    scanner = StopScanner(STOPS, include_stop=True, start_protected=True)
    scanner.feed("</think>a EN")
    twin = duplicate(scanner)
    assert (twin.feed("D"), twin.match) == ("D", StopMatch("END", 10))
    twin.reset()
    assert twin.feed("END</think>END.") == "END</think>END"


@every_scanner_way
def test_unarmed_and_bypassed_text_goes_along(duplicate: Duplicate) -> None:
    scanner = StopScanner("END")
    scanner.bypass("END ")
    scanner.feed("END EN", armed=False)
    twin = duplicate(scanner)
    assert (twin.held, twin.feed("D"), twin.match) == ("EN", "", StopMatch("END", 8))


@every_scanner_way
def test_neither_feels_what_the_other_is_fed(duplicate: Duplicate) -> None:
    scanner = StopScanner("END")
    scanner.feed("a E")
    twin = duplicate(scanner)
    twin.feed("ND")
    assert (scanner.held, scanner.match) == ("E", None)
    scanner.feed("x")
    assert (twin.match, twin.unused) == (StopMatch("END", 2), "")
    twin.reset()
    assert (scanner.feed("END"), scanner.match) == ("", StopMatch("END", 4))


@pytest.mark.parametrize("duplicate", [StopScanner.copy, *COPIES.values()], ids=["copy", *COPIES])
def test_copies_share_the_set(duplicate: Duplicate) -> None:
    scanner = StopScanner(STOPS)
    assert duplicate(scanner).stops is STOPS


def test_pickled_together_they_share_the_set() -> None:
    one, two = pickle.loads(pickle.dumps([StopScanner(STOPS), StopScanner(STOPS)]))
    assert one.stops is two.stops
    assert one.stops == STOPS


def test_a_million_held_characters() -> None:
    scanner = StopScanner("a" * 1_000_000 + "b")
    scanner.feed("a" * 1_000_000)
    twin = pickle.loads(pickle.dumps(scanner))
    assert twin.held == "a" * 1_000_000
    assert (twin.feed("a"), twin.feed("b")) == ("a", "")
    assert twin.match == StopMatch("a" * 1_000_000 + "b", 1)


@settings(max_examples=150)
@given(st.data(), st.sampled_from([StopScanner.copy, *COPIES.values(), *PICKLES.values()]))
def test_two_futures_of_one_past(data: st.DataObject, duplicate: Duplicate) -> None:
    setup, deltas = data.draw(streams())
    scanners = [setup.scanner()]
    for index, delta in enumerate(deltas):
        scanners[0].feed(delta, armed=index % 2 == 0)
    scanners.append(duplicate(scanners[0]))
    for scanner, future in [(scanner, data.draw(texts(setup))) for scanner in scanners]:
        reference = setup.reference()
        for index, delta in enumerate(deltas):
            reference.feed(delta, armed=index % 2 == 0)
        assert scanner.feed(future) == reference.feed(future)
        assert (scanner.held, scanner.unused) == (reference.held, reference.unused)
        assert same(scanner.match, reference.match)


@settings(max_examples=50)
@given(setups())
def test_any_set(setup: Setup) -> None:
    stops = setup.stop_set()
    for duplicate in [*COPIES.values(), *PICKLES.values()]:
        assert duplicate(stops) == stops


@pytest.mark.parametrize("state", [None, (), (1, 2), ("",) * 5, (False, False, (None, "END", 1), None, "", 0)])
def test_a_state_that_is_none_is_refused(state: Any) -> None:
    scanner = StopScanner("END")
    scanner.feed("a E")
    with pytest.raises((TypeError, ValueError)):
        scanner.__setstate__(state)
    assert (scanner.held, scanner.feed("ND"), scanner.match) == ("E", "", StopMatch("END", 2))


class Countdown:
    """An async source that can be copied."""

    def __init__(self) -> None:
        self.left = 3

    def __aiter__(self) -> AsyncIterator[str]:
        return self  # type: ignore[return-value]

    async def __anext__(self) -> str:
        self.left -= 1
        if self.left < 0:
            raise StopAsyncIteration
        return f"{self.left} E"


@pytest.mark.parametrize("make", [ascan, asplit])
def test_a_deep_copy_of_an_async_stream_is_independent(make: Callable[..., Any]) -> None:
    async def run() -> None:
        stops = "END" if make is ascan else SegmentSet({"answer": {}}, stop="END")
        stream = make(Countdown(), stops)
        await anext(stream)
        twin = copy.deepcopy(stream)
        rest = [item async for item in twin]
        assert (stream.held, [item async for item in stream]) == ("E", rest)

    asyncio.run(run())


@pytest.mark.parametrize("make", [ascan, asplit])
def test_an_async_stream_has_no_shallow_copy(make: Callable[..., Any]) -> None:
    """`copy.copy` of an async stream must raise an error. Before a fix, the copy shared the scanner and the source of
    the stream, so the stream lacked the deltas that the copy had read."""

    async def run() -> None:
        stream = make(Countdown(), "END" if make is ascan else SegmentSet({"answer": {}}, stop="END"))
        with pytest.raises(TypeError, match="cannot copy 'Async"):
            copy.copy(stream)
        assert len([item async for item in stream]) == 4

    asyncio.run(run())


@pytest.mark.parametrize("stream", [scan("a", "END"), split("a", SegmentSet({"answer": {}}))])
def test_a_stream_of_an_iterator_has_no_copy(stream: Any) -> None:
    """A stream over an iterator cannot be copied, because its source cannot. If a copy read the same source, it would
    take deltas from the stream."""
    for duplicate in COPIES.values():
        with pytest.raises(TypeError, match="cannot pickle"):
            duplicate(stream)


@pytest.mark.parametrize("regions", [{"reasoning": {}}, {"answer/x": {}}, {"answer": {}}])
def test_set_of_one_bare_region_keeps_it(regions: dict[str, dict[str, str]]) -> None:
    stops = StopSet("END", regions=regions)
    assert stops.regions == (None if regions == {"answer": {}} else regions)
    assert pickle.loads(pickle.dumps(stops)) == stops
    scanner = StopScanner(stops)
    scanner.feed("E")
    copy = pickle.loads(pickle.dumps(scanner))
    assert (copy.region, copy.held, copy.feed("ND"), copy.match) == (scanner.region, "E", "", StopMatch("END", 0))
