"""Rows (answers in the engine's batch) end at a stop or when their client is gone, and share the batch until then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from server_harness import CountingEngine, served

from stopscan_conformance.reciter import Reciter

LONG = 1_500


def steps_after(engine: CountingEngine) -> int:
    """Waits until the model makes no more steps, and returns the number of all its steps."""
    before = -1
    while before != len(engine.model.widths):
        before = len(engine.model.widths)
        time.sleep(0.2)
    return before


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> CountingEngine:
    reciter = Reciter({"long": ["word "] * LONG, "count": "123456789"}, special_tokens=[])
    return CountingEngine(str(reciter.write(tmp_path_factory.mktemp("long") / "reciter")))


@pytest.fixture(scope="module")
def client(long: CountingEngine) -> Iterator[httpx.Client]:
    with served(long) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


@pytest.mark.parametrize("stream", [True, False])
def test_disconnected_client_ends_its_row(client: httpx.Client, long: CountingEngine, stream: bool) -> None:
    before = steps_after(long)
    body = {"prompt": "[long]", "stream": stream}
    if stream:
        with client.stream("POST", "/v1/completions", json=body) as response:
            assert next(response.iter_lines()).startswith("data: ")
    else:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/v1/completions", json=body, timeout=0.1)
    assert 0 < steps_after(long) - before < LONG
    reply = client.post("/v1/completions", json={"prompt": "[count]", "stop": "5"}).json()
    assert reply["choices"][0]["text"] == "1234"


def test_stop_ends_its_row_at_once(client: httpx.Client, long: CountingEngine) -> None:
    before = steps_after(long)
    reply = client.post("/v1/completions", json={"prompt": "[long]", "stop": "word word word"}).json()
    assert reply["usage"]["completion_tokens"] == 3
    # One step more than tokens, because mlx-lm begins a step before it reads the result of the previous one.
    assert steps_after(long) - before == 4


def test_requests_share_the_batch(client: httpx.Client, long: CountingEngine) -> None:
    before = steps_after(long)
    stops = ["word " * count for count in (400, 300, 200)]

    def tokens(stop: str) -> int:
        reply = client.post("/v1/completions", json={"prompt": "[long]", "stop": stop}).json()
        assert reply["choices"][0]["text"] == ""
        assert reply["choices"][0]["matched_stop"] == stop
        return int(reply["usage"]["completion_tokens"])

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(tokens, stops)) == [400, 300, 200]
    steps_after(long)
    assert max(long.model.widths[before:]) == 3
    assert len(long.model.widths) - before < 400 + 300 + 200


def test_error_of_the_model(client: httpx.Client, long: CountingEngine) -> None:
    body = {"prompt": "[count]", "stop": "5"}
    long.model.error = RuntimeError("out of memory")
    failed = client.post("/v1/completions", json=body)
    long.model.error = None
    error = {"message": "the engine failed: out of memory", "type": "server_error", "param": None, "code": None}
    assert (failed.status_code, failed.json()) == (500, {"error": error})
    assert client.post("/v1/completions", json=body).json()["choices"][0]["text"] == "1234"
