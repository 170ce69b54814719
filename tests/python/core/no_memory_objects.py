"""If memory runs out in a `repr`, a pickle, a copy or a call with a bad argument, a `MemoryError` is raised, and PyO3
does not panic. Each allocation of Python fails in turn."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from failing import failing

from stopscan import Repeat, StopMatch, StopScanner, StopSet, scan
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter, SegmentSet, keep, split
from stopscan.tokens import TokenScanner, TokenSegmenter

MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": keep("answer")}}
SEGMENTS = SegmentSet(MARKERS, stop=["END"], visible=["."], patterns=["a+b"], max_held=9_999, repeat=Repeat(5))
VOCABULARY = Vocabulary(["The E", "ND", *["x"] * 998])


def stops() -> StopSet:
    return StopSet(["END"], visible=["."], patterns=["a+b"], protect=[("<think>", "</think>")], max_held=9_999)


def scanner() -> StopScanner:
    made = StopScanner(stops(), include_stop=True)
    made.feed("字" * 99 + "The E")
    return made


def segmenter() -> Segmenter:
    made = Segmenter(SEGMENTS)
    made.feed("字" * 99 + "The E")
    return made


def tokens(read: list[int], **options: Any) -> TokenScanner:
    made = TokenScanner(VOCABULARY, "END", **options)
    made.feed_many(read)
    return made


OBJECTS: dict[str, Callable[[], Any]] = {
    "StopSet": stops,  # a new set each time: after a failed `repr`, Python shows the tuples of that set as `(...)`
    "regions": lambda: StopSet("END", regions={"answer": {}, "tool": {}}, stop_in=["answer"]),
    "SegmentSet": lambda: SEGMENTS,
    "Repeat": lambda: Repeat(300, max_period=400, min_length=500),
    "StopMatch": lambda: StopMatch("END", 70_000, "E.D", 1_000),
    "StopScanner": scanner,
    "Segmenter": segmenter,
    "TokenScanner": lambda: tokens([0] + [2] * 300, stop_token_ids=[999], eos_token_ids=[998], max_tokens=9_999),
    "TokenSegmenter": lambda: TokenSegmenter(VOCABULARY, SEGMENTS, stop_token_ids=[999]),
}


def attributes(item: object) -> list[object]:
    names = [name for name in dir(type(item)) if not name.startswith("_")]
    return [getattr(item, name) for name in names if not callable(getattr(type(item), name))]


CALLS: dict[str, Callable[[Any], object]] = {
    "repr": repr,
    "reduce": lambda item: len(item.__reduce__()),
    "pickle": lambda item: len(pickle.dumps(item)),
    "copy": lambda item: type(copy.copy(item)),
    "deepcopy": lambda item: type(copy.deepcopy(item)),
    "attributes": lambda item: str(attributes(item)),
    "equality": lambda item: item == item,
}


def check(start: Callable[[], Any], call: Callable[[Any], object]) -> None:
    """Asserts that `call`, without memory, raises an allowed error, or returns what it returns with memory."""
    expected = call(start())
    errors = []
    for _, outcome in failing(start, call):
        if isinstance(outcome, BaseException):
            errors.append(outcome)
        else:
            assert outcome == expected
    # pickle raises a PicklingError if it has no memory to look up a module. Python raises a SystemError if it has no
    # memory to raise another error, such as the `ValueError` of `int("x")`.
    allowed = (MemoryError, pickle.PicklingError, SystemError)
    assert [error for error in errors if not isinstance(error, allowed)] == []


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("call", CALLS)
def test_an_object(name: str, call: str) -> None:
    """No call may panic if memory runs out. Once, three calls did: to pickle, to make a `repr`, and to read an
    attribute above 256, for which Python makes a new `int`."""
    if call == "pickle" and name.startswith("Token"):
        return  # its `Vocabulary` cannot be pickled; "reduce" tests what the scanner itself adds to a pickle
    if call == "repr" and type(OBJECTS[name]()).__repr__ is object.__repr__:
        return  # the `repr` has an address, which differs
    check(OBJECTS[name], CALLS[call])


@pytest.mark.parametrize(
    "end",
    [
        lambda: tokens([2] * 300 + [0, 1]).finish,
        lambda: tokens([2] * 300 + [999], stop_token_ids=[999]).finish,
        lambda: tokens([2] * 300, max_tokens=300).finish,
        lambda: tokens([2] * 300).flush("tool_calls"),
    ],
    ids=["stop_sequence", "stop_token", "length", "close"],
)
def test_a_finish(end: Callable[[], object]) -> None:
    check(lambda: None, lambda _: end())


@pytest.mark.parametrize(
    "make", [lambda: scan(["a", "The E", "x", "END"], "END"), lambda: split(["a<think>b"], MARKERS)]
)
@pytest.mark.parametrize("step", [next, iter, lambda stream: stream.close(), lambda stream: stream.held])
def test_an_iterator(make: Callable[[], Any], step: Callable[[Any], object]) -> None:
    check(make, lambda stream: type(step(stream)))


def refused(call: Callable[[], object]) -> Callable[[None], object]:
    def outcome(_: None) -> object:
        try:
            call()
        except (TypeError, ValueError) as error:
            return type(error)
        return None

    return outcome


@pytest.mark.parametrize(
    "call",
    [
        lambda: StopSet(["END", ""]),
        lambda: StopSet(b"END"),  # type: ignore[arg-type]
        lambda: StopSet(["END", 5]),  # type: ignore[list-item]
        lambda: StopSet(patterns=["a.*b"]),
        lambda: StopSet("END", max_held=-1),
        lambda: StopScanner("END").feed(5),  # type: ignore[arg-type]
        lambda: StopScanner("END").restore(b"damaged"),
        lambda: SegmentSet({"answer": {"<think>": "nowhere"}}),
        lambda: tokens([0]).feed(5_000),
        lambda: tokens([0]).flush("stop_token"),  # type: ignore[arg-type]
    ],
)
def test_an_error(call: Callable[[], object]) -> None:
    """A call with a bad argument must not panic if memory runs out. Once, it did, because the message was made only
    while the error was being raised."""
    assert refused(call)(None) in (TypeError, ValueError)
    check(lambda: None, refused(call))
