"""Every case of the kit, and the vectors: what the official clients get from the example server.

The cases are sent by a few threads at once, so that they share the batch; those that compare times come after them, for
one API, because all share the engine. Each is a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from server_harness import CountingEngine, served

from stopscan.conformance import Case, Result, Server, cases

EVERY = cases(vectors=True)
APART = [case for case in EVERY if not case.timed]
TIMED = [case for case in EVERY if case.timed and case.api == "openai-chat"]
KNOWN = {
    f"{api}-stream-usage-not-asked": "the server always sends a usage chunk"
    for api in ("openai-chat", "openai-completions")
}


@pytest.fixture(scope="module")
def results(checkpoint: Path) -> Iterator[dict[Case, Result]]:
    engine = CountingEngine(str(checkpoint))
    with served(engine) as url, ThreadPoolExecutor(8) as pool:
        server = Server(url)
        found = dict(zip(APART, pool.map(lambda case: case.run(server), APART), strict=True))
        yield found | {case: case.run(server) for case in TIMED}
    assert max(engine.model.widths) > 1


def marked(case: Case) -> object:
    reason = KNOWN.get(str(case))
    return pytest.param(case, id=str(case), marks=[pytest.mark.xfail(reason=reason, strict=True)] if reason else [])


@pytest.mark.parametrize("case", [marked(case) for case in [*APART, *TIMED]])
def test_case(results: dict[Case, Result], case: Case) -> None:
    assert results[case].outcome == "pass", results[case].detail
