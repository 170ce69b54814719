"""`python -m stopscan.conformance URL`: the table of a server that runs the reciting checkpoint.

Exit status 0: all passed; 1: not all did; 2: a usage error, or a server that is down, slow or serves another model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from stopscan.conformance import _report
from stopscan.conformance._cases import APIS, Case, Result, cases
from stopscan.conformance._server import Server


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m stopscan.conformance",
        description="Send stop sequences to a server that runs the reciting checkpoint, and print what came of them.",
        epilog="Exit status 0: all passed; 1: not all did; 2: nothing could be measured.",
    )
    parser.add_argument("url", help="where the server is, without /v1")
    parser.add_argument("--api", action="append", choices=APIS, help="only this one (may be given more than once)")
    parser.add_argument("--model", help="the model's name (default: the first that /v1/models lists)")
    parser.add_argument(
        "--vectors", type=Path, metavar="FOLDER", help="also send these (see stopscan.conformance.vectors)"
    )
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="how long it may be silent (30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    options = parser.parse_args(arguments)
    server = Server(options.url, model=options.model, timeout=options.timeout)
    try:
        every = cases(*(options.api or ()), vectors=options.vectors)
        results = run(server, every)
    except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
        print(f"stopscan.conformance: {error}", file=sys.stderr)
        return 2
    _report.print_table(results)
    if options.json:
        _report.write_json(options.json, server, results)
    if options.junit:
        _report.write_junit(options.junit, results)
    return int(any(result.outcome != "pass" for result in results.values()))


def run(server: Server, every: Sequence[Case]) -> dict[Case, Result]:
    """The results of the cases, in their order, with a progress bar on a terminal."""
    console = Console(stderr=True)
    progress = track(every, "Sending", console=console, transient=True, disable=not console.is_terminal)
    return {case: case.run(server) for case in progress}


if __name__ == "__main__":
    sys.exit(main())
