"""The example server in a thread, with a model that counts its steps. Skips the module that needs it without mlx-lm."""

from __future__ import annotations

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
uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "server"))

from app import make_app  # noqa: E402
from engine import Engine  # noqa: E402
from parts import Form, Parts  # noqa: E402

__all__ = ["CountingEngine", "Engine", "Form", "Parts", "clients", "served"]


class CountingModel:
    """A model that keeps the width of the batch of each step, and raises `error` if it is set."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.widths: list[int] = []
        self.error: Exception | None = None

    def __call__(self, inputs: Any, **options: Any) -> Any:
        if self.error is not None:
            raise self.error
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
def served(engine: Engine, form: str = "hermes") -> Iterator[str]:
    """The URL of the example server."""
    config = uvicorn.Config(make_app(engine, form), port=0, log_level="warning", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
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


def clients(url: str) -> SimpleNamespace:
    """The official clients, and the model's name."""
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
