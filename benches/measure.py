"""Timing of cases in turn, so that what else runs on the machine meets all of them."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

from cases import Case


@dataclass(frozen=True)
class Timing:
    """Nanoseconds for all inputs together: of each input's fastest run, and of the median pass."""

    fastest: float
    median: float

    def per(self, units: int) -> Timing:
        return Timing(self.fastest / units, self.median / units)

    def less(self, other: Timing) -> Timing:
        return Timing(self.fastest - other.fastest, self.median - other.median)


def interleaved(cases: list[Case], inputs: list[Any], passes: int) -> dict[str, Timing]:
    """The timing of each case, by name. Every case runs on an input before the next input's turn."""
    for case in cases:
        case.check(inputs[0])
    taken: dict[str, list[list[int]]] = {case.name: [] for case in cases}
    gc.collect()
    gc.disable()
    try:
        for _ in range(passes):
            rounds = [[timed(case, item) for case in cases] for item in inputs]
            for case, times in zip(cases, zip(*rounds, strict=True), strict=True):
                taken[case.name].append(list(times))
    finally:
        gc.enable()
    return {name: timing(passed) for name, passed in taken.items()}


def timed(case: Case, item: Any) -> int:
    subject = case.prepare(item)
    start = perf_counter_ns()
    case.run(subject)
    return perf_counter_ns() - start


def timing(passed: list[list[int]]) -> Timing:
    return Timing(sum(map(min, zip(*passed, strict=True))), median(map(sum, passed)))


PART = 400  # items that are timed together: a busy machine rarely interrupts them
ROUNDS = 25


def in_a_row(cases: list[Case], items: list[Any]) -> dict[str, float]:
    """Nanoseconds an item, by name: of each part's fastest round. A case reads all items twice, the second time for
    the figures: what another case has left in the cache costs it nothing."""
    for case in cases:
        case.check(items)
    parts = [items[start : start + PART] for start in range(0, len(items), PART)]
    fastest = {case.name: [float("inf")] * len(parts) for case in cases}
    for _ in range(ROUNDS):
        for case in cases:
            case.run(case.prepare(items))
            subject = case.prepare(items)
            for index, part in enumerate(parts):
                piece = (*subject[:-1], part) if isinstance(subject, tuple) else part
                start = perf_counter_ns()
                case.run(piece)
                fastest[case.name][index] = min(fastest[case.name][index], perf_counter_ns() - start)
    return {name: sum(times) / len(items) for name, times in fastest.items()}
