"""`python -m stopscan.conformance URL`: the table of a server that runs the reciting checkpoint.

Exit status 0: all passed; 1: not all did; 2: a usage error, or a server that is down, slow, locked or serves another
model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from stopscan.conformance import _report
from stopscan.conformance._apis import APIS
from stopscan.conformance._cases import Case, Result, cases
from stopscan.conformance._server import Server


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    server = Server(options.url, model=options.model, api_key=options.api_key, timeout=options.timeout)
    results: dict[Case, Result] = {}
    error = None
    try:
        for path in filter(None, (options.json, options.junit)):
            path.open("a").close()  # an error should come before the run
        run(server, cases(*(options.api or ()), vectors=options.vectors), results)
    except (OSError, RuntimeError) as caught:
        error = caught
    if results:
        _report.print_tables(results)
        if options.json:
            _report.write_json(options.json, server, results)
        if options.junit:
            _report.write_junit(options.junit, results)
    if error is not None:
        print(f"stopscan.conformance: {error}", file=sys.stderr)
        return 2
    return int(any(result.outcome != "pass" for result in results.values()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stopscan.conformance",
        description="Send stop sequences to a server that runs the checkpoint of `python -m stopscan.testing.reciter "
        "DIR`, and print which promises it keeps.",
        epilog="Exit status 0: all passed; 1: not all did; 2: nothing could be measured.",
    )
    add = parser.add_argument
    add("url", help="where the server is, without /v1")
    add("--api", action="append", choices=APIS, help="only this one (may be given more than once)")
    add("--model", help="the model's name (default: the first that /v1/models lists)")
    add("--api-key", metavar="KEY", help="what the server wants to know")
    add("--vectors", action="store_true", help="also send the scanner's vectors")
    add("--timeout", type=float, default=30.0, metavar="SECONDS", help="how long one answer may take (30)")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON")
    add("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    return parser


def run(server: Server, every: Sequence[Case], results: dict[Case, Result]) -> None:
    """Adds the results of the cases, in their order, with a progress bar on a terminal."""
    console = Console(stderr=True)
    for case in track(every, "Sending", console=console, transient=True, disable=not console.is_terminal):
        results[case] = case.run(server)


if __name__ == "__main__":
    sys.exit(main())
