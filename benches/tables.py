"""Writes benches/results/NAME.md from a run of the micro-benchmarks, and draws the charts of the documentation.

    pytest benches --benchmark-json=FILE; python benches/tables.py FILE

NAME.md is written only if the run has cases of `bench_NAME.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from report import markdown, options

RESULTS = Path(__file__).parent / "results"
Cases = list[dict[str, Any]]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="what --benchmark-json has written")
    run = json.loads(parser.parse_args().file.read_text())
    cases = sorted((case for case in run["benchmarks"] if "columns" in case["extra_info"]), key=file)
    RESULTS.mkdir(exist_ok=True)
    for name, of_file in groupby(cases, file):
        limits = [row for row in run["limits"] if row["file"] == f"bench_{name}"]
        heading = f"# {name}\n\n{run['datetime'][:10]}, {run['machine_info']['heading']}.\n"
        (RESULTS / f"{name}.md").write_text("\n".join([heading, *tables(list(of_file), limits)]))
    draw(cases)


def file(case: dict[str, Any]) -> str:
    return Path(case["fullname"].split("::")[0]).stem.removeprefix("bench_")


def tables(cases: Cases, limits: list[dict[str, str]]) -> Iterator[str]:
    """Yields a table of the limits, and one for each group of cases."""
    if limits:
        names = ("measure", "limit", "measured", "holds")
        yield markdown([names, *(tuple(row[name] for name in names) for row in limits)])
    for group in dict.fromkeys(case["group"] for case in cases):
        rows = [case["extra_info"] for case in cases if case["group"] == group]
        head = ("case", *rows[0]["columns"])
        body = [(row["case"], *(figure(value) for value in row["columns"].values())) for row in rows]
        yield f"## {group}\n\n{markdown([head, *body])}"


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.2f}"


def draw(cases: Cases) -> None:
    """Draws each chart for which the run has the cases."""
    import charts
    from workload import REALISTIC, windows

    times = {(file(case), case["group"], case["extra_info"]["case"]): case["extra_info"] for case in cases}
    counts = [1, 4, 16, 64, 256, 1000]
    ways = dict.fromkeys(name for _, group, name in times if group == "1000 stops")
    if ways:
        curves = {way: {count: times["text", f"{count} stops", way]["with_loop"] for count in counts} for way in ways}
        charts.time_over_stops(curves, "Time per delta, the loop over the deltas included", "time.svg")
        charts.withheld(windows("english")[0], REALISTIC)
    feeds = [("tokens", "english", f"`feed`, {count:,} stops") for count in counts]
    if times.keys() >= {*feeds}:
        bare = times["tokens", "english", "`DecodeStream.step`"]["columns"]["ns"]
        first = times[feeds[0]]["columns"]
        vllm = ("tokens", "DecodeStream and vLLM's way")
        curves = {
            "DecodeStream.step alone": dict.fromkeys(counts, bare),
            "DecodeStream and vLLM's way": {
                count: times[(*vllm, f"{count:,} stops")]["columns"]["ns"] for count in counts
            },
            "stopscan, TokenScanner.feed": {
                count: times[feed]["columns"]["ns"] for count, feed in zip(counts, feeds, strict=True)
            },
            "an empty Python method": dict.fromkeys(counts, first["ns"] / first["times an empty method"]),
        }
        charts.time_over_stops(curves, "Time per token, from its id to safe text", "tokens.svg")


if __name__ == "__main__":
    main()
