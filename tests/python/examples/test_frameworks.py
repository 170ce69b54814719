"""LiteLLM and LangChain against `examples/server.py`. `ci/clients-tests` runs this in an environment of its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

litellm = pytest.importorskip("litellm", reason="litellm is not installed")
anthropic = pytest.importorskip("langchain_anthropic", reason="langchain-anthropic is not installed")
openai = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")

PROMPT, ANSWER = "one END two", "You say: one "


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Runs the garbage collector after each test, to close the responses that LiteLLM leaves open.

    LiteLLM never closes a stream's response. If the collector closes one later, while httpcore holds the lock of its
    pool in the same thread, the thread waits for that lock for ever.
    """
    yield
    gc.collect()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ["openai", "hosted_vllm", "anthropic"])
def test_litellm(url: str, provider: str, stream: bool) -> None:
    base = url if provider == "anthropic" else f"{url}/v1"
    messages = [{"role": "user", "content": PROMPT}]
    reply = litellm.completion(
        f"{provider}/echo", messages, api_base=base, api_key="none", stop=["END"], stream=stream, max_tokens=99
    )
    parts = [chunk.choices[0].delta.content or "" for chunk in reply] if stream else [reply.choices[0].message.content]
    assert "".join(parts) == ANSWER


MODELS: dict[str, Any] = {
    "OpenAI": lambda url: openai.ChatOpenAI(model="echo", base_url=f"{url}/v1", api_key="none", seed=1),
    "Anthropic": lambda url: anthropic.ChatAnthropic(model="echo", base_url=url, api_key="none"),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_langchain(url: str, model: Any) -> None:
    chat = model(url)
    assert chat.invoke(PROMPT, stop=["END"]).text == ANSWER
    assert "".join(chunk.text for chunk in chat.stream(PROMPT, stop=["END"])) == ANSWER
