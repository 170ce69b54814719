"""What `Repeat` costs in Python: `feed` with it beside `feed` without it.

    python benches/loops.py > benches/results/loops.md

`cargo bench --bench loops` has what the core takes, and the worst texts.
"""

from __future__ import annotations

from cases import Case, feed_each, fresh_all, own, streaming
from measure import Timing, interleaved
from report import heading, markdown, nanoseconds
from workload import numbered, windows

import stopscan
from stopscan import Repeat

SETTINGS = {
    "`Repeat()`": Repeat(),
    "`min_length=64`": Repeat(min_length=64),
    "`max_period=65536`": Repeat(max_period=65_536),
    "`min_length=32`": Repeat(min_length=32),
}
# How much `feed` may take with it, of `feed` without it.
MUSTS = {"`Repeat()`": 1.5, "`min_length=64`": 1.8}


def feeding(name: str, repeat: Repeat | None) -> Case:
    stops = stopscan.StopSet(numbered(4), repeat=repeat)

    def check(deltas: list[str]) -> None:
        scanner = stopscan.StopScanner(stops)
        assert "".join(map(scanner.feed, deltas)) + scanner.flush() == "".join(deltas)

    return Case(name, lambda deltas: (stopscan.StopScanner(stops), fresh_all(deltas)), own(feed_each), check)


def without_loops(streams: list[list[str]]) -> list[list[str]]:
    """Streams that no setting ends: after a stop, `feed` does other work."""
    sets = [stopscan.StopSet(repeat=repeat) for repeat in SETTINGS.values()]
    return [deltas for deltas in streams if not any(stops.find("".join(deltas)) for stops in sets)]


def timed(streams: list[list[str]]) -> dict[str, Timing]:
    """Nanoseconds a delta, without the loop over the list."""
    cases = [streaming("loop", lambda deltas: deltas), feeding("`feed`", None)]
    cases += [feeding(name, repeat) for name, repeat in SETTINGS.items()]
    total = sum(map(len, streams))
    timings = {name: timing.per(total) for name, timing in interleaved(cases, streams, 15).items()}
    return {name: timing.less(timings["loop"]) for name, timing in timings.items() if name != "loop"}


def main() -> None:
    rows: list[tuple[str, ...]] = [("deltas", "`feed`", *(name for name in SETTINGS))]
    musts: list[tuple[str, ...]] = [("in English", "must", "measured", "holds")]
    for language, name in [("english", "English prose and code"), ("cjk", "Chinese and Japanese")]:
        net = timed(without_loops(windows(language))[:16])
        rows.append((name, *map(nanoseconds, net.values())))
        if language == "english":
            for setting, must in MUSTS.items():
                ratio = net[setting].fastest / net["`feed`"].fastest
                holds = "yes" if ratio <= must else "**no**"
                musts.append((setting, f"<= {must}x `feed`", f"{ratio:.2f}x", holds))
    print(heading("Loops", ["tokenizers"]))
    print("\nns a delta, less the bare loop over the deltas.\n")
    print(markdown(musts), markdown(rows), sep="\n\n")


if __name__ == "__main__":
    main()
