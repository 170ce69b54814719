"""Names and texts that users see: arguments, attributes, `repr` and error messages."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from typing import Any

import pytest

import stopscan
from stopscan import StopMatch, StopScanner, StopSet, ascan, scan, truncate
from stopscan.segments import Segmenter, SegmentSet, asplit, split

MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}


async def asynchronous(*deltas: str) -> AsyncIterator[str]:
    for delta in deltas:
        yield delta


async def collected(stream: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in stream]


def test_stop_works_by_name_everywhere() -> None:
    assert StopSet(stop=["END"]) == StopSet(["END"])
    assert StopScanner(stop="END").feed("a END") == "a "
    assert list(scan(["a END"], stop="END")) == ["a "]
    assert asyncio.run(collected(ascan(asynchronous("a END"), stop="END"))) == ["a "]
    assert truncate("a END", stop="END") == ("a ", StopMatch("END", 2))
    assert SegmentSet(MARKERS, stop="END") == SegmentSet(MARKERS, "END")


@pytest.mark.parametrize("call", [StopSet, StopScanner, scan, ascan, truncate, SegmentSet])
def test_a_signature_says_so(call: Callable[..., object]) -> None:
    kind = inspect.signature(call).parameters["stop"].kind
    assert kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def test_the_version_is_that_of_the_distribution() -> None:
    assert stopscan.__version__ == version("stopscan")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scan(asynchronous("a"), "END"), "iterable of str, got async_generator; ascan takes an async iterable"),
        (lambda: split(asynchronous("a"), MARKERS), "got async_generator; asplit takes an async iterable"),
        (lambda: scan(5, "END"), "deltas: expected an iterable of str, got int"),
        (lambda: ascan(["a"], "END"), "expected an async iterable of str, got list; scan takes an iterable"),
        (lambda: asplit(["a"], MARKERS), "expected an async iterable of str, got list; split takes an iterable"),
        (lambda: ascan(5, "END"), "deltas: expected an async iterable of str, got int"),
    ],
)  # fmt: skip
def test_wrong_iterable_names_the_other_function(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value).endswith(message)


def test_a_stream_says_its_region_and_whether_it_closes() -> None:
    stops = StopSet("END", protect=[("<think>", "</think>")])
    stream = scan(iter(["<think>hm", "</think>END"]), stops)
    assert (stream.region, stream.closes) == ("answer", False)
    next(stream)
    assert stream.region == "<think>"
    assert scan((delta for delta in ["a"]), stops).closes
    assert split(iter("a"), MARKERS).closes is False


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (StopScanner("END"), "<StopScanner region='answer' held='' match=None>"),
        (Segmenter(MARKERS), "<Segmenter region='answer' held='' match=None>"),
        (scan(["a"], "END"), "<StopStream region='answer' held='' match=None>"),
        (split(["a"], MARKERS), "<SegmentStream region='answer' held='' match=None>"),
        (StopSet(["END"], visible=["."]), "StopSet(('END',), visible=('.',))"),
    ],
)
def test_a_repr(thing: object, said: str) -> None:
    assert repr(thing) == said


def test_a_repr_is_short() -> None:
    scanner = StopScanner("a" * 5_000 + "b")
    scanner.feed("a" * 5_000)
    assert len(repr(scanner)) < 700
    assert len(repr(StopSet([f"stop {number}" for number in range(1_000)]))) < 700
    assert len(repr(SegmentSet(MARKERS, stop=[f"stop {number}" for number in range(1_000)]))) < 900


@pytest.mark.parametrize("name", ["", "/", "/a"])
def test_a_region_without_a_noun(name: str) -> None:
    for make in (lambda graph: SegmentSet(graph), lambda graph: StopSet("END", regions=graph)):
        with pytest.raises(ValueError, match=f'region "{name}" has an empty name before its first slash'):
            make({"answer": {"|": name}, name: {}})


class Loud(str):
    """A string whose own methods must not be called."""

    __slots__ = ()

    def isascii(self) -> bool:
        raise AssertionError("isascii")

    def __len__(self) -> int:
        raise AssertionError("__len__")

    def __str__(self) -> str:
        raise AssertionError("__str__")

    def __bool__(self) -> bool:
        raise AssertionError("__bool__")

    def encode(self, *_: Any) -> bytes:
        raise AssertionError("encode")


@pytest.mark.parametrize("text", ["text", "字" * 10, "text " * 200, "字 " * 200])
def test_delta_of_a_subclass_runs_no_own_method(text: str) -> None:
    delta = Loud(text)
    assert StopScanner("END").feed(delta) is delta
    assert StopSet("END").find(delta) is None
    (piece,) = scan([delta], "END")
    assert piece is delta
    assert next(split([delta], MARKERS))[1] is delta
    assert StopScanner("END").feed(Loud(f"{text}END")) == text


@pytest.mark.parametrize("pattern", ["abc", "a+bc", "(?:ab|cd)e"])
@pytest.mark.parametrize("stop", [[], ["abd"], ["xabce"]])
def test_a_snapshot_of_a_restored_stream_is_the_same(pattern: str, stop: list[str]) -> None:
    """The snapshots before and after `restore` must be equal. Before a fix, they differed if the pattern was plain text
    and a match had begun."""
    stops = StopSet(stop, patterns=[pattern])
    for fed in ("xab", "a", "xxcd", "ab"):
        scanner, other = StopScanner(stops), StopScanner(stops)
        scanner.feed(fed)
        other.restore(scanner.snapshot())
        assert other.snapshot() == scanner.snapshot()
        assert (other.held, other.feed("ce")) == (scanner.held, scanner.feed("ce"))
