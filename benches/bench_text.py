"""Times scans of streams and of whole texts. Compares stopscan with other packages, and with the functions by which
other programs find stops.

Also measures memory, the size of the wheel, and the time to compile stops and to import the package.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import rivals
from conftest import Case, Ran, Times, feeding, generated, reading
from memory import SCANNERS, measured
from workload import LONG, REALISTIC, fresh, long_text, numbered, scattered, windows

from stopscan import StopScanner, StopSet, scan

LANGUAGES = {"English prose and code": "english", "Chinese and Japanese": "cjk"}


def scanner(stop: list[str]) -> Case:
    stops = StopSet(stop)
    return feeding(lambda: StopScanner(stops))


def scanning(stop: list[str], source: Callable[[list[str]], Any] = iter) -> Case:
    stops = StopSet(stop)
    return reading(lambda deltas: scan(source(deltas), stops))


PER_DELTA = {
    **{f"`feed`, {count:,} stops": scanner(numbered(count)) for count in (0, 1, 4, 64, 1000)},
    "`feed`, 4 realistic stops": scanner(REALISTIC),
    "`feed`, 1,000 stops that begin with letters": scanner(scattered(1000)),
    "`scan` of a list, 4 stops": scanning(numbered(4), list),
    "`scan` of a generator, 4 stops": scanning(numbered(4), generated),
    "a bare generator": reading(generated),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PER_DELTA)
def test_per_delta(bench: Any, language: str, name: str) -> None:
    bench(language, name, PER_DELTA[name], windows(LANGUAGES[language])[:8])


def test_limits_per_delta(ran: Ran, limit: Any) -> None:
    english, cjk = LANGUAGES
    empty = ran.of(english, "`feed`, 4 stops").times_empty
    limit("`feed`, 4 stops / an empty Python method", empty, most=1.3)
    many = ran.ratio(english, "`feed`, 1,000 stops", "`feed`, 1 stops")
    limit("`feed`, 1,000 stops / 1 stop", many, most=1.2)
    limit("`feed` of a CJK delta / an empty Python method", ran.of(cjk, "`feed`, 4 stops").times_empty, most=2.2)


def test_limits_of_scan(ran: Ran, limit: Any) -> None:
    english, _ = LANGUAGES
    name = "`scan` of a list, 4 stops"
    limit(f"{name} / an empty Python method", ran.of(english, name).times_empty, most=0.9)
    name = "`scan` of a generator, 4 stops"
    added = ran.of(english, name).times_empty - ran.of(english, "a bare generator").times_empty
    limit(f"{name}, without the generator / an empty Python method", added, most=0.4)


# Functions that find stops as other programs do, for tests with different numbers of stops. They are slow, so they read
# only the first deltas of a stream.
WAYS = {
    "buffer and `in`": rivals.buffer_loop,
    "vLLM's way": rivals.vllm,
    "llama.cpp's way, in Python": rivals.llama_cpp,
    **({"mlx-lm itself": rivals.mlx_lm} if find_spec("mlx") else {}),
}
LENGTHS = {1: 512, 4: 256, 16: 128, 64: 64, 256: 16, 1000: 16}


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize("name", ["stopscan, feed", "stopscan, scan", *WAYS])
def test_other_ways(bench: Any, name: str, count: int) -> None:
    stop = numbered(count)
    ours = {"stopscan, feed": scanner(stop), "stopscan, scan": scanning(stop)}
    streams = windows("english")[:8]
    if name in ours:
        bench(f"{count} stops", name, ours[name], streams)
    else:
        bench(f"{count} stops", name, reading(partial(WAYS[name], stop=stop)), [s[: LENGTHS[count]] for s in streams])


@pytest.mark.parametrize(
    ("name", "count", "least"), [("vLLM's way", 4, 20), ("vLLM's way", 64, 200), ("mlx-lm itself", 4, 30)]
)
def test_limit_of_other_ways(ran: Ran, limit: Any, name: str, count: int, least: float) -> None:
    ratio = ran.ratio(f"{count} stops", name, "stopscan, feed")
    limit(f"{name} / `feed`, {count} stops", ratio, least=least)


HELD = {"`ab`": scanner(["ab"]), "a million `a`, then `b`": scanner(["a" * 1_000_000 + "b"])}


@pytest.mark.parametrize("name", HELD)
def test_held_each_time(bench: Any, name: str) -> None:
    bench("a million deltas `a`", name, HELD[name], [["a"] * 1_000_000], passes=3)


def test_limit_of_text_that_is_held_each_time(ran: Ran, limit: Any) -> None:
    ratio = ran.ratio("a million deltas `a`", *reversed(HELD))
    limit("a stop of 1,000,001 characters / a short stop", ratio, most=3)


KINDS = {"4 realistic": REALISTIC, "64": numbered(64), "1,000": numbered(1000), "1,000 of letters": scattered(1000)}
# `truncate` must be at least this many times as fast as hyperscan. The keys are a kind of text and a kind of stops.
OF_HYPERSCAN = {("english", "4 realistic"): 1.0, ("english", "64"): 1.0, ("cjk", "4 realistic"): 1.0}
OF_HYPERSCAN |= {("cjk", "64"): 0.95}


def ahocorasick_rs(stop: list[str]) -> Callable[[str], Any]:
    return pytest.importorskip("ahocorasick_rs").AhoCorasick(stop).find_matches_as_indexes


def pyahocorasick(stop: list[str]) -> Callable[[str], Any]:
    automaton = pytest.importorskip("ahocorasick").Automaton()
    for sequence in stop:
        automaton.add_word(sequence, sequence)
    automaton.make_automaton()
    return lambda text: list(automaton.iter(text))


def hyperscan(stop: list[str]) -> Callable[[str], Any]:
    """hyperscan takes bytes, so its time includes `str.encode`. The other packages take strings."""
    module = pytest.importorskip("hyperscan")
    database = module.Database(mode=module.HS_MODE_BLOCK)
    expressions = [b"".join(b"\\x%02x" % byte for byte in sequence.encode()) for sequence in stop]
    database.compile(expressions=expressions, ids=list(range(len(stop))))

    def search(text: str) -> list[int]:
        ends: list[int] = []
        database.scan(text.encode(), match_event_handler=lambda _id, _start, end, _flags, _context: ends.append(end))
        return ends

    return search


SEARCHES = {
    "stopscan": lambda stop: StopSet(stop).truncate,
    "ahocorasick_rs": ahocorasick_rs,
    "pyahocorasick": pyahocorasick,
    "hyperscan": hyperscan,
}


def gigabytes(times: Times) -> dict[str, float]:
    return {"GB/s of UTF-8": LONG / times.case}


@pytest.mark.parametrize("language", LANGUAGES.values())
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SEARCHES)
def test_whole_text(bench: Any, language: str, kind: str, name: str) -> None:
    search = SEARCHES[name](KINDS[kind])

    def check(text: str) -> None:  # the text contains none of the stops
        assert search(text) in ([], (text, None))

    case = Case(lambda text: search(text), lambda text: (fresh(text),), check)
    inputs = [long_text(language)]
    bench(f"2 MB {language}, {kind}", name, case, inputs, 15, pieces=1, yardsticks={}, columns=gigabytes)


@pytest.mark.parametrize("language", LANGUAGES.values())
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rival", ["ahocorasick_rs", "hyperscan"])
def test_limit_of_whole_texts(ran: Ran, limit: Any, language: str, kind: str, rival: str) -> None:
    least = 1.0 if rival == "ahocorasick_rs" else OF_HYPERSCAN.get((language, kind))
    if least is not None:
        ratio = ran.ratio(f"2 MB {language}, {kind}", rival, "stopscan")
        limit(f"`truncate`, 2 MB {language}, {kind} / {rival}", ratio, least=least)


def compile_thousand(make: Callable[[list[str]], Any], stop: list[str]) -> None:
    for _ in range(1000):
        make(stop)


@pytest.mark.parametrize("name", ["stopscan", "ahocorasick_rs"])
def test_compiling(bench: Any, ran: Ran, limit: Any, name: str) -> None:
    make = StopSet if name == "stopscan" else pytest.importorskip("ahocorasick_rs").AhoCorasick
    case = Case(compile_thousand, lambda stop: (make, list(stop)))
    group = "a set of 4 stops"
    bench(
        group, name, case, [REALISTIC], 9, pieces=1000, yardsticks={}, columns=lambda times: {"us": times.case / 1000}
    )
    if name == "stopscan":
        limit("`StopSet` of 4 stops", ran.of(group, name).case / 1000, most=5, unit=" us")


def test_limit_of_a_scanner(limit: Any) -> None:
    limit("one scanner", measured("scanners")[1] / SCANNERS, most=256, unit=" bytes")


@pytest.mark.parametrize(("job", "name"), [("many", "100,000 stops of 20 bytes"), ("nested", "3,000 nested stops")])
def test_limit_of_large_sets(limit: Any, job: str, name: str) -> None:
    limit(f"compile {name}", measured(job)[1] / 1e6, most=512, unit=" MB")


def test_too_large_a_set_is_refused() -> None:
    measured("too_many")  # fails unless the set is refused with a ValueError


def test_limit_of_the_wheel(limit: Any) -> None:
    wheel = subprocess.check_output(["bash", Path(__file__).parents[1] / "ci" / "wheel"], text=True).strip()
    limit("wheel", Path(wheel).stat().st_size / 1e6, most=1, unit=" MB")


def test_limit_of_the_import(limit: Any) -> None:
    program = "import time; b = time.perf_counter(); import stopscan; print(time.perf_counter() - b)"
    seconds = min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(20))
    limit("`import stopscan`", seconds * 1000, most=3, unit=" ms")
