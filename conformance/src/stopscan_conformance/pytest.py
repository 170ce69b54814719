"""The cases as parameters of pytest, for a server's own test suite. This module is not a pytest plugin: import it.

from stopscan_conformance import Case, Server
from stopscan_conformance.pytest import cases, check

@pytest.mark.parametrize("case", cases("openai-chat"))
def test_stops(case: Case) -> None:
    check(case, Server("http://127.0.0.1:8000"))
"""

from __future__ import annotations

from typing import Any

import pytest

from stopscan_conformance.cases import Case
from stopscan_conformance.cases import cases as cases_of
from stopscan_conformance.client import Server
from stopscan_conformance.judge import Level
from stopscan_conformance.report import explained


def cases(*apis: str, deep: bool = False, seed: int = 0, timed: bool | None = None) -> list[Any]:
    """Returns a pytest parameter for each case that `stopscan_conformance.cases` returns for the named APIs.

    Cases that compare times come last. They need the server for themselves: leave them out with `timed=False` if tests
    run at the same time (`pytest -n`), and run only them with `timed=True`.
    """
    chosen = [case for case in cases_of(*apis, deep=deep, seed=seed) if timed in (None, case.timed)]
    return [pytest.param(case, id=str(case)) for case in sorted(chosen, key=lambda case: case.timed)]


def check(case: Case, server: Server, /, *, level: Level = "usual") -> None:
    """Runs the case on the server. Fails the test with a message that names the broken rules. Skips the test if the
    server does not support the case."""
    result = case.run(server, level=level)
    if result.outcome == "not supported":
        pytest.skip(result.detail)
    if result.outcome == "fail":
        pytest.fail("\n".join([result.detail, *explained(case, result, server)]), pytrace=False)
