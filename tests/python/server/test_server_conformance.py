"""Every cell of the matrix, and the vectors: what the official clients get from the example server.

All cases are sent by a few threads at once, so that they share the batch; each is a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from server_harness import CountingEngine, served

import stopscan.testing
from stopscan.conformance import Case, Result, Server, cases
from stopscan.conformance.vectors import reciter

VECTORS = Path(stopscan.testing.__file__).parent / "vectors"
CASES = cases(vectors=VECTORS)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Case, Result]]:
    engine = CountingEngine(str(reciter(VECTORS).write(tmp_path_factory.mktemp("vectors"))))
    with served(engine) as url, ThreadPoolExecutor(8) as pool:
        server = Server(url)
        yield dict(zip(CASES, pool.map(lambda case: case.run(server), CASES), strict=True))
    assert max(engine.model.widths) > 1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cell(results: dict[Case, Result], case: Case) -> None:
    assert results[case] == Result("pass")
