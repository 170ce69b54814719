"""`stopscan-conformance URL`: the table of a server that runs the reciting checkpoint; `stopscan-conformance reciter
DIR` writes it.

Exit status 0: nothing failed, or nothing new; 1: something did; 2: a usage error, or nothing could be measured; 130 and
143: an interrupt and SIGTERM, after which the results so far are there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from stopscan_conformance import _files, _reciter_command
from stopscan_conformance._apis import APIS
from stopscan_conformance._baseline import Baseline
from stopscan_conformance._cases import cases
from stopscan_conformance._report import Report, print_tables
from stopscan_conformance._run import Terminated, run
from stopscan_conformance._select import chosen, promises
from stopscan_conformance._server import Server


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["reciter"]:
        _reciter_command.main(arguments[1:])
        return 0
    parser = _parser()
    options = parser.parse_args(arguments)
    if urlsplit(options.url).scheme not in ("http", "https"):
        parser.error(f"{options.url} is no URL of a server, such as http://127.0.0.1:8000")
    server = Server(options.url, model=options.model, api_key=options.api_key, timeout=options.timeout)
    report = Report(server, options.seed)
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
        _files.write(report, json_path=options.json, junit_path=options.junit)
        print_tables(report, shrink=status == 1)
        sys.stdout.flush()
    if told is not None:
        print(f"stopscan-conformance: {told}", file=sys.stderr)
    return status


def _find(report: Report, options: argparse.Namespace) -> None:
    """Sends the cases, and writes what is found meanwhile."""

    def write() -> None:
        _files.write(report, json_path=options.json, junit_path=options.junit)

    if options.baseline:
        report.known = Baseline.read(options.baseline)
        for difference in report.known.other_than(options.seed):
            print(f"stopscan-conformance: {difference}", file=sys.stderr)
    write()  # an error should come before the run
    every = cases(*options.api, vectors=options.vectors, thorough=options.thorough, seed=options.seed)
    report.every = chosen(every, options.only)
    columns = promises(options.only)
    run(report.server, report.every, report.results, columns=columns, write=write)
    report.complete = True
    if not report.results:
        raise ValueError(f"none of the {len(report.every)} cases tests {' or '.join(columns)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stopscan-conformance",
        description="Send stop sequences to a server that runs the checkpoint of `stopscan-conformance reciter DIR`, "
        "and print which promises the server keeps. `stopscan-conformance reciter --help` tells of the checkpoint.",
        epilog="Exit status 0: nothing failed (a refusal is no failure), or nothing new; 1: something did; 2: a usage "
        "error, or nothing could be measured; 130 and 143: an interrupt and SIGTERM.",
    )
    add = parser.add_argument
    add("url", help="where the server is, without /v1")
    add("--api", action="append", choices=APIS, default=[], help="only this one (may be given more than once)")
    add("--only", action="append", default=[], metavar="GLOB",
        help="only this promise, topic or case (API/NAME); may be repeated: the promises that are named count, of the "
        "cases that are named")  # fmt: skip
    add("--thorough", action="store_true", help="all cases, not a quick choice of them")
    add("--seed", type=int, default=0, metavar="N", help="other requests at random (0)")
    add("--vectors", action="store_true", help="also send the vectors: the named streams of stopscan's own tests")
    add("--baseline", type=Path, metavar="FILE", help="what --json wrote earlier: only other failures count")
    add("--model", help="the model's name (default: the first that /v1/models lists)")
    add("--api-key", metavar="KEY", help="the key that the server wants")
    add("--timeout", type=float, default=30.0, metavar="SECONDS",
        help="how long one answer may take (30); several at once, as many times as long")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write the results as JSON")
    add("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    return parser


if __name__ == "__main__":
    sys.exit(main())
