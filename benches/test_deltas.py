"""What one stream of deltas costs: `pytest benches` (needs pytest-benchmark). `run.py` compares the same cases."""

from __future__ import annotations

from typing import Any

import pytest
from cases import Case, empty_method, feeding, generated, rival_cases, scanning, streaming
from workload import REALISTIC, numbered, scattered, windows

ROUNDS = 20

CASES = [
    empty_method("empty Python method"),
    streaming("loop over a list", lambda deltas: deltas),
    streaming("loop over a generator", generated),
    feeding("feed, no stops", []),
    *(feeding(f"feed, {count} stops", numbered(count)) for count in (1, 4, 64, 1000)),
    *(feeding(f"feed, {count} stops that begin with letters", scattered(count)) for count in (1, 1000)),
    feeding("feed, realistic stops", REALISTIC),
    scanning("scan, 4 stops", numbered(4)),
    scanning("scan, realistic stops", REALISTIC),
    *rival_cases(REALISTIC),
]
HELD = [feeding("feed", ["ab"]), *rival_cases(["ab"])]


def measure(benchmark: Any, case: Case, deltas: list[str], rounds: int = ROUNDS) -> None:
    case.check(deltas)
    benchmark.pedantic(case.run, setup=lambda: ((case.prepare(deltas),), {}), rounds=rounds, warmup_rounds=1)


@pytest.mark.benchmark(group="deltas, English and code")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_english(benchmark: Any, case: Case) -> None:
    measure(benchmark, case, windows("english")[0])


@pytest.mark.benchmark(group="deltas, Chinese and Japanese")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cjk(benchmark: Any, case: Case) -> None:
    measure(benchmark, case, windows("cjk")[0])


@pytest.mark.benchmark(group="deltas, each of them held")
@pytest.mark.parametrize("case", HELD, ids=lambda case: case.name)
def test_held(benchmark: Any, case: Case) -> None:
    measure(benchmark, case, ["aaaa"] * 1024)


@pytest.mark.benchmark(group="a million deltas `a`")
@pytest.mark.parametrize("length", [1, 1_000_000])
def test_long_stop(benchmark: Any, length: int) -> None:
    measure(benchmark, feeding("feed", ["a" * length + "b"]), ["a"] * 1_000_000, rounds=3)
