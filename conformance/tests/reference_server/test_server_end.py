"""SIGTERM in mid-answer on every route: who waits gets the end in the form of the API, and the log has one line."""

from __future__ import annotations

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_harness import running

from stopscan_conformance.reciter import Reciter

CHAT = [{"role": "user", "content": "[long]"}]
TOKENS = 20_000
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": CHAT, "max_tokens": TOKENS},
    "/v1/completions": {"prompt": "[long]", "max_tokens": TOKENS},
    "/v1/responses": {"input": "[long]", "max_output_tokens": TOKENS},
    "/v1/messages": {"messages": CHAT, "max_tokens": TOKENS},
    "/api/chat": {"messages": CHAT, "options": {"num_predict": TOKENS}},
    "/api/generate": {"prompt": "[long]", "options": {"num_predict": TOKENS}},
    "/generate": {"text": "[long]", "sampling_params": {"max_new_tokens": TOKENS}},
}
MESSAGE = "the server is shutting down"
OPENAI = {"error": {"message": MESSAGE, "type": "server_error", "param": None, "code": None}}
ANTHROPIC = {"type": "error", "error": {"type": "overloaded_error", "message": MESSAGE}}
WHOLE: dict[str, Any] = {
    "/v1/messages": ANTHROPIC,
    "/generate": {"error": {"message": MESSAGE}},
    "/api/chat": {"error": MESSAGE},
    "/api/generate": {"error": MESSAGE},
}
STREAMED: dict[str, Any] = {
    **WHOLE,
    "/v1/messages": {"type": "error", "error": {"type": "api_error", "message": MESSAGE}},
    "/v1/responses": {"type": "error", "code": "server_error", "message": MESSAGE, "param": None},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    reciter = Reciter({"long": ["word "] * TOKENS}, special_tokens=[])
    folder = reciter.write(tmp_path_factory.mktemp("end") / "reciter")
    config = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))
    config["max_position_embeddings"] = 100_000
    Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def test_sigterm_ends_every_answer_in_the_form_of_its_api(model: str) -> None:
    begun = threading.Barrier(2 * len(BODIES) + 1)

    def streamed(url: str, path: str) -> Any:
        with httpx.stream("POST", f"{url}{path}", json={**BODIES[path], "stream": True}, timeout=120) as response:
            lines = response.iter_lines()
            next(line for line in lines if "word" in line)
            begun.wait(60)
            *_, last = [line for line in lines if "{" in line]
            return json.loads(last.removeprefix("data: "))

    def whole(url: str, path: str) -> tuple[int, Any]:
        begun.wait(60)
        answer = httpx.post(f"{url}{path}", json={**BODIES[path], "stream": False}, timeout=120)
        return answer.status_code, answer.json()

    with running(model, "--grace", "1") as (process, url), ThreadPoolExecutor(2 * len(BODIES)) as pool:
        streams = {path: pool.submit(streamed, url, path) for path in BODIES}
        answers = {path: pool.submit(whole, url, path) for path in BODIES}
        begun.wait(60)
        threading.Event().wait(1)  # the whole answers are on their way, too
        process.send_signal(signal.SIGTERM)
        for path in BODIES:
            last = streams[path].result()
            last.pop("sequence_number", None)
            assert last == STREAMED.get(path, OPENAI), path
            assert answers[path].result() == (503, WHOLE.get(path, OPENAI)), path
        _, log = process.communicate(timeout=60)
    assert "Traceback" not in log
    assert [line for line in log.splitlines() if not line.startswith("INFO")] == [
        f"WARNING:  The time of grace is over: {2 * len(BODIES)} answers are cut"
    ]


def test_who_does_not_read_is_not_waited_for_at_the_end(model: str) -> None:
    body = BODIES["/api/generate"]
    with (
        running(model, "--grace", "1") as (process, url),
        httpx.stream("POST", f"{url}/api/generate", json=body, timeout=120) as response,
    ):
        assert response.status_code == 200
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert "Traceback" not in log
