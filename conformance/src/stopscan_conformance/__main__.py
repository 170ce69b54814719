"""`stopscan-conformance URL` sends the cases to a server that runs the reciting checkpoint; `stopscan-conformance
reciter DIR` writes the checkpoint.

Exit status 0: nothing failed, or nothing new; 1: something did; 2: a usage error, or nothing could be measured; 130 and
143: an interrupt and SIGTERM, after which the results so far are there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from stopscan_conformance import official, reciter
from stopscan_conformance import report as reports
from stopscan_conformance.apis import APIS
from stopscan_conformance.cases import Case, Result, cases
from stopscan_conformance.client import Server
from stopscan_conformance.judge import LEVELS
from stopscan_conformance.probe import Can
from stopscan_conformance.report import Baseline, Report
from stopscan_conformance.run import Terminated, run


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["reciter"]:
        reciter.main(arguments[1:])
        return 0
    parser = _parser()
    options = parser.parse_args(arguments)
    if urlsplit(options.url).scheme not in ("http", "https"):
        parser.error(f"{options.url} is no URL of a server, such as http://127.0.0.1:8000")
    lacking = [name for name in official.PACKAGES.values() if options.clients and find_spec(name) is None]
    if lacking:
        parser.error(f"--clients needs the package {lacking[0]}: install stopscan-conformance[clients]")
    server = Server(
        options.url, model=options.model, api_key=options.api_key, timeout=options.timeout, clients=options.clients
    )
    report = Report(server, options.seed, options.level)
    told = None
    try:
        _find(report, options)
        status = report.status
    except KeyboardInterrupt:
        status = 130
    except Terminated:
        status = 143
    except (OSError, RuntimeError, ValueError) as error:
        status, told = 2, error
    if report.results:
        reports.write(report, json_path=options.json, junit_path=options.junit)
        _print(*reports.summary(report, shrink=status == 1))
    if told is not None:
        print(f"stopscan-conformance: {told}", file=sys.stderr)
    return status


def _print(*lines: str) -> None:
    for line in lines:
        print(line)
    sys.stdout.flush()


def _find(report: Report, options: argparse.Namespace) -> None:
    """Sends the cases, tells what is found, and writes it meanwhile."""

    def write() -> None:
        reports.write(report, json_path=options.json, junit_path=options.junit)

    def can(api: str, found: Can) -> None:
        report.can[api] = found
        number = sum(case.api == api for case in report.every)
        _print(f"{api}: {number} cases", *(f"{api}: {line}" for line in found.lines()))

    def told(case: Case, result: Result) -> None:
        if not options.quiet or report.new(case, result).outcome == "fail":
            _print(*report.lines(case, result))

    if options.baseline:
        report.known = Baseline.read(options.baseline)
        for difference in report.known.other_than(options.seed):
            print(f"stopscan-conformance: {difference}", file=sys.stderr)
    write()  # an error should come before the run
    every = cases(
        *options.api, deep=options.deep, thorough=options.thorough, vectors=options.vectors, seed=options.seed
    )
    report.every = reports.chosen(every, options.only)
    columns = reports.promises(options.only)

    def counts(case: Case, result: Result) -> Result | None:
        return reports.limited(result, columns, report.level, case.api) if columns else result

    run(report.server, report.every, report.results, level=report.level, counts=counts, can=can, told=told, write=write)
    report.complete = True
    if not report.results:
        raise ValueError(f"none of the {len(report.every)} cases tests {' or '.join(columns)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stopscan-conformance",
        description="Send stop sequences to a server that runs the checkpoint of `stopscan-conformance reciter DIR`, "
        "and print which rules the server keeps. `stopscan-conformance reciter --help` tells of the checkpoint.",
        epilog="Exit status 0: nothing failed (a refusal is no failure), or nothing new; 1: something did; 2: a usage "
        "error, or nothing could be measured; 130 and 143: an interrupt and SIGTERM.",
    )
    add = parser.add_argument
    add("url", help="where the server is, without /v1")
    add("--api", action="append", choices=APIS, default=[], metavar="API",
        help="only this one (may be repeated): " + ", ".join(APIS) + "; the last "
        "four only if they are named")  # fmt: skip
    add("--level", choices=LEVELS, default="usual",
        help="what fails a run: the rules that the API documents, also those that the engines agree on (usual, the "
        "default), or also advice")  # fmt: skip
    add("--only", action="append", default=[], metavar="GLOB",
        help="only this promise, topic or case (API/NAME); may be repeated: the promises that are named count, of the "
        "cases that are named")  # fmt: skip
    add("--deep", action="store_true", help="long answers, too")
    add("--thorough", action="store_true", help="very many more cases")
    add("--seed", type=int, default=0, metavar="N", help="other requests at random (0)")
    add("--vectors", action="store_true", help="also send the vectors: the named streams of stopscan's own tests")
    add("--baseline", type=Path, metavar="FILE", help="what --json wrote earlier: only other failures count")
    add("--model", help="the model's name (default: the first that /v1/models lists)")
    add("--api-key", metavar="KEY", help="the key that the server wants")
    add("--timeout", type=float, default=30.0, metavar="SECONDS",
        help="how long one answer may take (30); several at once, as many times as long")  # fmt: skip
    add("--clients", action="store_true", help="the official clients judge, too (the extra `clients`)")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON")
    add("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    add("--quiet", action="store_true", help="a line for a failure only, not for each case")
    return parser


if __name__ == "__main__":
    sys.exit(main())
