"""How many of the wrong servers of `staged.dimensions` the choices of cases find.

    python conformance/tests/measure_mutants.py [--only GLOB] [--choices default deep thorough]

plays the default cases for its API to each until a case fails, to those that pass all of it `--deep`, then
`--thorough`, and prints what failed and what passes. Exit status 1: a server passes all of that.
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

CHOICES: dict[str, dict[str, bool]] = {"default": {}, "deep": {"deep": True}, "thorough": {"thorough": True}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="the servers' names")
    parser.add_argument("--choices", nargs="+", choices=CHOICES, default=[*CHOICES])
    options = parser.parse_args()
    command = [sys.executable, "-m", "staged"]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        chosen = unseen = [one for one in MUTANTS if fnmatch(one.name, options.only)]
        for choice in options.choices:
            unseen = [one for one in unseen if not found(url, one, choice)]
            told = f"{choice} finds {len(chosen) - len(unseen)} of {len(chosen)}"
            print(told, *(f"not: {one.name}" for one in unseen), sep="\n  ", flush=True)
        process.terminate()
    sys.exit(int(bool(unseen)))


# On a busy machine, too, what is found is no answer that is merely late.
PATIENT = 60


def found(url: str, mutant: Mutant, choice: str) -> bool:
    server = Server(f"{url}/{quote(mutant.name)}", model="reciter", timeout=PATIENT)
    began = time.perf_counter()
    for case in chosen_cases(mutant, choice):
        result = case.run(server, level="advice")
        if result.outcome == "fail":
            print(f"{mutant.name} [{time.perf_counter() - began:.1f} s]: {case}: {result.detail[:160]}", flush=True)
            return True
    print(f"{mutant.name} [{time.perf_counter() - began:.1f} s]: PASSES", flush=True)
    return False


def chosen_cases(mutant: Mutant, choice: str) -> list[Case]:
    """Those first that are likely to find it, and of these the cheapest: what is found does not depend on the order."""
    likely = "generated" if mutant in [*places.MUTANTS, *looks.MUTANTS, *requests.MUTANTS, *state.MUTANTS] else "pace"
    first = {likely: 1, "wrong": 0, "rows": 0, "generated": 2 if likely == "pace" else 1, "cost": 3}
    return sorted(every_case(mutant.api, choice), key=lambda case: (first.get(case.topic, 2), effort(case)))


def effort(case: Case) -> int:
    """About how many tokens it takes."""
    if not isinstance(case._play, Generated):
        return 0
    point = case._play.point
    longest = point.place is None or point.script == "wide-deep"
    return (point.company + point.kept) * (4000 if longest else max(point.place or 0, point.length // 3))


@cache
def every_case(api: str, choice: str) -> list[Case]:
    return cases(api, **CHOICES[choice])


if __name__ == "__main__":
    main()
