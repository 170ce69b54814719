"""Which wrong servers of `staged.faults` the default cases find, and which right ones of `staged.unusual` they fail.

    python conformance/tests/measure_faults.py [--only GLOB] [--right]

asks each wrong server the cases of its API until one fails, and prints which, with the kind of rule that the server
breaks. With `--right` asks each unusual right server all cases of its APIs and prints those that fail. Exit status 1: a
wrong server passes, or a right one fails. Uses nothing of the kit but its public names.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import quote

from staged.faults import FAULTS
from staged.unusual import UNUSUAL

from stopscan_conformance import Server, cases

# On a busy machine, too, what is found is no answer that is merely late.
PATIENT = 60


@contextmanager
def served() -> Iterator[str]:
    command = [sys.executable, "-m", "staged"]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def failures(url: str, name: str, api: str) -> Iterator[str]:
    server = Server(f"{url}/{quote(name)}", model="reciter", timeout=PATIENT)
    for case in cases(api):
        result = case.run(server)
        if result.outcome == "fail":
            yield f"{case}: {result.detail[:160]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="GLOB", help="the servers' names")
    parser.add_argument("--right", action="store_true", help="ask the unusual right servers")
    options = parser.parse_args()
    wrong = [(fault.name, fault.api, fault.kind) for fault in FAULTS]
    right = [(one.staged.name, api, "right") for one in UNUSUAL for api in one.apis]
    asked = [one for one in (right if options.right else wrong) if fnmatch(one[0], options.only)]
    bad = 0
    with served() as url:
        for name, api, kind in asked:
            began = time.perf_counter()
            found = failures(url, name, api)
            told = [*found] if options.right else [first] if (first := next(found, None)) else []
            bad += bool(told) if options.right else not told
            print(f"{name} [{api}, {kind}, {time.perf_counter() - began:.0f} s]", *told or ["PASSES"], sep="\n  ")
            sys.stdout.flush()
    print(f"{bad} of {len(asked)} {'right servers fail' if options.right else 'wrong servers pass'}")
    sys.exit(int(bad > 0))


if __name__ == "__main__":
    main()
