"""What whole texts and whole sets cost, beside the multi-pattern packages: `pytest benches`."""

from __future__ import annotations

from typing import Any

import pytest
from cases import Case, compile_cases, search_cases
from workload import REALISTIC, long_text, numbered, scattered

STOPS = {"realistic stops": REALISTIC, "64 stops": numbered(64), "1000 stops": numbered(1000)}


@pytest.mark.parametrize("package", ["ahocorasick_rs", "ahocorasick", "hyperscan"])
def test_package_is_compared(package: str) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed, so nothing is compared with it")


@pytest.mark.benchmark(group="2 MB")
@pytest.mark.parametrize("language", ["english", "cjk"])
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{case.name}, {name}") for name, stop in STOPS.items() for case in search_cases(stop)],
)
def test_search(benchmark: Any, case: Case, language: str) -> None:
    text = long_text(language)
    case.check(text)
    benchmark.pedantic(case.run, setup=lambda: ((case.prepare(text),), {}), rounds=5)


@pytest.mark.benchmark(group="compile 4 stops")
@pytest.mark.parametrize("case", compile_cases(REALISTIC), ids=lambda case: case.name)
def test_compile(benchmark: Any, case: Case) -> None:
    case.check(REALISTIC)
    benchmark(case.run, REALISTIC)


@pytest.mark.benchmark(group="compile 100,000 stops")
@pytest.mark.parametrize("case", compile_cases(scattered(100_000)), ids=lambda case: case.name)
def test_compile_many(benchmark: Any, case: Case) -> None:
    stop = scattered(100_000)
    case.check(stop)
    benchmark.pedantic(case.run, args=(stop,), rounds=3)
