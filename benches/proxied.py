"""The kit's quick choice on a server alone and behind ``stopscan.proxy``, for "Behind the proxy" in
docs/conformance.md.

    python benches/proxied.py NAME --python PYTHON --api API … --log FILE [--seconds N]

``NAME`` is a server of ``benches/conformance.py``. The proxy runs with ``--api none``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import conformance

from stopscan_conformance import APIS, Case, Result, Server, cases
from stopscan_conformance.__main__ import run
from stopscan_conformance.gguf_file import write_gguf
from stopscan_conformance.reciter import Reciter

sys.path.append(str(Path(__file__).parents[1] / "tests" / "python" / "proxy"))

from running import running

DEAD = "generation thread died"  # mlx_lm.server says so from then on, with a 404
WHERE = ("alone", "proxied")
Sent = tuple[str, Case]
PROMISES = ("text", "finish", "late")
RESULTS = conformance.RESULTS / "proxied"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=conformance.SERVERS)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the server")
    parser.add_argument("--api", action="append", choices=APIS, required=True)
    parser.add_argument("--log", type=Path, required=True, help="the results so far: a run goes on where one has ended")
    parser.add_argument("--seconds", type=float, default=1e9, help="the run ends then")
    options = parser.parse_args()
    options.log.touch()
    known = {(at, case): Result(*result) for at, case, *result in map(json.loads, options.log.read_text().splitlines())}
    column = conformance.SERVERS[options.name]
    measured = measure(column, options.python, options.api, known, options.log, time.monotonic() + options.seconds)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{options.name}.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    for api, found in measured["apis"].items():
        for where, summary in found.items():
            kept = [f"{name} {'/'.join(map(str, summary['columns'][name]))}" for name in PROMISES]
            lost = {case: wrong for case, wrong in summary["broken"].items() if {*wrong} & {*PROMISES}}
            print(api, where, *kept, lost if where == "proxied" else "", flush=True)


def measure(
    column: conformance.Column,
    python: str,
    apis: list[str],
    known: dict[tuple[str, str], Result],
    log: Path,
    until: float,
) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        model, gguf = Reciter().write(Path(folder, "reciter")), Path(folder, "reciter.gguf")
        if "{gguf}" in column.command:
            write_gguf(Reciter(), model, gguf)
        places = {"python": python, "bin": str(Path(python).parent), "model": str(model), "gguf": str(gguf)}
        named = column.model and column.model.format(**places)
        # In any order, so that a run that is cut short is a fair sample.
        every = [
            (where, case) for api in apis for case in Random(0).sample(cases(api), len(cases(api))) for where in WHERE
        ]
        left = [(where, case) for where, case in every if (where, str(case)) not in known]
        while left and time.monotonic() < until:
            with conformance.served(column, places, Path(folder, "log")) as port:
                upstream = f"http://127.0.0.1:{port}"
                with running(upstream, "--api", "none") as proxy:
                    servers = {
                        where: Server(url, model=named, timeout=60)
                        for where, url in zip(WHERE, (upstream, proxy.url), strict=True)
                    }
                    left = asked(servers, left, known, log, until)
    measured = {
        api: {
            where: conformance.summary(
                {
                    case: known[at, str(case)]
                    for at, case in every
                    if (at, case.api) == (where, api) and (at, str(case)) in known
                }
            )
            for where in WHERE
        }
        for api in apis
    }
    return {
        "title": column.title,
        "versions": conformance.versions(python, column.packages),
        "date": date.today().isoformat(),
        "apis": json.loads(json.dumps(measured).replace(f"{folder}/", "")),
    }


def asked(
    servers: dict[str, Server], every: list[Sent], known: dict[tuple[str, str], Result], log: Path, until: float
) -> list[Sent]:
    """Runs the cases, and returns those that are left when the server has died of one of them, or the time is over."""
    with log.open("a") as lines:
        for number, (where, case) in enumerate(every):
            results: dict[Case, Result] = {}
            run(servers[where], [case], results)
            result = results[case]
            if number and DEAD in result.detail:
                return every[number:]
            known[where, str(case)] = result
            lines.write(json.dumps([where, str(case), result.outcome, result.detail, dict(result.columns)]) + "\n")
            lines.flush()
            if time.monotonic() > until:
                return every[number + 1 :]
    return []


if __name__ == "__main__":
    main()
