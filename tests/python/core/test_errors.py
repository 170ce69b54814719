"""Wrong arguments raise an error that names the argument, and leave the object unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from stopscan import Repeat, StopMatch, StopScanner, StopSet, ascan, scan, truncate
from stopscan.segments import SegmentSet

LONE_SURROGATE = "a\ud83e"

BAD_SETS: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ("empty stop", (["END", ""],), {}, ValueError, r"stop 1\b.*empty"),
    ("empty bare stop", ("",), {}, ValueError, r"stop 0\b.*empty"),
    ("empty visible stop", ((),), {"visible": [".", ""]}, ValueError, r"visible.* 1\b.*empty"),
    ("empty opening marker", ((),), {"protect": [("<", ">"), ("", "]")]}, ValueError, r"1\b.*empty"),
    ("empty closing marker", ((),), {"protect": [("<", "")]}, ValueError, r"0\b.*empty"),
    ("stop of another type", (["END", 42],), {}, TypeError, r"stop 1\b.*str.*int"),
    ("stop None in a list", ([None],), {}, TypeError, r"stop 0\b.*str.*NoneType"),
    ("visible stop of another type", ((),), {"visible": [1.5]}, TypeError, r"visible.* 0\b.*str.*float"),
    ("marker of another type", ((),), {"protect": [("<", 7)]}, TypeError, r"0\b.*str.*int"),
    ("bytes stop", (["END", b"END"],), {}, TypeError, r"stop 1\b.*decode"),
    ("bare bytes stop", (b"END",), {}, TypeError, r"decode"),
    ("bytes visible stop", ((),), {"visible": [b"END"]}, TypeError, r"decode"),
    ("bytes marker", ((),), {"protect": [(b"<", ">")]}, TypeError, r"decode"),
    ("stops that are no iterable", (42,), {}, TypeError, r"int"),
    ("markers that are no pairs", ((),), {"protect": ["<>"]}, TypeError, r"0\b"),
    ("a pair instead of pairs", ((),), {"protect": ("<think>", "</think>")}, TypeError, r"0\b"),
    ("three markers", ((),), {"protect": [("a", "b", "c")]}, ValueError, r"0\b"),
    ("stop is an opening marker", (["a", "<t>"],), {"protect": [("<t>", "</t>")]}, ValueError, r"<t>"),
    ("stop is a closing marker", (["</t>"],), {"protect": [("<t>", "</t>")]}, ValueError, r"</t>"),
    ("visible stop is a marker", ((),), {"visible": "<t>", "protect": [("<t>", "</t>")]}, ValueError, r"<t>"),
    ("hidden and visible", (["END"],), {"visible": ["END"]}, ValueError, r"END"),
    ("two closings of one opening", ((),), {"protect": [("<t>", "1"), ("<t>", "2")]}, ValueError, r"<t>"),
    ("lone surrogate in a stop", (["END", LONE_SURROGATE],), {}, UnicodeEncodeError, r"stop 1: surrogates"),
    (
        "lone surrogate in a visible stop",
        ((),),
        {"visible": LONE_SURROGATE},
        UnicodeEncodeError,
        r"visible stop 0: surrogates",
    ),
    (
        "lone surrogate in a marker",
        ((),),
        {"protect": [("<", LONE_SURROGATE)]},
        UnicodeEncodeError,
        r"protect 0 1: surrogates",
    ),
    ("a dict of stops", ({"END": 1},), {}, TypeError, r"stop.*str.*dict"),
    ("a dict of patterns", ((),), {"patterns": {"a": 1}}, TypeError, r"pattern.*str.*dict"),
    ("max_held is a bool", ((),), {"max_held": True}, TypeError, r"max_held.*int.*bool"),
    ("too many regions", ((),), {"protect": [(str(i), ">") for i in range(100)]}, ValueError, r"101 regions.* 100"),
]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"), [case[1:] for case in BAD_SETS], ids=[case[0] for case in BAD_SETS]
)
def test_bad_sets(arguments: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        StopSet(*arguments, **options)
    assert caught.type is error


BAD_TEXTS = [
    pytest.param(b"END", TypeError, "decode", id="bytes"),
    pytest.param(bytearray(b"END"), TypeError, "bytearray", id="bytearray"),
    pytest.param(42, TypeError, "int", id="int"),
    pytest.param(None, TypeError, "NoneType", id="None"),
    pytest.param(["END"], TypeError, "list", id="list"),
    pytest.param(LONE_SURROGATE, UnicodeEncodeError, "surrogates", id="lone surrogate"),
]
bad_texts = pytest.mark.parametrize(("text", "error", "message"), BAD_TEXTS)

CALLS: list[tuple[str, Callable[[StopScanner, Any], Any]]] = [
    ("feed", lambda scanner, text: scanner.feed(text)),
    ("feed unarmed", lambda scanner, text: scanner.feed(text, armed=False)),
    ("bypass", lambda scanner, text: scanner.bypass(text)),
]


@bad_texts
@pytest.mark.parametrize("call", [call for _, call in CALLS], ids=[name for name, _ in CALLS])
def test_a_bad_delta_leaves_the_scanner_as_it_was(call: Any, text: Any, error: type[Exception], message: str) -> None:
    scanner = StopScanner(StopSet("END", protect=[("<", ">")]))
    assert scanner.feed("<END>é E") == "<END>é "
    with pytest.raises(error, match=message):
        call(scanner, text)
    assert (scanner.held, scanner.match, scanner.unused) == ("E", None, "")
    assert (scanner.feed("ND!"), scanner.unused) == ("", "!")
    assert scanner.match == StopMatch("END", 7)


@bad_texts
def test_a_bad_delta_leaves_an_open_region_open(text: Any, error: type[Exception], message: str) -> None:
    scanner = StopScanner(StopSet("END", protect=[("<think>", "</think>")]))
    assert scanner.feed("<think></thi") == "<think></thi"
    with pytest.raises(error, match=message):
        scanner.feed(text)
    assert (scanner.feed("nk>END"), scanner.match) == ("nk>", StopMatch("END", 15))


@bad_texts
def test_a_bad_whole_text(text: Any, error: type[Exception], message: str) -> None:
    stops = StopSet("END")
    for call in (stops.find, stops.truncate, lambda text: truncate(text, "END")):
        with pytest.raises(error, match=message):
            call(text)  # type: ignore[operator]
    assert stops.find("a END") == StopMatch("END", 2)


@bad_texts
def test_a_bad_delta_comes_through_scan(text: Any, error: type[Exception], message: str) -> None:
    stream = scan(iter(["a E", text]), "END")
    assert next(stream) == "a "
    with pytest.raises(error, match=message):
        next(stream)
    assert (stream.held, stream.match, stream.unused) == ("E", None, "")


@bad_texts
def test_a_bad_delta_comes_through_ascan(text: Any, error: type[Exception], message: str) -> None:
    async def deltas() -> AsyncIterator[Any]:
        yield "a E"
        yield text

    async def check() -> None:
        stream = ascan(deltas(), "END")
        assert await anext(stream) == "a "
        with pytest.raises(error, match=message):
            await anext(stream)
        assert (stream.held, stream.match, stream.unused) == ("E", None, "")

    asyncio.run(check())


@pytest.mark.parametrize("stop", [[""], [42], b"END", [LONE_SURROGATE], 42])
def test_bad_stops_are_refused_before_reading(stop: Any) -> None:
    touched = []

    class Source:
        def __iter__(self) -> Iterator[str]:
            touched.append("iter")
            return iter([])

        def __aiter__(self) -> Iterator[str]:
            touched.append("aiter")
            return iter([])

    source: Any = Source()
    for call in (StopSet, StopScanner, lambda stop: truncate("a", stop)):
        with pytest.raises((ValueError, TypeError)):
            call(stop)
    for start in (scan, ascan):
        with pytest.raises((ValueError, TypeError)):
            start(source, stop)
    assert touched == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: StopScanner("END", start_protected=True),
        lambda: StopSet("END").find("a", start_protected=True),
        lambda: StopSet("END").truncate("a", start_protected=True),
        lambda: truncate("a", "END", start_protected=True),
        lambda: scan([], "END", start_protected=True),
    ],
    ids=["StopScanner", "find", "StopSet.truncate", "truncate", "scan"],
)
def test_start_protected_needs_a_region(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="protect"):
        call()


def test_a_source_that_is_none() -> None:
    with pytest.raises(TypeError, match="int"):
        scan(42, "END")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="list"):
        ascan(["a"], "END")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: StopSet("END", ["."]),  # type: ignore[misc]
        lambda: StopScanner("END", True),  # type: ignore[misc]
        lambda: StopScanner("END").feed("a", False),  # type: ignore[misc]
        lambda: StopScanner("END").feed(delta="a"),  # type: ignore[call-arg]
        lambda: scan([], "END", True),  # type: ignore[misc]
        lambda: truncate("a", "END", True),  # type: ignore[misc]
        lambda: StopScanner(),  # type: ignore[call-arg]
    ],
)
def test_text_is_positional_and_options_are_keywords(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize("name", ["stop", "visible", "protect", "anything"])
def test_a_set_is_immutable(name: str) -> None:
    stops = StopSet("END")
    with pytest.raises(AttributeError):
        setattr(stops, name, ())
    assert stops == StopSet("END")


@pytest.mark.parametrize("name", ["match", "held", "unused", "stops", "anything"])
def test_a_scanner_has_no_attributes_to_set(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(StopScanner("END"), name, "")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda number: StopMatch("a", number), "offset"),
        (lambda number: StopMatch("a", 0, period=number), "period"),
        (lambda number: StopSet("a", max_held=number), "max_held"),
        (lambda number: SegmentSet({"answer": {}}, max_held=number), "max_held"),
        (lambda number: Repeat(number), "count"),
    ],
)
@pytest.mark.parametrize("number", [-1, -(2**70), 2**70])
def test_number_out_of_range_is_named(call: Callable[[int], object], message: str, number: int) -> None:
    """A number that is out of range must raise a `ValueError`. Before a fix, `StopMatch("a", -1)` and `max_held=-1`
    raised an `OverflowError`, which is not a `ValueError`."""
    with pytest.raises(ValueError, match=f"^{message}: {number} is out of range$"):
        call(number)


@pytest.mark.parametrize("name", ["sequence", "offset", "end", "anything"])
def test_a_match_is_frozen(name: str) -> None:
    match = StopMatch("END", 26)
    with pytest.raises(AttributeError):
        setattr(match, name, 0)
    assert (match.sequence, match.offset, match.end) == ("END", 26, 29)


def test_an_error_of_the_stops_own_iterator_comes_through() -> None:
    def stops() -> Iterator[str]:
        yield "END"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        StopSet(stops())


def test_error_of_long_text_contains_the_text() -> None:
    """A `UnicodeEncodeError` must have the caller's text as its `object`. Before a fix, it had an internal copy of the
    text."""
    text = "漢" * 300 + "\ud800"
    for call in (lambda: StopSet("END").truncate(text), lambda: StopScanner("END").feed(text)):
        with pytest.raises(UnicodeEncodeError, match="surrogates not allowed") as error:
            call()
        assert (error.value.object, error.value.start, error.value.end) == (text, 300, 301)
