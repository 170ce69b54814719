from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture(scope="session")
def url(reciter: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from server_harness import Engine, served

    with served(Engine(str(reciter.write(tmp_path_factory.mktemp("model") / "reciter")))) as url:
        yield url


@pytest.fixture(scope="session")
def client(url: str) -> SimpleNamespace:
    return clients(url)


@pytest.fixture(scope="session")
def harmony(checkpoint: Path) -> Iterator[SimpleNamespace]:
    """The clients of a server whose model speaks in channels."""
    from server_harness import Engine, served

    with served(Engine(str(checkpoint)), "harmony") as url:
        yield clients(url)


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
