"""Sends the kit's cases to the reference server. Each case is a test.

Generated cases are left out, because they would take far longer; `stopscan-conformance` sends them. A few threads send
the cases at once, so that the cases share a batch. Cases that compare times come last, and for one API only, because
all APIs share the engine. The cases for Harmony go to another server, whose model writes in channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from quietly import quietly
from server_harness import CountingEngine, Engine, served

from stopscan.engines import CHAT, Defaults
from stopscan_conformance import Case, Result, Server, cases
from stopscan_conformance.apis import APIS

EVERY = [
    *(case for case in cases(*APIS) if case.topic != "generated"),
]
# The default of the tested server: on all routes, also those for text completions, stops fire only in the answer.
PROTECT = Defaults(CHAT)
HARMONY = [case for case in EVERY if case.api.startswith("harmony")]
APART = [case for case in EVERY if not case.timed and case not in HARMONY]
# Topics whose cases also ask for something besides stops (several rows). The server may refuse them.
MORE = ("rows",)
TIMED = [case for case in EVERY if case.timed and case.api == "openai-chat"]


@pytest.fixture(scope="module")
def results(checkpoint: Path) -> Iterator[dict[Case, Result]]:
    engine = CountingEngine(str(checkpoint))
    with served(engine, defaults=PROTECT) as url, ThreadPoolExecutor(8) as pool:
        found = run(url, pool, APART) | {case: quietly(case, Server(url)) for case in TIMED}
        with served(Engine(str(checkpoint)), "harmony", defaults=PROTECT) as other:
            found |= run(other, pool, HARMONY)
        yield found
    assert max(engine.model.widths) > 1


def run(url: str, pool: ThreadPoolExecutor, chosen: list[Case]) -> dict[Case, Result]:
    server = Server(url, timeout=120)  # seconds: the machine may be busy with other work
    return dict(zip(chosen, pool.map(lambda case: case.run(server), chosen), strict=True))


@pytest.mark.parametrize("case", [*APART, *HARMONY, *TIMED], ids=str)
def test_case(results: dict[Case, Result], case: Case) -> None:
    refused = case.topic in MORE or "json" in case.name.split("-")  # the server refuses `response_format` and `format`
    assert results[case].outcome in {"pass", *(["not supported"] if refused else [])}, results[case].detail
