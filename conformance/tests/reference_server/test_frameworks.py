"""Tests LiteLLM and LangChain, with their version of openai, against the server that `ci/server-clients` starts."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

if "STOPSCAN_SERVER_URL" not in os.environ:
    pytest.skip("ci/server-clients runs this against a server", allow_module_level=True)

import langchain_anthropic
import langchain_ollama
import langchain_openai
import litellm

URL = os.environ["STOPSCAN_SERVER_URL"]
CHAT = [{"role": "user", "content": "[count]"}]
SIX = "1, 2, 3 hello world 4, 5, "
LITELLM = dict.fromkeys(("openai", "ollama_chat", "anthropic", "hosted_vllm"), SIX) | {
    "ollama": "## Title\nText"  # here LiteLLM puts the messages into a template, and the model answers the template
}


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Runs the garbage collector after each test, to close the responses that LiteLLM leaves open.

    LiteLLM never closes a stream's response. If the collector closes one later, while httpcore holds the lock of its
    pool in the same thread, the thread waits for that lock for ever.
    """
    yield
    gc.collect()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", LITELLM)
def test_litellm(provider: str, stream: bool) -> None:
    base = f"{URL}/v1" if provider in ("openai", "hosted_vllm") else URL
    options = {} if provider == "anthropic" else {"seed": 5}
    reply = litellm.completion(
        f"{provider}/reciter", CHAT, api_base=base, api_key="none", stop=["6"], stream=stream, max_tokens=99, **options
    )
    parts = [chunk.choices[0].delta.content or "" for chunk in reply] if stream else [reply.choices[0].message.content]
    assert "".join(parts) == LITELLM[provider]


MODELS: dict[str, Any] = {
    "OpenAI": lambda: langchain_openai.ChatOpenAI(model="reciter", base_url=f"{URL}/v1", api_key="none", seed=1),
    "Ollama": lambda: langchain_ollama.ChatOllama(model="reciter", base_url=URL, num_ctx=2048, seed=1),
    "Anthropic": lambda: langchain_anthropic.ChatAnthropic(model="reciter", base_url=URL, api_key="none"),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_langchain(model: Any) -> None:
    chat = model()
    assert chat.invoke("[count]", stop=["6"]).text == SIX
    assert "".join(chunk.text for chunk in chat.stream("[count]", stop=["6"])) == SIX
