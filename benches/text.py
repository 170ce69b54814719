"""Times streams and whole texts, also with other packages. Measures the compiling of stops, and the wheel's size."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import charts
import rivals
from measure import Case, feeding, generated, interleaved, net, streaming
from memory import SCANNERS, measured
from report import Limits, Table, markdown
from workload import LONG, REALISTIC, fresh, long_text, numbered, scattered, windows

from stopscan import StopMatch, StopScanner, StopSet, scan

WAYS = {
    "buffer and `in`": rivals.buffer_loop,
    "vLLM's way": rivals.vllm,
    "llama.cpp's way, in Python": rivals.llama_cpp,
    **({"mlx-lm itself": rivals.mlx_lm} if find_spec("mlx") else {}),
}


def scanner(name: str, stop: list[str]) -> Case:
    stops = StopSet(stop)
    return feeding(name, lambda: StopScanner(stops))


def scanning(name: str, stop: list[str], source: Callable[[list[str]], Any] = iter) -> Case:
    stops = StopSet(stop)
    return streaming(name, lambda deltas: scan(source(deltas), stops))


def report(limits: Limits) -> Iterator[str]:
    for language in ("english", "cjk"):
        yield per_delta(limits, language)
    yield beside_others(limits)
    yield held_each_time(limits)
    yield long_texts(limits)
    yield compiling(limits)
    sizes(limits)
    charts.withheld(windows("english")[0], REALISTIC)


def per_delta(limits: Limits, language: str) -> str:
    streams = windows(language)
    cases = [
        *(scanner(f"`feed`, {count:,} stops", numbered(count)) for count in (0, 1, 4, 64, 1000)),
        scanner("`feed`, 4 realistic stops", REALISTIC),
        scanner("`feed`, 1,000 stops that begin with letters", scattered(1000)),
        scanning("`scan` of a list, 4 stops", numbered(4), list),
        scanning("`scan` of a generator, 4 stops", numbered(4), generated),
        streaming("a bare generator", generated),
    ]
    times = net(cases, streams, 15)
    bare = times.times.pop("a bare generator")
    times.times["`scan` of a generator, 4 stops"] -= bare
    if language == "english":
        limits.most("`feed`, 4 stops / an empty Python method", 1.3, times.ratio("`feed`, 4 stops"))
        limits.most("`feed`, 1,000 stops / 1 stop", 1.2, times.ratio("`feed`, 1,000 stops", "`feed`, 1 stops"))
        for source, most in (("list", 0.9), ("generator", 0.4)):
            ratio = times.ratio(f"`scan` of a {source}, 4 stops")
            limits.most(f"`scan` of a {source}, 4 stops / an empty Python method", most, ratio)
    else:
        limits.most("`feed` of a CJK delta / an empty Python method", 2.2, times.ratio("`feed`, 4 stops"))
    deltas = [delta for stream in streams for delta in stream]
    held = StopScanner(REALISTIC)
    share = sum(bool(held.feed(delta) is not delta or held.held) for delta in deltas) / len(deltas)
    title = {"english": "English prose and code", "cjk": "Chinese and Japanese"}[language]
    return (
        f"## Per delta: {title}\n\n{len(streams)} streams of {len(streams[0]):,} deltas from a real tokenizer, of "
        f"{sum(map(len, deltas)) / len(deltas):.1f} characters on average, without the bare loop over them. With the "
        f"realistic stops text is held at {share:.1%} of the deltas.\n\n"
        + markdown([("case", "ns per delta", "times an empty method"), *times.rows()])
    )


def beside_others(limits: Limits) -> str:
    """Returns a table of times per delta, including the loop over the deltas. The ways other than stopscan's are slow,
    and get only the first deltas of each stream."""
    curves: dict[str, dict[int, float]] = {}
    streams = windows("english")[:16]
    for count, length in [(1, 512), (4, 256), (16, 128), (64, 64), (256, 16), (1000, 16)]:
        stop = numbered(count)
        ours = [scanner("stopscan, feed", stop), scanning("stopscan, scan", stop)]
        others = [streaming(name, partial(way, stop=stop)) for name, way in WAYS.items()]
        for cases, inputs in [(ours, streams), (others, [stream[:length] for stream in streams])]:
            for name, time in interleaved(cases, inputs, 7).items():
                curves.setdefault(name, {})[count] = time / sum(map(len, inputs))
    feed = curves["stopscan, feed"]
    musts = [("vLLM's way", 4, 20), ("vLLM's way", 64, 200), ("mlx-lm itself", 4, 30)]
    for name, count, factor in (must for must in musts if must[0] in curves):
        limits.least(f"{name} / `feed`, {count} stops", factor, curves[name][count] / feed[count])
    rows = [
        (name, *(f"{time:,.0f}" for time in curve.values()), *(f"{curve[n] / feed[n]:.1f}x" for n in (4, 64)))
        for name, curve in curves.items()
    ]
    charts.time_over_stops(curves, "Time per delta, the loop over the deltas included", "time.svg")
    head = ("way", *map(str, feed), "4, over feed", "64, over feed")
    return "## Other ways, by number of stops\n\nns per delta, loops included.\n\n" + markdown([head, *rows])


def held_each_time(limits: Limits) -> str:
    million = ["a"] * 1_000_000
    times = net([scanner("`ab`", ["ab"]), scanner("a million `a`, then `b`", ["a" * 1_000_000 + "b"])], [million], 3)
    limits.most("a stop of 1,000,001 characters / a short stop", 3, times.ratio("a million `a`, then `b`", "`ab`"))
    return "## A million deltas `a`, all of them held\n\n" + markdown(
        [("stop", "ns per delta", "times an empty method"), *times.rows()]
    )


def searches(stop: list[str]) -> list[Case]:
    """Cases for `truncate` and installed packages that find several strings. The text contains none of the stops."""
    ways: dict[str, Callable[[str], Any]] = {"stopscan": StopSet(stop).truncate}
    if find_spec("ahocorasick_rs"):
        import ahocorasick_rs

        ways["ahocorasick_rs"] = ahocorasick_rs.AhoCorasick(stop).find_matches_as_indexes
    if find_spec("ahocorasick"):
        import ahocorasick

        automaton = ahocorasick.Automaton()
        for sequence in stop:
            automaton.add_word(sequence, sequence)
        automaton.make_automaton()
        ways["pyahocorasick"] = lambda text: list(automaton.iter(text))
    if find_spec("hyperscan"):
        ways["hyperscan"] = hyperscan_search(stop)

    def check(text: str, search: Callable[[str], Any]) -> None:
        assert search(text) in ([], (text, None))

    return [Case(name, fresh, search, partial(check, search=search)) for name, search in ways.items()]


def hyperscan_search(stop: list[str]) -> Callable[[str], list[int]]:
    """Returns a search with hyperscan. It takes bytes, so its time includes `str.encode`. The other packages take
    strings."""
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    expressions = [b"".join(b"\\x%02x" % byte for byte in sequence.encode()) for sequence in stop]
    database.compile(expressions=expressions, ids=list(range(len(stop))))

    def search(text: str) -> list[int]:
        ends: list[int] = []
        database.scan(text.encode(), match_event_handler=lambda _id, _start, end, _flags, _context: ends.append(end))
        return ends

    return search


# The least speed of `truncate` for a text and stops, as a multiple of hyperscan's speed.
OF_HYPERSCAN = {("english", "4 realistic"): 1, ("english", "64"): 1, ("cjk", "4 realistic"): 1, ("cjk", "64"): 0.95}


def long_texts(limits: Limits) -> str:
    kinds = {"4 realistic": REALISTIC, "64": numbered(64), "1,000": numbered(1000), "1,000 of letters": scattered(1000)}
    rows: Table = []
    for language in ("english", "cjk"):
        text = long_text(language)
        for name, stop in kinds.items():
            speeds = {way: LONG / time for way, time in interleaved(searches(stop), [text], 15).items()}
            rows = rows or [("text", "stops", *speeds)]
            rows = [*rows, (language, name, *(f"{speed:.2f}" for speed in speeds.values()))]
            for rival, least in {"ahocorasick_rs": 1, "hyperscan": OF_HYPERSCAN.get((language, name), 0)}.items():
                if least and rival in speeds:
                    ratio = speeds["stopscan"] / speeds[rival]
                    limits.least(f"`truncate`, 2 MB {language}, {name} / {rival}", least, ratio)
    return (
        "## 2 MB without a stop\n\nGB/s of UTF-8. hyperscan's time includes `str.encode`, which it needs. The UTF-8 of "
        "a string that is not ASCII is made in stopscan's and ahocorasick_rs's time too; pyahocorasick reads Python's "
        "own form.\n\n" + markdown(rows)
    )


def compiling(limits: Limits) -> str:
    ways: dict[str, Callable[[list[str]], Any]] = {"stopscan": StopSet}
    if find_spec("ahocorasick_rs"):
        import ahocorasick_rs

        ways["ahocorasick_rs"] = ahocorasick_rs.AhoCorasick

    def thousand(stop: list[str], make: Callable[[list[str]], Any]) -> None:
        for _ in range(1000):
            make(stop)

    assert StopSet(REALISTIC).find("xEND") == StopMatch("END", 1)
    cases = [Case(name, list, partial(thousand, make=make)) for name, make in ways.items()]
    times = {name: time / 1e6 for name, time in interleaved(cases, [REALISTIC], 9).items()}
    limits.most("`StopSet` of 4 stops", 5, times["stopscan"], " us")
    rows = [(name, f"{time:.1f}") for name, time in times.items()]
    return "## A set of 4 stops\n\n" + markdown([("package", "us"), *rows])


def sizes(limits: Limits) -> None:
    limits.most("one scanner", 256, measured("scanners")[1] / SCANNERS, " bytes")
    for job, name in [("many", "100,000 stops of 20 bytes"), ("nested", "3,000 nested stops")]:
        seconds, peak = measured(job)
        limits.most(f"compile {name}", 512, peak / 1e6, " MB", f" in {seconds:.2f} s")
    measured("too_many")  # fails unless the set is refused with a ValueError
    wheel = subprocess.check_output(["bash", Path(__file__).parents[1] / "ci" / "wheel"], text=True).strip()
    limits.most("wheel", 1, Path(wheel).stat().st_size / 1e6, " MB")
    program = "import time; b = time.perf_counter(); import stopscan; print(time.perf_counter() - b)"
    seconds = min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(20))
    limits.most("`import stopscan`", 3, seconds * 1000, " ms")
