"""Measures which wrong servers of `staged.wrong` the kit finds, and which right servers of `staged.right` it fails.

    python conformance/tests/measure.py wrong [--only GLOB] [--choices default deep thorough]
    python conformance/tests/measure.py right [--only GLOB] [--loops 4]

`wrong` sends each wrong server the default cases of its API until a case fails, and prints that case. A server that
passes them gets the `deep` cases, then the `thorough` ones. `right` sends each right server the default cases of its
APIs while `--loops` busy loops run, and prints the cases that fail. The exit status is 1 if a wrong server passes or a
right server fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from functools import cache
from itertools import islice
from urllib.parse import quote

from conftest import served
from staged.right import RIGHT
from staged.wrong import WRONG

from stopscan_conformance import APIS, Case, Server, cases

CHOICES: dict[str, dict[str, bool]] = {"default": {}, "deep": {"deep": True}, "thorough": {"thorough": True}}
LOOP = ("-c", "print(0, flush=True)\nwhile True: pass")
# The timeout of a request in seconds. It is long, because on a busy machine even a correct answer may be late.
PATIENT = 60
running = contextmanager(served)


@cache
def chosen(api: str, choice: str) -> list[Case]:
    """Returns the cases of an API. Those that compare times come last, because they take longest."""
    return sorted(cases(api, **CHOICES[choice]), key=lambda case: (case.timed, not case.single))


def failures(server: Server, every: Iterable[Case], level: str) -> Iterator[str]:
    for case in every:
        result = case.run(server, level=level)  # type: ignore[arg-type]
        if result.outcome == "fail":
            yield f"{case}: {result.detail[:160]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("wrong", "right"))
    parser.add_argument("--only", default="*", metavar="GLOB", help="the servers' names")
    parser.add_argument("--choices", nargs="+", choices=CHOICES, default=[*CHOICES])
    parser.add_argument("--loops", type=int, default=0, metavar="N", help="busy loops beside it (0)")
    options = parser.parse_args()
    if options.what == "wrong":
        asked = [(one.name, next(api for api in APIS if one.case.startswith(f"{api}-"))) for one in WRONG]
    else:
        asked = [(one.staged.name, api) for one in RIGHT for api in one.apis]
    asked = [one for one in asked if fnmatch(one[0], options.only)]
    with ExitStack() as stack:
        url, *_ = (stack.enter_context(running(*command)) for command in [("-m", "staged"), *[LOOP] * options.loops])
        bad = sum(told(url, *one, options) for one in asked)
    print(f"{bad} of {len(asked)} {options.what} servers {'pass' if options.what == 'wrong' else 'fail'}")
    sys.exit(int(bad > 0))


def told(url: str, name: str, api: str, options: argparse.Namespace) -> bool:
    """Prints the cases that a server fails. Returns whether the kit is wrong about the server: a wrong server passes
    all cases, or a right one fails a case."""
    server = Server(f"{url}/{quote(name)}", model="reciter", timeout=PATIENT)
    began = time.perf_counter()
    if options.what == "right":
        found = [*failures(server, chosen(api, "default"), "usual")]
    else:
        every = (one for choice in options.choices for one in failures(server, chosen(api, choice), "advice"))
        found = [*islice(every, 1)]
    seconds = time.perf_counter() - began
    print(f"{name} [{api}, {seconds:.0f} s]", *found or ["PASSES"], sep="\n  ", flush=True)
    return bool(found) == (options.what == "right")


if __name__ == "__main__":
    main()
