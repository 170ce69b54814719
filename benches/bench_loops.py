"""Times how much slower `Repeat` makes `feed`. If vLLM is installed, also times its check for repeated token ids.

`cargo bench -p stopscan-benches --bench loops` measures the Rust core alone, also on the texts that cost most.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from conftest import Case, Ran, feeding
from workload import numbered, windows

from stopscan import Repeat, StopScanner, StopSet

FEED = "`feed`"
SETTINGS = {
    FEED: None,
    "`Repeat()`": Repeat(),
    "`min_length=64`": Repeat(min_length=64),
    "`max_period=65536`": Repeat(max_period=65_536),
    "`min_length=32`": Repeat(min_length=32),
}
WORDS = [" the", " cat", " sat", " on", " a", " mat", " and", " read", " some", " code", " until", " late", " night"]
TEXT = random.Random(5).choices(WORDS, k=4_000)  # each word is one token


def scanner(repeat: Repeat | None) -> Case:
    stops = StopSet(numbered(4), repeat=repeat)
    return feeding(lambda: StopScanner(stops))


@cache
def streams(language: str) -> list[list[str]]:
    """Streams in which no setting of `Repeat` finds a loop. (`feed` does not scan text after a loop, so a stream with a
    loop would seem to be faster.)"""
    sets = [StopSet(repeat=repeat) for repeat in SETTINGS.values()]
    return [deltas for deltas in windows(language) if not any(stops.find("".join(deltas)) for stops in sets)][:8]


@pytest.mark.parametrize("language", ["english", "cjk"])
@pytest.mark.parametrize("name", SETTINGS)
def test_per_delta(bench: Any, language: str, name: str) -> None:
    bench(language, name, scanner(SETTINGS[name]), streams(language))


@pytest.mark.parametrize(("name", "most"), [("`Repeat()`", 18), ("`min_length=64`", 32)])
def test_limit_per_delta(ran: Ran, limit: Any, name: str, most: float) -> None:
    added = ran.of("english", name).net - ran.of("english", FEED).net
    limit(f"{name} adds to `feed`", added, most=most, unit=" ns")


@pytest.mark.parametrize("name", SETTINGS)
def test_random_words(bench: Any, name: str) -> None:
    bench("beside vLLM's check", name, scanner(SETTINGS[name]), [TEXT])


@pytest.mark.parametrize("longest", [16, 128, 1024])
def test_vllm(bench: Any, longest: int) -> None:
    params = pytest.importorskip("vllm.sampling_params").RepetitionDetectionParams
    check_sequence_repetition = pytest.importorskip("vllm.v1.core.sched.utils").check_sequence_repetition
    rule = params(max_pattern_size=longest, min_pattern_size=1, min_count=4)

    def check_each(ids: list[int]) -> None:
        seen: list[int] = []
        for token_id in ids:
            seen.append(token_id)
            check_sequence_repetition(seen, rule)

    case = Case(check_each, lambda text: ([WORDS.index(word) for word in text],))
    bench("beside vLLM's check", f"vLLM's check, periods to {longest} tokens", case, [TEXT])
