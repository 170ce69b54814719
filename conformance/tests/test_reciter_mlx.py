"""The reciting checkpoint recites in mlx-lm and in its server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

RECITER = Reciter()


@pytest.fixture(scope="module")
def mlx(checkpoint: Path) -> tuple[Any, Any]:
    mlx_lm = pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    model, tokenizer = mlx_lm.load(str(checkpoint))
    return model, tokenizer


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("drafted", [False, True])
def test_mlx_lm_recites(mlx: tuple[Any, Any], name: str, drafted: bool) -> None:
    import mlx_lm

    model, tokenizer = mlx
    draft_model = model if drafted else None
    steps = list(mlx_lm.stream_generate(model, tokenizer, RECITER.prompt(name), draft_model=draft_model))
    assert [step.token for step in steps] == [*RECITER.token_ids(name), RECITER.eos_token_id]
    assert steps[-1].finish_reason == "stop"
    # mlx-lm's byte-level detokenizer takes a leading space off the text.
    assert "".join(step.text for step in steps) == RECITER.text(name).removeprefix(" ")


def test_mlx_lm_recites_in_a_batch(mlx: tuple[Any, Any]) -> None:
    import mlx_lm

    model, tokenizer = mlx
    prompts = [tokenizer.encode("x" * length + RECITER.prompt(name)) for length, name in enumerate(SCRIPTS)]
    assert mlx_lm.batch_generate(model, tokenizer, prompts).texts == [RECITER.text(name) for name in SCRIPTS]


def test_mlx_lm_finds_the_thinking_markers(mlx: tuple[Any, Any]) -> None:
    _, tokenizer = mlx
    assert (tokenizer.think_start, tokenizer.think_end) == THINKING
    assert RECITER.token_ids("think")[0] == tokenizer.think_start_id
    assert RECITER.token_id("think", "</think>") == tokenizer.think_end_id


def test_chat_template_renders_the_last_message(mlx: tuple[Any, Any]) -> None:
    _, tokenizer = mlx
    messages = [{"role": "system", "content": "Recite."}, {"role": "user", "content": RECITER.prompt("count")}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    assert prompt == tokenizer.encode(RECITER.prompt("count"))


def await_health(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"mlx_lm.server does not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def mlx_server(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("mlx_server") / "log"
    command = [sys.executable, "-m", "mlx_lm", "server", "--model", str(checkpoint), "--port", str(port)]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as server:
        try:
            await_health(port, server, log)
            yield port
        finally:
            server.terminate()


def post(port: int, route: str, body: dict[str, Any]) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", route, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200
    return response.read().decode()


@pytest.mark.parametrize("name", ["count", "echo", "harmony", "late", "emoji", "cjk", "empty"])
def test_mlx_lm_server_recites(mlx_server: int, name: str) -> None:
    messages = [{"role": "user", "content": RECITER.prompt(name)}]
    completion = json.loads(post(mlx_server, "/v1/completions", {"prompt": RECITER.prompt(name)}))
    assert completion["choices"][0]["text"] == RECITER.text(name)
    chat = json.loads(post(mlx_server, "/v1/chat/completions", {"messages": messages}))
    assert chat["choices"][0]["message"].get("content") == (RECITER.text(name) or None)
    assert chat["usage"]["completion_tokens"] == len(SCRIPTS[name]) + 1
    stream = post(mlx_server, "/v1/chat/completions", {"messages": messages, "stream": True})
    events = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: {")]
    deltas = [json.loads(event)["choices"][0]["delta"].get("content", "") for event in events]
    assert "".join(deltas) == RECITER.text(name)
