"""Runs the reference server in a thread, also with a model that counts its steps. Without mlx-lm, all tests of the
server are skipped."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

mlx_lm = pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")
SERVER = Path(__file__).parents[2] / "reference_server"
sys.path.insert(0, str(SERVER))

import uvicorn  # noqa: E402
from app import make_app  # noqa: E402
from engine import Engine  # noqa: E402
from parts import Parts  # noqa: E402

__all__ = ["CountingEngine", "Engine", "Parts", "clients", "running", "served"]


class CountingModel:
    """A model that appends the number of rows in a step to `widths`, and raises `error`, if set, after `left` steps."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.widths: list[int] = []
        self.error: Exception | None = None
        self.left = 0

    def __call__(self, inputs: Any, **options: Any) -> Any:
        if self.error is not None:
            if self.left == 0:
                raise self.error
            self.left -= 1
        self.widths.append(inputs.shape[0])
        return self._model(inputs, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class CountingEngine(Engine):
    model: CountingModel

    def load(self, path: str) -> tuple[Any, Any]:
        model, tokenizer = mlx_lm.load(path)
        self.model = CountingModel(model)
        return self.model, tokenizer


@contextmanager
def served(engine: Engine, form: str = "hermes", **options: Any) -> Iterator[str]:
    """Runs the reference server in a thread, and yields its URL."""
    app = make_app(engine, form, **options)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def running(model: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs the server in a process of its own, and yields the process and the URL."""
    command = [sys.executable, str(SERVER), model, "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "running on" in line)
        try:
            yield process, line.split("running on ")[1].split()[0]
        finally:
            process.kill()


def clients(url: str) -> SimpleNamespace:
    """Returns the official clients of the server at `url`, and the name of its model."""
    import anthropic
    import httpx
    import ollama
    import openai

    options: dict[str, Any] = {"api_key": "none", "max_retries": 0}
    http = httpx.Client(base_url=url, timeout=30)
    return SimpleNamespace(
        model=http.get("/v1/models").json()["data"][0]["id"],
        openai=openai.OpenAI(base_url=f"{url}/v1", **options),
        anthropic=anthropic.Anthropic(base_url=url, **options),
        ollama=ollama.Client(url),
        http=http,
    )
