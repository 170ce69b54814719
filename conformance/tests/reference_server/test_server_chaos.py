"""The server still answers after failures of the engine, clients that leave, and malformed bodies."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from server_harness import CountingEngine, Engine, running, served

from stopscan_conformance.reciter import Reciter

LONG = 2_000
CHAT = [{"role": "user", "content": "[long]"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": CHAT},
    "/v1/completions": {"prompt": "[long]"},
    "/v1/responses": {"input": "[long]"},
    "/v1/messages": {"messages": CHAT, "max_tokens": LONG},
    "/api/chat": {"messages": CHAT},
    "/api/generate": {"prompt": "[long]"},
    "/generate": {"text": "[long]"},
}
COUNT = {"prompt": "[count]", "stop": "5"}


class FailingBatch:
    """A batch of mlx-lm whose `method` fails when it is called for the `number`th time."""

    def __init__(self, batch: Any, method: str, number: int) -> None:
        self._batch = batch
        self._method = method
        self._left = number

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._left -= 1
            if self._left == 0:
                raise RuntimeError("injected")
        return getattr(self._batch, name)


class FailingEngine(Engine):
    """Replaces the next batch by `failing(batch)`. (An engine makes a new batch after a row has broken the old one.)"""

    failing: Callable[[Any], Any] | None = None

    def batch(self, model: Any) -> Any:
        change, self.failing = self.failing, None
        made = super().batch(model)
        return change(made) if change else made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    reciter = Reciter({"long": ["word "] * LONG, "count": "123456789"}, special_tokens=[])
    return str(reciter.write(tmp_path_factory.mktemp("chaos") / "reciter"))


@pytest.fixture(scope="module")
def engine(model: str) -> CountingEngine:
    return CountingEngine(model)


@pytest.fixture(scope="module")
def client(engine: CountingEngine) -> Iterator[httpx.Client]:
    with served(engine) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def serves(client: httpx.Client) -> bool:
    return client.post("/v1/completions", json=COUNT).json()["choices"][0]["text"] == "1234"


def empties(engine: Engine) -> bool:
    """Waits until the engine has no rows, not even of clients that are gone. Returns False after 30 seconds."""
    deadline = time.monotonic() + 30
    while engine.rows and time.monotonic() < deadline:
        time.sleep(0.01)
    return engine.rows == 0


def comes_to_its_end(engine: CountingEngine) -> bool:
    """Waits until the engine has no rows. Returns False if the model makes no step for 30 seconds."""
    steps, deadline = 0, time.monotonic() + 30
    while engine.rows and time.monotonic() < deadline:
        if steps != (steps := len(engine.model.widths)):
            deadline = time.monotonic() + 30
        time.sleep(0.01)
    return engine.rows == 0


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("method", ["insert", "next_generated", "remove", "close"])
def test_a_failure_reaches_who_waits_and_the_server_goes_on(model: str, method: str, number: int) -> None:
    engine = FailingEngine(model)
    engine.failing = lambda batch: FailingBatch(batch, method, number)
    with served(engine) as url, httpx.Client(base_url=url, timeout=60) as client, ThreadPoolExecutor(8) as pool:
        engine.send(broken_row(engine))  # the first batch fails, and the next is a `FailingBatch`
        for _ in range(3):
            with client.stream("POST", "/v1/completions", json={**COUNT, "stream": True}):
                pass
            answers = list(pool.map(lambda _: client.post("/v1/completions", json=COUNT), range(8)))
            assert {answer.status_code for answer in answers} <= {200, 500}
            for answer in answers:
                if answer.status_code == 500:
                    assert answer.json()["error"]["message"].startswith("the engine ")
        assert serves(client)
        assert empties(engine)
    assert str(engine.failure) == "the server is shutting down"


def broken_row(engine: Engine) -> Any:
    class Broken:
        uid = None
        prompt, max_tokens, sampler, scanner = None, 1, None, None

        def put(self, step: object) -> None:
            pass

    return Broken()


@pytest.mark.parametrize("path", BODIES)
def test_failure_in_mid_stream(client: httpx.Client, engine: CountingEngine, path: str) -> None:
    # The model fails after 20 steps. The error is set in advance, because the model may have made its last step by the
    # time that the test has read some lines.
    engine.model.error, engine.model.left = RuntimeError("out of memory"), 20
    try:
        with client.stream("POST", path, json={**BODIES[path], "stream": True}) as response:
            assert response.status_code == 200
            lines = [*response.iter_lines()]
    finally:
        engine.model.error = None
    assert sum("word" in line for line in lines) > 5
    events = [json.loads(line.removeprefix("data: ")) for line in lines if "{" in line]
    if "sequence_number" in events[-1]:
        assert events[-1]["sequence_number"] == events[-2]["sequence_number"] + 1
    said = events[-1]
    message = "the engine failed: out of memory"
    expected: dict[str, Any] = {
        "/v1/messages": {"type": "error", "error": {"type": "api_error", "message": message}},
        "/v1/responses": {
            "type": "error", "sequence_number": said.get("sequence_number"), "code": "server_error",
            "message": message, "param": None,
        },
        "/generate": {"error": {"message": message}},
        "/api/chat": {"error": message},
        "/api/generate": {"error": message},
    }  # fmt: skip
    openai = {"error": {"message": message, "type": "server_error", "param": None, "code": None}}
    assert said == expected.get(path, openai)
    assert serves(client)


def test_an_engine_that_cannot_start_again_says_so(model: str) -> None:
    engine = FailingEngine(model)

    def refuse(batch: Any) -> Any:
        raise RuntimeError("no device")

    with served(engine) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert serves(client)
        engine.failing = refuse
        engine.send(broken_row(engine))
        deadline = time.monotonic() + 30
        while engine.failure is None and time.monotonic() < deadline:
            time.sleep(0.01)
        for answer in (client.get("/v1/models"), client.get("/api/tags")):
            assert (answer.status_code, "no device" in answer.text) == (503, True)
        for path, body in BODIES.items():
            for stream in (False, True):
                answer = client.post(path, json={**body, "stream": stream})
                assert (answer.status_code, "no device" in answer.text) == (503, True), "a stream was a 200"


def test_a_model_that_cannot_be_loaded_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Engine(str(tmp_path))


def test_streams_that_are_left(client: httpx.Client, engine: CountingEngine) -> None:
    chosen = random.Random(0)

    def leave(number: int) -> None:
        path = chosen.choice([*BODIES])
        with client.stream("POST", path, json={**BODIES[path], "stream": True}) as response:
            lines = response.iter_lines()
            for _ in range(chosen.randrange(8)):
                next(lines, None)

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(leave, range(200)))
    assert empties(engine)
    assert serves(client)


def test_slow_readers_hold_up_nobody(client: httpx.Client, engine: CountingEngine) -> None:
    with client.stream("POST", "/v1/completions", json={**BODIES["/v1/completions"], "stream": True}) as response:
        assert response.status_code == 200
        assert serves(client)
        assert comes_to_its_end(engine)  # although nobody reads the stream
        assert sum("word" in line for line in response.iter_lines()) == LONG


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc")
def test_many_requests_leave_nothing(model: str) -> None:
    def resident() -> int:
        return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096

    with running(model) as (process, url), httpx.Client(base_url=url, timeout=60) as client:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda _: serves(client), range(500)))
            before = resident()
            assert all(pool.map(lambda _: serves(client), range(9_500)))
        # Less than a thousand bytes for each request, so not even the request's texts are kept.
        assert resident() - before < 9_000_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["model", "messages", "prompt", "input", "text", "stop", "stop_sequences", "stop_token_ids", "patterns", "protect",
     "start_protected", "max_tokens", "stream", "options", "sampling_params", "tools", "tool_choice", "temperature",
     "top_p", "n", "system", "instructions", "stream_options", "input_ids", "logprobs"]
)  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(extra=st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_malformed_bodies(client: httpx.Client, path: str, extra: dict[str, Any]) -> None:
    short = json.loads(json.dumps(BODIES[path]).replace("[long]", "[count]"))
    answer = client.post(path, content=json.dumps({**short, **extra}))  # may have Infinity, which is not JSON
    assert answer.status_code in (200, 400, 404)
    if answer.status_code != 200:
        error = answer.json()["error"]
        message = error if isinstance(error, str) else error["message"]
        assert message
        assert "Traceback" not in message


def test_the_server_goes_on_after_all_that(client: httpx.Client, engine: CountingEngine) -> None:
    assert serves(client)
    assert empties(engine)
