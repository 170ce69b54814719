"""Runs every benchmark: writes `benches/RESULTS.md` and the two charts of the README.

`python benches/run.py`, with the package installed and its extra `bench`. Cargo is used for the core and for the size
of the wheel.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import charts
from cases import Case, compile_cases, empty_method, feeding, generated, rival_cases, scanning, search_cases, streaming
from measure import Timing, interleaved
from memory import SCANNERS, measured
from report import Table, machine, markdown, nanoseconds, ratio
from workload import LONG, REALISTIC, long_text, numbered, scattered, windows

import stopscan

ROOT = Path(__file__).parent.parent
PACKAGES = ["tokenizers", "mlx-lm", "ahocorasick_rs", "pyahocorasick", "hyperscan"]
MEGABYTE = 1_000_000


class Report:
    """The tables, and the rows of the one that compares with what must hold."""

    def __init__(self) -> None:
        self.musts: list[tuple[str, ...]] = [("measure", "must", "measured", "holds")]
        self.parts: list[str] = []

    def must(self, measure: str, must: str, figure: str, holds: bool) -> None:
        self.musts.append((measure, must, figure, "yes" if holds else "**no**"))

    def part(self, title: str, text: str, table: Table) -> None:
        self.parts.append(f"## {title}\n\n{text}\n\n{markdown(table)}")
        print(self.parts[-1], end="\n\n", flush=True)

    def text(self) -> str:
        intro = (
            f"# Benchmarks\n\n{date.today()}, {machine(PACKAGES)}.\n\n"
            "`python benches/run.py` wrote this. All of a table's cases ran in turn in one process, on new string "
            "objects each time, and every result was checked. A time is that of the fastest of several passes, part by "
            "part, because other work on the machine can only add to it; another process may differ by a tenth, as "
            "its code and data lie elsewhere. *Net* is less the bare loop over the same deltas."
        )
        return "\n\n".join([intro, markdown(self.musts), *self.parts]) + "\n"


def deltas(report: Report) -> None:
    rows: Table = [("case", "ns per delta", "net", "net / empty method")]
    cases = [
        streaming("loop over a list", lambda deltas: deltas),
        streaming("loop over a generator", generated),
        empty_method("empty Python method"),
        feeding("feed, no stops", []),
        feeding("feed, 1 stop", numbered(1)),
        feeding("feed, 4 stops", numbered(4)),
        feeding("feed, 64 stops", numbered(64)),
        feeding("feed, 1,000 stops", numbered(1000)),
        feeding("feed, 4 realistic stops", REALISTIC),
        feeding("feed, 1 stop that begins with a letter", scattered(1)),
        feeding("feed, 1,000 stops that begin with letters", scattered(1000)),
        scanning("scan of a list, 4 stops", numbered(4)),
        scanning("scan of a list, 4 realistic stops", REALISTIC),
        generator_scan("scan of a generator, 4 stops", numbered(4)),
        generator_scan("scan of a generator, 4 realistic stops", REALISTIC),
    ]
    for language, title in [("english", "English prose and code"), ("cjk", "Chinese and Japanese")]:
        streams = windows(language)
        texts = [delta for stream in streams for delta in stream]
        timings = {name: timing.per(len(texts)) for name, timing in interleaved(cases, streams, 15).items()}
        net = {name: timing.less(timings[loop_of(name)]) for name, timing in timings.items()}
        empty = net["empty Python method"]
        rows = rows[:1] + [
            (name, nanoseconds(timing), nanoseconds(net[name]), f"{ratio(net[name], empty):.2f}")
            for name, timing in timings.items()
        ]
        mean = sum(map(len, texts)) / len(texts)
        held, held_numbered = held_share(texts, REALISTIC), held_share(texts, numbered(4))
        text = (
            f"{len(streams)} streams of {len(streams[0]):,} deltas from a real tokenizer, {mean:.1f} characters on "
            f"average. With the realistic stops ({', '.join(f'`{stop!r}`' for stop in REALISTIC)}), text is held after "
            f"{held:.1%} of them; with `<|stop_0000|>` and so on, after {held_numbered:.2%}. The net time of `scan` "
            "over a generator is less the bare loop over that generator."
        )
        report.part(f"Per delta: {title}", text, rows)
        if language == "english":
            delta_musts(report, timings, net)


def generator_scan(name: str, stop: list[str]) -> Case:
    stops = stopscan.StopSet(stop)
    return streaming(name, lambda deltas: stopscan.scan(generated(deltas), stops))  # type: ignore[arg-type]


def loop_of(name: str) -> str:
    return "loop over a generator" if "scan of a generator" in name else "loop over a list"


def held_share(texts: list[str], stop: list[str]) -> float:
    scanner = stopscan.StopScanner(stop)
    held = 0
    for delta in texts:
        scanner.feed(delta)
        held += scanner.held != ""
    return held / len(texts)


def delta_musts(report: Report, timings: dict[str, Timing], net: dict[str, Timing]) -> None:
    empty = "empty Python method"
    for kind, times in [("the loop included", timings), ("net", net)]:
        feed = ratio(times["feed, 4 stops"], times[empty])
        figure = f"{feed:.2f}x ({nanoseconds(times['feed, 4 stops'])} / {nanoseconds(times[empty])} ns)"
        report.must(f"`feed`, nothing held, 4 stops, {kind}", "<= 1.3x an empty Python method", figure, feed <= 1.3)
    for source, limit in [("generator", 0.4), ("list", 0.9)]:
        scan = net[f"scan of a {source}, 4 stops"]
        figure = f"{ratio(scan, net[empty]):.2f}x ({nanoseconds(scan)} / {nanoseconds(net[empty])} ns)"
        holds = ratio(scan, net[empty]) <= limit
        report.must(f"`scan` of a {source}, 4 stops, net", f"<= {limit}x an empty Python method", figure, holds)
    many = ratio(timings["feed, 1,000 stops"], timings["feed, 1 stop"])
    report.must("`feed` with 1,000 stops", "<= 1.2x of 1 stop", f"{many:.2f}x", many <= 1.2)


def rivals(report: Report) -> None:
    """By number of stops. The others get only the first deltas of each stream: what takes long is interrupted."""
    curves: dict[str, dict[int, float]] = {}
    streams = windows("english")[:16]
    for count, length in [(1, 512), (4, 256), (16, 128), (64, 64), (256, 16), (1000, 16)]:
        stop = numbered(count)
        loop = streaming("loop over a list", lambda deltas: deltas)
        ours = [loop, feeding("stopscan, feed", stop), scanning("stopscan, scan", stop)]
        others = [shortened(case, length) for case in rival_cases(stop)]
        timings = interleaved([*ours, *others], streams, 7)
        for cases, size in [(ours, len(streams[0])), (others, length)]:
            for case in cases:
                curve = curves.setdefault(case.name, {})
                curve[count] = timings[case.name].per(size * len(streams)).fastest
    feed = curves["stopscan, feed"]
    counts = list(feed)
    rows: Table = [("way", *map(str, counts), "4, over feed", "64, over feed")]
    for name, curve in curves.items():
        ratios = (f"{curve[count] / feed[count]:.1f}x" for count in (4, 64))
        rows.append((name, *(f"{curve[count]:,.0f}" for count in counts), *ratios))
    text = (
        "ns per delta, loops included, with 1 to 1,000 stops, `<|stop_0000|>` and so on, in English prose and code "
        "without a match."
    )
    report.part("Other ways, over the number of stops", text, rows)
    mlx_lm = next(name for name in ("mlx-lm itself", "mlx-lm's way") if name in curves)
    for name, count, must in [("vLLM's way", 4, 20), ("vLLM's way", 64, 200), (mlx_lm, 4, 30)]:
        times = curves[name][count], feed[count], curves["loop over a list"][count]
        factor = times[0] / times[1]
        net = (times[0] - times[2]) / (times[1] - times[2])
        figure = f"{factor:.0f}x (net {net:.0f}x)"
        report.must(f"{name} / `feed`, {count} stops", f">= {must}x", figure, factor >= must)
    del curves["loop over a list"]
    charts.time_per_delta(curves)


def shortened(case: Case, length: int) -> Case:
    return Case(
        case.name,
        lambda deltas: case.prepare(deltas[:length]),
        case.run,
        lambda deltas: case.check(deltas[:length]),
    )


def worst(report: Report) -> None:
    cases = [feeding("stopscan, feed", ["ab"]), scanning("stopscan, scan", ["ab"]), *rival_cases(["ab"])]
    timings = interleaved(cases, [["aaaa"] * 1024], 10)
    rows: Table = [("way", "ns per delta")]
    rows += [(name, nanoseconds(timing.per(1024))) for name, timing in timings.items()]
    report.part("Worst case: every delta is held", "The stop `ab` on deltas `aaaa`, 1,024 of them.", rows)

    million = ["a"] * 1_000_000
    stops = {"ab": "ab", "1,000,000 times a, then b": "a" * 1_000_000 + "b"}
    timings = interleaved([feeding(name, [stop]) for name, stop in stops.items()], [million], 5)
    rows = [("stop", "ns per delta")]
    rows += [(f"`{name}`", nanoseconds(timing.per(len(million)))) for name, timing in timings.items()]
    report.part("A million deltas `a`", "The long stop holds all of them.", rows)
    short, long = timings.values()
    factor = ratio(long, short)
    report.must(
        "stop of 1,000,001 characters, a million deltas `a`", "<= 3x a short stop", f"{factor:.2f}x", factor <= 3
    )


def texts(report: Report) -> None:
    rows: Table = []
    kinds = {"4 realistic": REALISTIC, "64": numbered(64), "1,000": numbered(1000)}
    kinds["1,000 of letters"] = scattered(1000)
    for language in ["english", "cjk"]:
        text = long_text(language)
        for name, stop in kinds.items():
            timings = interleaved(search_cases(stop), [text], 15)
            speeds = {way: LONG / timing.fastest for way, timing in timings.items()}
            rows = rows or [("text", "stops", *speeds)]
            rows.append((language, name, *(f"{speed:.2f}" for speed in speeds.values())))
            if name == "4 realistic" and "ahocorasick_rs" in speeds:
                figure = f"{speeds['stopscan']:.1f} against {speeds['ahocorasick_rs']:.1f} GB/s"
                holds = speeds["stopscan"] >= speeds["ahocorasick_rs"]
                report.must(f"`truncate`, 2 MB without a stop, {language}", ">= ahocorasick_rs", figure, holds)
    text = (
        "GB/s of UTF-8. hyperscan's time includes `str.encode`, which it needs. The UTF-8 of a string that is not "
        "ASCII is made in stopscan's and ahocorasick_rs's time too; pyahocorasick reads Python's own form."
    )
    report.part("2 MB without a stop", text, rows)


def sets(report: Report) -> None:
    cases = [repeated(case) for case in compile_cases(REALISTIC)]
    timings = {name: timing.per(1000) for name, timing in interleaved(cases, [REALISTIC], 9).items()}
    rows: Table = [("package", "us")]
    rows += [(name, f"{timing.fastest / 1000:.1f}") for name, timing in timings.items()]
    report.part("A set of 4 stops", "Compiled 1,000 times.", rows)
    ours = timings["stopscan"].fastest / 1000
    report.must("`StopSet` of 4 stops", "<= 5 us", f"{ours:.1f} us", ours <= 5)


def repeated(case: Case) -> Case:
    def run(stop: list[str]) -> None:
        for _ in range(1000):
            case.run(stop)

    return Case(case.name, case.prepare, run, case.check)


def sizes(report: Report) -> None:
    _, kept = measured("scanners")
    scanner = kept / SCANNERS
    report.must("one scanner", "<= 256 bytes plus held text", f"{scanner:.0f} bytes", scanner <= 256)
    for job, name in [("many", "100,000 stops of 20 bytes"), ("nested", "3,000 nested stops")]:
        seconds, peak = measured(job)
        figure = f"{seconds:.2f} s, {peak / MEGABYTE:.0f} MB"
        report.must(f"compile {name}", "seconds, <= 512 MB", figure, seconds < 10 and peak <= 512 * MEGABYTE)
    seconds, peak = measured("too_many")
    report.must("450,000 stops of 20 bytes", "`ValueError`", f"`ValueError` after {seconds:.2f} s", True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(ROOT)]
        subprocess.run(command, check=True)
        wheel = next(Path(folder).iterdir()).stat().st_size / MEGABYTE
    report.must("wheel", "<= 1 MB", f"{wheel:.2f} MB", wheel <= 1)


def core(report: Report) -> None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    shutil.rmtree(target / "criterion", ignore_errors=True)  # of earlier runs
    command = ["cargo", "bench", "--quiet", "--bench", "core"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, dict[str, str]] = {}
    for path in target.glob("criterion/*/*/new/benchmark.json"):
        case = json.loads(path.read_text())
        sample = json.loads(path.with_name("sample.json").read_text())
        fastest = min(time / count for time, count in zip(sample["times"], sample["iters"], strict=True))
        figures.setdefault(case["group_id"], {})[case["function_id"]] = in_unit(fastest, case["throughput"])
    for line in output.splitlines():
        if line.startswith("heap"):
            case, way, figure = line.split("; ")
            figures.setdefault(case, {})[way] = figure
    ways = ["stopscan", "dfa", "nfa", "dfa, state by state"]
    rows: Table = [("case", *ways)]
    rows += [(name, *(figures[name].get(way, "") for way in ways)) for name in sorted(figures)]
    text = (
        "criterion's fastest sample. `dfa` and `nfa` are the automata of the aho-corasick crate with a hold table "
        "beside them; in 2 MB they search as the crate does, with its prefilter, or state by state. Heap: kept, and at "
        "the peak."
    )
    report.part("The core in Rust", text, rows)


def in_unit(nanoseconds: float, throughput: dict[str, int] | None) -> str:
    match throughput:
        case {"Elements": count}:
            return f"{nanoseconds / count:.1f} ns"
        case {"Bytes": count}:
            return f"{count / nanoseconds:.2f} GB/s"
        case _:
            return f"{nanoseconds / 1000:,.1f} us"


def main() -> None:
    report = Report()
    for part in [deltas, rivals, worst, texts, sets, sizes, core]:
        part(report)
    charts.withheld(windows("english")[0], REALISTIC)
    (ROOT / "benches/RESULTS.md").write_text(report.text())
    print(markdown(report.musts))


if __name__ == "__main__":
    main()
