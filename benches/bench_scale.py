"""Times many streams in one process that share one set or vocabulary. Each stream in turn is fed one delta or token."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import cache
from itertools import cycle, islice
from typing import Any

import pytest
from conftest import EMPTY, LOOP, Case, Empty, Ran, Times, exhaust, fresh_all
from memory import SCANNERS
from workload import REALISTIC, ids, numbered, tokenizer, windows

from stopscan import StopScanner, StopSet
from stopscan.tokens import TokenScanner, Vocabulary

PART = 2_000  # deltas or token ids in one timed run: so few that other processes rarely interrupt it
COUNTS = [1, 100, 10_000, SCANNERS]
SHUFFLED = "shuffled in memory"


def feed_in_turn(pairs: Iterable[tuple[Any, Any]]) -> None:
    for target, piece in pairs:
        target.feed(piece)


@cache
def kind(name: str) -> tuple[Callable[[], Any], list[Any]]:
    """Returns two things: a function that makes a stream, and the deltas or token ids to feed, one to each stream in
    turn."""
    stops = StopSet(numbered(4))
    if name == "StopScanner":
        deltas = cycle(delta for stream in windows("english") for delta in stream)
        return lambda: StopScanner(stops), list(islice(deltas, SCANNERS))
    vocabulary = Vocabulary(tokenizer())
    return (
        lambda: TokenScanner(vocabulary, stops, eos_token_ids=[0], max_tokens=100 * SCANNERS),
        list(islice(cycle(ids("english")), SCANNERS)),
    )


@cache
def targets(name: str, count: int, order: str) -> list[Any]:
    """Returns `count` streams or, if `name` is "Empty", objects whose `feed` does nothing. With the order `SHUFFLED`,
    they lie in memory in random order, as on a server. So the processor cannot prefetch the next one."""
    make = Empty if name == "Empty" else kind(name)[0]
    made = [make() for _ in range(count)]
    return random.Random(1).sample(made, count) if order == SHUFFLED else made


def in_turn(name: str, subjects: list[Any], work: Callable[..., object] = feed_in_turn) -> Case:
    make, pieces = kind(name)

    def prepare(start: int) -> tuple[Iterable[tuple[Any, Any]]]:
        part, warm = pieces[start : start + PART], make()
        for piece in part:  # loads the vocabulary into the processor's cache before the timed runs
            warm.feed(piece)
        # `zip` is lazy, so the timed loop itself reads each scanner from memory. If there are many scanners, each is
        # then missing from the processor's cache, and its loading is timed as well.
        turn = [number % len(subjects) for number in range(start, start + PART)]
        return (zip(map(subjects.__getitem__, turn), fresh_all(part), strict=True),)

    return Case(work, prepare)


@pytest.mark.parametrize("name", ["StopScanner", "TokenScanner"])
@pytest.mark.parametrize(("count", "order"), [*((count, "in turn") for count in COUNTS), (SCANNERS, SHUFFLED)])
def test_streams(bench: Any, name: str, count: int, order: str) -> None:
    empties = targets("Empty", count if order == SHUFFLED else 1, order)
    yardsticks = {LOOP: in_turn(name, [None], exhaust), EMPTY: in_turn(name, empties)}
    case = in_turn(name, targets(name, count, order))
    starts = [*range(0, SCANNERS, PART)]
    bench(f"`{name}.feed`", f"{count:,} {order}", case, starts, 5, pieces=PART, yardsticks=yardsticks)


@pytest.mark.parametrize(("name", "most"), [("StopScanner", 1.5), ("TokenScanner", 2)])
def test_limits_of_streams(ran: Ran, limit: Any, name: str, most: float) -> None:
    group = f"`{name}.feed`"
    one = ran.ratio(group, f"{SCANNERS:,} in turn", "1 in turn")
    limit(f"`{name}`, {SCANNERS:,} in turn / 1", one, most=most)
    empty = ran.of(group, f"{SCANNERS:,} {SHUFFLED}").times_empty
    limit(f"`{name}`, {SCANNERS:,} shuffled / objects that do nothing", empty, most=1.25)


def split_each(stop: list[str], texts: list[str]) -> list[str]:
    out = []
    for text in texts:
        for sequence in stop:
            text = text.split(sequence)[0]
        out.append(text)
    return out


def truncate_each(stop: StopSet, texts: list[str]) -> list[Any]:
    return [stop.truncate(text) for text in texts]


def texts() -> list[list[str]]:
    """Lists of 50 texts. Each text has about 2,000 characters and no stop."""
    whole = ["".join(window[start : start + 460]) for window in windows("english") for start in range(0, 4000, 500)]
    return [whole[start : start + 50] for start in range(0, len(whole) - 49, 50)]


@pytest.mark.parametrize("stop", [REALISTIC, numbered(64)], ids=["4 stops", "64 stops"])
@pytest.mark.parametrize("name", ["`str.split` at each stop", "`truncate`"])
def test_whole_texts(bench: Any, name: str, stop: list[str]) -> None:
    inputs = texts()
    size = sum(len(text.encode()) for part in inputs for text in part) / sum(map(len, inputs))

    def gigabytes(times: Times) -> dict[str, float]:
        return {"GB/s": size / times.case}

    split = Case(split_each, lambda part: (stop, fresh_all(part)))
    cut = Case(truncate_each, lambda part: (StopSet(stop), fresh_all(part)))
    group = f"whole texts of about 2,000 characters, {len(stop)} stops"
    bench(group, name, cut if name == "`truncate`" else split, inputs, 9, yardsticks={}, columns=gigabytes)
