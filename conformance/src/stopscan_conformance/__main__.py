"""The command. `stopscan-conformance URL` sends the cases to a server that runs the kit's own tiny test model.
`stopscan-conformance reciter DIR` writes that model. After an interrupt or SIGTERM, it reports the results so far."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from stopscan_conformance import official
from stopscan_conformance import report as reports
from stopscan_conformance.apis import APIS
from stopscan_conformance.cases import Case, Result, cases
from stopscan_conformance.client import Server
from stopscan_conformance.judge import LEVELS
from stopscan_conformance.probe import Can
from stopscan_conformance.reciter import Reciter
from stopscan_conformance.report import Baseline, Report
from stopscan_conformance.run import Terminated, run
from stopscan_conformance.scripts import default_scripts


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["reciter"]:
        write_checkpoint(arguments[1:])
        return 0
    parser = _parser()
    options = parser.parse_args(arguments)
    if urlsplit(options.url).scheme not in ("http", "https"):
        parser.error(f"{options.url} is not the URL of a server, such as http://127.0.0.1:8000")
    lacking = [name for name in official.PACKAGES.values() if options.clients and find_spec(name) is None]
    if lacking:
        parser.error(f"--clients needs the package {lacking[0]}: install stopscan-conformance[clients]")
    server = Server(
        options.url, model=options.model, api_key=options.api_key, timeout=options.timeout, clients=options.clients
    )
    report = Report(server, options.seed, options.level)
    error_shown = None
    try:
        _find(report, options)
        status = report.status
    except KeyboardInterrupt:
        status = 130
    except Terminated:
        status = 143
    except (OSError, RuntimeError, ValueError) as error:
        status, error_shown = 2, error
    if report.results:
        reports.write(report, json_path=options.json, junit_path=options.junit, html_path=options.html)
        _print(*reports.summary(report, shrink=status == 1))
    if error_shown is not None:
        print(f"stopscan-conformance: {error_shown}", file=sys.stderr)
    return status


def _print(*lines: str) -> None:
    for line in lines:
        print(line)
    sys.stdout.flush()


def _find(report: Report, options: argparse.Namespace) -> None:
    """Sends the cases, and prints and writes their results as they come."""

    def write() -> None:
        reports.write(report, json_path=options.json, junit_path=options.junit, html_path=options.html)

    def can(api: str, abilities: Can) -> None:
        report.can[api] = abilities
        number = sum(case.api == api for case in report.every)
        _print(f"{api}: {number} cases", *(f"{api}: {line}" for line in abilities.lines()))

    def show(case: Case, result: Result) -> None:
        if not options.quiet or report.new(case, result).outcome == "fail":
            _print(*report.lines(case, result))

    if options.baseline:
        report.known = Baseline.read(options.baseline)
        for difference in report.known.other_than(options.seed):
            print(f"stopscan-conformance: {difference}", file=sys.stderr)
    write()  # writes files without results, so that a wrong path is an error before the run
    every = cases(*options.api, deep=options.deep, thorough=options.thorough, seed=options.seed)
    report.every = reports.chosen(every, options.only)
    columns = reports.promises(options.only)

    def counts(case: Case, result: Result) -> Result | None:
        return reports.limited(result, columns, report.level, case.api) if columns else result

    run(report.server, report.every, report.results, level=report.level, counts=counts, can=can, show=show, write=write)
    report.complete = True
    if not report.results:
        raise ValueError(f"none of the {len(report.every)} chosen cases tests the promise {' or '.join(columns)}")


def write_checkpoint(arguments: Sequence[str]) -> None:
    """`stopscan-conformance reciter DIR` writes the default checkpoint."""
    parser = argparse.ArgumentParser(
        prog="stopscan-conformance reciter", description="Write a checkpoint that recites the default scripts."
    )
    parser.add_argument("directory", type=Path, help="the folder for the checkpoint")
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="also write it for llama.cpp; needs the package gguf")
    parser.add_argument(
        "--layers", type=int, default=1, metavar="N", help="the number of layers, which do nothing but take time (1)"
    )
    options = parser.parse_args(arguments)
    if options.layers < 1:
        parser.error("--layers must be at least 1")
    if options.gguf:
        try:
            from stopscan_conformance.gguf_file import write_gguf  # gguf is an extra
        except ImportError:
            parser.error("--gguf needs the package gguf: install stopscan-conformance[gguf]")
    reciter = Reciter()
    directory = reciter.write(options.directory, layers=options.layers)
    if options.gguf:
        write_gguf(reciter, options.gguf, layers=options.layers)
    size = sum(file.stat().st_size for file in (*directory.iterdir(), *filter(None, [options.gguf])))
    print(
        f"wrote {size / 1e6:.1f} MB: {' and '.join(map(str, filter(None, [directory, options.gguf])))}, which "
        f"{'recite' if options.gguf else 'recites'} {len(default_scripts())} scripts"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stopscan-conformance",
        description="Send stop sequences to a server that runs the checkpoint of `stopscan-conformance reciter DIR`, "
        "and print which rules the server keeps. For the checkpoint, see `stopscan-conformance reciter --help`.",
        epilog="Exit status: 0 without failures, or without new ones (a refusal is not a failure); 1 with failures; 2 "
        "for a usage error, or if nothing could be measured; 130 after an interrupt; 143 after SIGTERM.",
    )
    add = parser.add_argument
    add("url", help="the URL of the server, without /v1")
    add("--api", action="append", choices=APIS, default=[], metavar="API",
        help="test only this API (may be repeated): " + ", ".join(APIS) + "; the "
        "last two are tested only if named")  # fmt: skip
    add("--level", choices=LEVELS, default="usual",
        help="the rules that make a run fail if they are broken: those that the API documents, also those that the "
        "engines agree on (usual, the default), or also advice")  # fmt: skip
    add("--only", action="append", default=[], metavar="GLOB",
        help="only this promise, topic or case (API/NAME); may be repeated; if promises and cases are named, only "
        "these promises are judged in these cases")  # fmt: skip
    add("--deep", action="store_true", help="also cases with long answers")
    add("--thorough", action="store_true", help="also a very large number of further cases")
    add("--seed", type=int, default=0, metavar="N", help="the seed of the random requests (0)")
    add("--baseline", type=Path, metavar="FILE", help="a file of an earlier --json: only new failures count")
    add("--model", help="the model's name (default: the first that /v1/models lists)")
    add("--api-key", metavar="KEY", help="the API key of the server")
    add("--timeout", type=float, default=30.0, metavar="SECONDS",
        help="the most time for one answer (30); multiplied by the number of requests at once")  # fmt: skip
    add("--clients", action="store_true", help="also read the answers with the official clients (extra `clients`)")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON")
    add("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    add("--html", type=Path, metavar="FILE", help="write the results as a page, with those of --baseline beside them")
    add("--quiet", action="store_true", help="print only failures, not each case")
    return parser


if __name__ == "__main__":
    sys.exit(main())
