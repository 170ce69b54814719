"""The shape of the API: what sets, matches and streams are besides what they find."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import stopscan
from stopscan import StopMatch, StopScanner, StopSet, ascan, scan, truncate


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("END", ("END",)),
        (["END", "STOP"], ("END", "STOP")),
        (("b", "a", "b", "c", "a"), ("b", "a", "c")),
        (iter(["END"]), ("END",)),
        ({"END": 1}, ("END",)),
        (None, ()),
        ((), ()),
        ([], ()),
    ],
    ids=repr,
)
def test_stops_of_a_set(stop: Any, expected: tuple[str, ...]) -> None:
    stops = StopSet(stop)
    assert (stops.stop, stops.visible, stops.protect, len(stops)) == (expected, (), (), len(expected))


def test_a_set_of_everything() -> None:
    stops = StopSet("END", visible=[".", "!", "."], protect=[["<", ">"], ("[", ">"), ("<", ">")])  # type: ignore[list-item]
    assert (stops.stop, stops.visible) == (("END",), (".", "!"))
    assert stops.protect == (("<", ">"), ("[", ">"))
    assert len(stops) == 3
    assert StopSet(visible=".").visible == (".",)


def test_sets_are_equal_by_what_they_were_given() -> None:
    stops = StopSet(["a", "b"], visible="c", protect=[("<", ">")])
    assert stops == StopSet(("a", "b", "a"), visible=["c"], protect=(("<", ">"),))
    assert hash(stops) == hash(StopSet(("a", "b", "a"), visible=["c"], protect=(("<", ">"),)))
    others = [
        StopSet(["b", "a"], visible="c", protect=[("<", ">")]),
        StopSet(["a", "b", "c"], protect=[("<", ">")]),
        StopSet(["a", "b"], visible="c", protect=[("<", "]")]),
        ("a", "b"),
    ]
    assert [other for other in others if other == stops] == []
    assert len({stops, *others, stops}) == 5


def test_a_set_of_a_set_is_that_set() -> None:
    stops = StopSet(["END"], visible=["."])
    assert StopSet(stops) is stops
    for options in ({"visible": "."}, {"protect": [("<", ">")]}):
        with pytest.raises(TypeError, match="a StopSet is complete: it takes no other stops"):
            StopSet(stops, **options)


def test_a_match_in_a_match_statement() -> None:
    match StopSet("END").find("The END"):
        case StopMatch(sequence, offset):
            assert (sequence, offset) == ("END", 4)
        case _:
            pytest.fail("no match")


def test_a_set_shows_what_it_was_given() -> None:
    stops = StopSet(["a'b", "é"], visible=".", protect=[("<", ">")])
    assert eval(repr(stops)) == stops


def test_matches() -> None:
    match = StopMatch("é🦀", 26)
    assert (match.sequence, match.offset, match.end) == ("é🦀", 26, 28)
    assert match == StopMatch("é🦀", 26)
    assert hash(match) == hash(StopMatch("é🦀", 26))
    assert [other for other in (StopMatch("é🦀", 25), StopMatch("éx", 26), ("é🦀", 26), None) if other == match] == []
    assert eval(repr(match)) == match


def test_matches_are_ordered_by_offset_then_end_then_sequence() -> None:
    ordered = [StopMatch("zz", 1), StopMatch("b", 2), StopMatch("c", 2), StopMatch("aa", 2), StopMatch("a", 10)]
    assert sorted([ordered[3], ordered[1], ordered[4], ordered[0], ordered[2]]) == ordered
    assert ordered[0] < ordered[1] <= ordered[1] < ordered[2]
    assert ordered[2] > ordered[1] >= ordered[1]
    with pytest.raises(TypeError):
        _ = ordered[0] < ("zz", 1)  # type: ignore[operator]


def test_a_scanner_compiles_or_takes_its_set() -> None:
    stops = StopSet("END")
    assert StopScanner(stops).stops is stops
    assert StopScanner("END").stops == stops
    assert StopScanner(["END"], include_stop=True).stops == stops


def test_what_feed_returns_is_the_delta_when_nothing_is_held() -> None:
    scanner = StopScanner(StopSet("END", visible=".", protect=[("<think>", "</think>")]))
    for delta in ["some text", "é🦀字 text", "<think>", "END in a region", "</think>", "x" * 1_000]:
        assert scanner.feed(delta) is delta
        assert scanner.feed(delta.replace("END", ""), armed=False)


class Text(str):
    """Some tokenizers hand out a subclass of `str`."""

    __slots__ = ()


def test_a_subclass_of_str_is_text() -> None:
    delta = Text("a EN")
    scanner = StopScanner([Text("END")])
    assert (scanner.feed(delta), scanner.feed(Text("D"))) == ("a ", "")
    assert scanner.match == StopMatch("END", 2)
    whole = Text("no stop")
    assert StopScanner("END").feed(whole) is whole


@pytest.mark.parametrize("stop", ["END", ["END"], StopSet("END")], ids=["str", "list", "StopSet"])
def test_truncate(stop: Any) -> None:
    assert truncate("a END b", stop) == ("a ", StopMatch("END", 2))
    assert truncate("a END b", stop, include_stop=True) == ("a END", StopMatch("END", 2))
    assert truncate("a EN", stop) == ("a EN", None)
    assert truncate("", stop) == ("", None)


def test_find_and_truncate_behind_a_template_that_opened_the_region() -> None:
    stops = StopSet("END", protect=[("<think>", "</think>")])
    text = "END</think>a END"
    assert stops.find(text) == StopMatch("END", 0)
    assert stops.find(text, start_protected=True) == StopMatch("END", 13)
    assert stops.truncate(text, start_protected=True) == ("END</think>a ", StopMatch("END", 13))
    assert truncate(text, stops, start_protected=True, include_stop=True) == (text, StopMatch("END", 13))


class Source:
    """Deltas that know how far they were read, and whether they were closed."""

    def __init__(self, *deltas: str) -> None:
        self.deltas = iter(deltas)
        self.read = 0
        self.closed = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        delta = next(self.deltas)
        self.read += 1
        return delta

    def close(self) -> None:
        self.closed += 1

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.close()


class Response:
    """Like an API client's stream: what closes the request is not the iterator but what gives it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.closed = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self.source)

    def __aiter__(self) -> AsyncIterator[str]:
        return aiter(self.source)

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.close()


def test_scan_reads_no_further_than_the_stop_and_closes_the_source() -> None:
    source = Source("a ", "E", "ND x", "more")
    stream = scan(source, "END")
    assert iter(stream) is stream
    assert list(stream) == ["a "]
    assert (source.read, source.closed) == (3, 1)
    assert (stream.match, stream.held, stream.unused) == (StopMatch("END", 2), "", " x")
    assert list(stream) == []
    assert (source.read, source.closed) == (3, 1)


def test_scan_closes_the_source_before_it_gives_the_last_text() -> None:
    source = Source("text END")
    stream = scan(source, "END")
    assert (next(stream), source.closed, stream.match) == ("text ", 1, StopMatch("END", 5))


def test_scan_closes_a_generator() -> None:
    closed = []

    def deltas() -> Iterator[str]:
        try:
            yield from ["a END", "more"]
        finally:
            closed.append(True)

    assert list(scan(deltas(), "END")) == ["a "]
    assert closed == [True]


def test_scan_closes_what_gave_the_iterator_too() -> None:
    response = Response(Source("a END"))
    assert list(scan(response, "END")) == ["a "]
    assert (response.source.closed, response.closed) == (1, 1)


def test_scan_needs_no_close() -> None:
    assert list(scan(["a END", "more"], "END")) == ["a "]
    assert list(scan("a END", "END")) == ["a", " "]


def test_scan_skips_what_is_empty_and_flushes_at_the_end() -> None:
    stream = scan(["", "a E", "", "N"], "END")
    assert next(stream) == "a "
    assert stream.held == "E"
    assert list(stream) == ["EN"]
    assert (stream.match, stream.held, stream.unused) == (None, "", "")


def test_scan_gives_the_very_objects() -> None:
    deltas = ["some text", "é🦀字"]
    assert all(out is delta for out, delta in zip(scan(deltas, "END"), deltas, strict=True))


def test_close_ends_the_stream() -> None:
    source = Source("a E", "N b", "c")
    stream = scan(source, "END")
    assert next(stream) == "a "
    stream.close()
    stream.close()
    assert (list(stream), source.read, source.closed) == ([], 1, 1)


def test_scan_of_an_error_keeps_what_was_withheld() -> None:
    def deltas() -> Iterator[str]:
        yield "a E"
        raise ConnectionError("gone")

    stream = scan(deltas(), "END")
    assert next(stream) == "a "
    with pytest.raises(ConnectionError, match="gone"):
        next(stream)
    assert (stream.held, stream.match) == ("E", None)


async def everything(stream: AsyncIterator[str]) -> list[str]:
    return [text async for text in stream]


def test_ascan_reads_no_further_than_the_stop_and_closes_the_source() -> None:
    source = Source("a ", "E", "ND x", "more")
    stream = ascan(source, "END")
    assert aiter(stream) is stream
    assert asyncio.run(everything(stream)) == ["a "]
    assert (source.read, source.closed) == (3, 1)
    assert (stream.match, stream.held, stream.unused) == (StopMatch("END", 2), "", " x")
    assert asyncio.run(everything(stream)) == []
    assert (source.read, source.closed) == (3, 1)


def test_ascan_closes_a_generator() -> None:
    closed = []

    async def deltas() -> AsyncIterator[str]:
        try:
            for delta in ["a END", "more"]:
                yield delta
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    async def check() -> None:
        assert await everything(ascan(deltas(), "END")) == ["a "]
        assert closed == [True]

    asyncio.run(check())


def test_ascan_closes_what_gave_the_iterator_too() -> None:
    response = Response(Source("a END"))
    assert asyncio.run(everything(ascan(response, "END"))) == ["a "]
    assert (response.source.closed, response.closed) == (1, 1)


def test_aclose_ends_the_stream() -> None:
    source = Source("a E", "N b", "c")

    async def check() -> None:
        stream = ascan(source, "END")
        assert await anext(stream) == "a "
        await stream.aclose()
        await stream.aclose()
        assert (await everything(stream), source.read, source.closed) == ([], 1, 1)

    asyncio.run(check())


def test_ascan_of_an_error_keeps_what_was_withheld() -> None:
    async def deltas() -> AsyncIterator[str]:
        yield "a E"
        raise ConnectionError("gone")

    async def check() -> None:
        stream = ascan(deltas(), "END")
        assert await anext(stream) == "a "
        with pytest.raises(ConnectionError, match="gone"):
            await anext(stream)
        assert (stream.held, stream.match) == ("E", None)

    asyncio.run(check())


def test_a_cancelled_ascan_keeps_what_was_withheld_and_goes_on() -> None:
    """Cancelling one `anext` of a source that can be read again loses nothing."""

    class Slow(Source):
        async def __anext__(self) -> str:
            if self.read == 1 and not self.closed:
                self.closed = -1
                await asyncio.sleep(3600)
            return await super().__anext__()

    async def check() -> None:
        stream = ascan(Slow("a E", "N b"), "END")
        assert await anext(stream) == "a "
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert stream.held == "E"
        assert await everything(stream) == ["EN b"]

    asyncio.run(check())


def test_the_package_imports_nothing_but_its_native_module() -> None:
    """`import stopscan` took 13 ms, of which `inspect` and `typing` took nearly all."""
    code = "import sys; before = set(sys.modules); import stopscan; print(*sorted(set(sys.modules) - before))"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert imported == ["stopscan", "stopscan._stopscan"]


def test_the_async_names_are_there_without_being_imported() -> None:
    code = "from stopscan import *; import stopscan; assert ascan is stopscan.ascan; stopscan.AsyncStopStream"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="'stopscan' has no attribute 'nothing'"):
        stopscan.nothing  # noqa: B018
