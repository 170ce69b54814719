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

from stopscan_conformance import _reciter_command, _report
from stopscan_conformance._apis import APIS
from stopscan_conformance._cases import Case, Result, cases
from stopscan_conformance._run import Terminated, run
from stopscan_conformance._select import Known, baseline, chosen, new, promises
from stopscan_conformance._server import Server


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["reciter"]:
        _reciter_command.main(arguments[1:])
        return 0
    options = _parser().parse_args(arguments)
    server = Server(options.url, model=options.model, api_key=options.api_key, timeout=options.timeout)
    results: dict[Case, Result] = {}

    def write() -> None:
        _report.write(server, results, json_path=options.json, junit_path=options.junit)

    try:
        known = baseline(options.baseline) if options.baseline else frozenset()
        write()  # an error should come before the run
        every = cases(*options.api, vectors=options.vectors, thorough=options.thorough, seed=options.seed)
        every = chosen(every, options.only)
        if not every:
            raise ValueError(f"no case is named by --only {' '.join(options.only)}")
        run(server, every, results, columns=promises(options.only), write=write)
    except KeyboardInterrupt:
        return _ended(130, server, results, write, known)
    except Terminated:
        return _ended(143, server, results, write, known)
    except (OSError, RuntimeError, ValueError) as error:
        status = _ended(2, server, results, write, frozenset())
        print(f"stopscan-conformance: {error}", file=sys.stderr)
        return status
    return _ended(_status(results, known), server, results, write, known)


def _status(results: dict[Case, Result], known: Known) -> int:
    if all(result.outcome == "not supported" for result in results.values()):
        return 2
    return int(any(new(case, result, known) for case, result in results.items()))


def _ended(status: int, server: Server, results: dict[Case, Result], write: object, known: Known) -> int:
    if results:
        assert callable(write)
        write()
        _report.print_tables(results, server, known, shrink=status == 1)
        sys.stdout.flush()
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stopscan-conformance",
        description="Send stop sequences to a server that runs the checkpoint of `stopscan-conformance reciter DIR`, "
        "and print which promises it keeps.",
        epilog="Exit status 0: nothing failed (a refusal is no failure), or nothing new; 1: something did; 2: a usage "
        "error, or nothing could be measured; 130 and 143: an interrupt and SIGTERM.",
    )
    add = parser.add_argument
    add("url", help="where the server is, without /v1")
    add("--api", action="append", choices=APIS, default=[], help="only this one (may be given more than once)")
    add("--only", action="append", default=[], metavar="GLOB",
        help="only these promises, topics or cases (api/case); may be repeated")  # fmt: skip
    add("--thorough", action="store_true", help="all cases, not a quick choice of them")
    add("--seed", type=int, default=0, metavar="N", help="other requests at random (0)")
    add("--vectors", action="store_true", help="also send the scanner's vectors")
    add("--baseline", type=Path, metavar="FILE", help="what --json wrote: its failures are known")
    add("--model", help="the model's name (default: the first that /v1/models lists)")
    add("--api-key", metavar="KEY", help="what the server wants to know")
    add("--timeout", type=float, default=30.0, metavar="SECONDS",
        help="how long one answer may take (30); several at once, as many times as long")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write the results as JSON")
    add("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    return parser


if __name__ == "__main__":
    sys.exit(main())
