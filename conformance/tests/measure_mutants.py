"""How many of the wrong servers of `staged.dimensions` the choices of cases find.

    python conformance/tests/measure_mutants.py [--only GLOB]

plays the quick choice for its API to each until a case fails, to those that pass all of it `--thorough`, and prints
what failed and what passes. Exit status 1: the quick choice finds less than 95 %, or a server passes `--thorough`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from urllib.parse import quote

from staged.dimensions import MUTANTS, looks, places, requests, state
from staged.dimensions.mutant import Mutant

from stopscan_conformance import Case, Server, cases
from stopscan_conformance.plays import Generated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="the servers' names")
    options = parser.parse_args()
    command = [sys.executable, "-m", "staged"]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        chosen = [one for one in MUTANTS if fnmatch(one.name, options.only)]
        unseen = [one for one in chosen if not found(url, one, thorough=False)]
        passing = [one for one in unseen if not found(url, one, thorough=True)]
        process.terminate()
    print(f"the quick choice finds {len(chosen) - len(unseen)} of {len(chosen)}; not:", *names(unseen), sep="\n  ")
    print(f"--thorough finds {len(chosen) - len(passing)} of {len(chosen)}; not:", *names(passing), sep="\n  ")
    sys.exit(int(bool(passing) or len(unseen) > len(chosen) * 0.05))


def names(mutants: list[Mutant]) -> list[str]:
    return [one.name for one in mutants]


# On a busy machine, too, what is found is no answer that is merely late.
PATIENT = 60


def found(url: str, mutant: Mutant, *, thorough: bool) -> bool:
    server = Server(f"{url}/{quote(mutant.name)}", model="reciter", timeout=PATIENT)
    began = time.perf_counter()
    for case in chosen_cases(mutant, thorough):
        result = case.run(server)
        if result.outcome == "fail":
            print(f"{mutant.name} [{time.perf_counter() - began:.1f} s]: {case}: {result.detail[:160]}", flush=True)
            return True
    print(f"{mutant.name} [{time.perf_counter() - began:.1f} s]: PASSES", flush=True)
    return False


def chosen_cases(mutant: Mutant, thorough: bool) -> list[Case]:
    """Those first that are likely to find it, and of these the cheapest: what is found does not depend on the order."""
    likely = "generated" if mutant in [*places.MUTANTS, *looks.MUTANTS, *requests.MUTANTS, *state.MUTANTS] else "pace"
    first = {likely: 1, "wrong": 0, "rows": 0, "generated": 2 if likely == "pace" else 1, "cost": 3}
    return sorted(every_case(mutant.api, thorough), key=lambda case: (first.get(case.topic, 2), effort(case)))


def effort(case: Case) -> int:
    """About how many tokens it takes."""
    if not isinstance(case._play, Generated):
        return 0
    point = case._play.point
    longest = point.place is None or point.script == "wide-deep"
    return (point.company + point.kept) * (4000 if longest else max(point.place or 0, point.length // 3))


@cache
def every_case(api: str, thorough: bool) -> list[Case]:
    return cases(api, thorough=thorough)


if __name__ == "__main__":
    main()
