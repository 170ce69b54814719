from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stopscan.testing.reciter import Reciter


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from server_harness import Engine, served

    model = Reciter().write(tmp_path_factory.mktemp("model") / "reciter")
    with served(Engine(str(model))) as url:
        yield url


@pytest.fixture(scope="session")
def client(url: str) -> SimpleNamespace:
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
