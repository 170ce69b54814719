"""Times cases in turn, so that other work on the machine disturbs all of them equally."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns
from types import FunctionType
from typing import Any

from workload import fresh

LOOP, EMPTY = "loop over a list", "empty Python method"


@dataclass(frozen=True)
class Case:
    """`prepare` makes a fresh object from an input, `run` takes the object and is timed, `check` tests the case."""

    name: str
    prepare: Callable[[Any], Any]
    run: Callable[[Any], object]
    check: Callable[[Any], None] = lambda _: None


class Empty:
    """The yardstick: a Python method that does nothing, called as `feed` is."""

    def feed(self, delta: object) -> None:
        pass


def feed_each(subject: tuple[Any, Iterable[Any]]) -> None:
    target, pieces = subject
    for piece in pieces:
        target.feed(piece)


def exhaust(stream: Iterable[Any]) -> None:
    for _ in stream:
        pass


def own(function: Callable[[Any], object]) -> Callable[[Any], object]:
    """Returns a copy of `function` for one case, because CPython specializes bytecode for the types it has seen."""
    return FunctionType(function.__code__.replace(), function.__globals__)


def fresh_all(pieces: list[Any]) -> list[Any]:
    """Returns new strings, which have no cached UTF-8, like the strings of a decoder. Token ids stay as they are."""
    return [fresh(piece) if isinstance(piece, str) else piece for piece in pieces]


def generated(deltas: list[str]) -> Iterator[str]:
    yield from deltas


def yardsticks() -> list[Case]:
    """Returns two cases: an empty loop, whose time is subtracted from the other times, and an empty method, with
    whose time the other times are compared."""
    return [
        Case(LOOP, fresh_all, own(exhaust)),
        Case(EMPTY, lambda pieces: (Empty(), fresh_all(pieces)), own(feed_each)),
    ]


def feeding(name: str, make: Callable[[], Any]) -> Case:
    """Returns a case that feeds each piece to the object that `make` returns. Checks that no text is cut or lost."""

    def check(pieces: list[Any]) -> None:
        target = make()
        out = [target.feed(piece) for piece in pieces] + ([target.flush()] if hasattr(target, "flush") else [])
        if isinstance(pieces[0], str) and isinstance(out[0], str):
            assert "".join(out) == "".join(pieces)

    return Case(name, lambda pieces: (make(), fresh_all(pieces)), own(feed_each), check)


def streaming(name: str, stream: Callable[[list[str]], Iterable[str]]) -> Case:
    """Returns a case that reads an iterator of safe text to its end. Checks that no text is cut or lost."""

    def check(deltas: list[str]) -> None:
        assert "".join(stream(deltas)) == "".join(deltas)

    return Case(name, lambda deltas: stream(fresh_all(deltas)), own(exhaust), check)


@dataclass(frozen=True)
class Net:
    """The nanoseconds for each piece, by case, without the time of a loop that does nothing with the pieces."""

    times: dict[str, float]
    loop: float

    def ratio(self, one: str, other: str = EMPTY) -> float:
        return self.times[one] / self.times[other]

    def rows(self, over: str = EMPTY) -> list[tuple[str, ...]]:
        return [(name, f"{time:,.1f}", f"{self.ratio(name, over):.2f}") for name, time in self.times.items()]


def net(cases: list[Case], inputs: list[list[Any]], passes: int) -> Net:
    """Returns the times of the cases and of an empty method. The time of a bare loop is subtracted from each of them,
    and is returned as ``loop``."""
    total = sum(map(len, inputs))
    times = {name: time / total for name, time in interleaved([*yardsticks(), *cases], inputs, passes).items()}
    loop = times.pop(LOOP)
    return Net({name: time - loop for name, time in times.items()}, loop)


def interleaved(cases: list[Case], inputs: list[Any], passes: int) -> dict[str, float]:
    """Returns the nanoseconds of each case: the time of its fastest run on each input, summed over the inputs.

    All cases run on an input before any case runs on the next input. This is repeated ``passes`` times.
    """
    for case in cases:
        case.check(inputs[0])
    fastest = {case.name: [float("inf")] * len(inputs) for case in cases}
    gc.collect()
    gc.disable()
    try:
        for _ in range(passes):
            for index, item in enumerate(inputs):
                for case in cases:
                    times = fastest[case.name]
                    times[index] = min(times[index], timed(case, item))
    finally:
        gc.enable()
    return {name: sum(times) for name, times in fastest.items()}


def timed(case: Case, item: Any) -> int:
    subject = case.prepare(item)
    start = perf_counter_ns()
    case.run(subject)
    return perf_counter_ns() - start
