"""A table of the official clients: how to ask each for a stream, and how to read the text and end of its events."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import anthropic
import ollama
import openai
import pytest

from stopscan import finish

genai = pytest.importorskip("google.genai", reason="google-genai is not installed")

MESSAGES: Any = [{"role": "user", "content": "hi"}]


@dataclass(frozen=True)
class OfficialClient:
    name: str
    open: Callable[[str, str], Iterable[Any]]  # server, model
    aopen: Callable[[str, str], Awaitable[AsyncIterable[Any]]] | None
    text: Callable[[Any], str | None]  # the text of one event
    finish: Callable[[Any], finish.Finish | None]
    usage: Callable[[Any], Any] = lambda event: None

    def __str__(self) -> str:
        return self.name

    def read(self, events: Iterable[Any]) -> str:
        return "".join(self.text(event) or "" for event in events)


@functools.cache
def client(cls: Any, url: str) -> Any:
    if cls in (ollama.Client, ollama.AsyncClient):
        return cls(host=url)
    if cls is genai.Client:
        return cls(api_key="none", http_options={"base_url": url})
    base = url if "nthropic" in cls.__name__ else f"{url}/v1"
    return cls(base_url=base, api_key="none", max_retries=0)


def chat(url: str, model: str, cls: Any = openai.OpenAI, **options: Any) -> Any:
    return client(cls, url).chat.completions.create(model=model, messages=MESSAGES, stream=True, **options)


def completions(url: str, model: str, cls: Any = openai.OpenAI, **options: Any) -> Any:
    return client(cls, url).completions.create(model=model, prompt="hi", stream=True, **options)


def responses(url: str, model: str, cls: Any = openai.OpenAI, **options: Any) -> Any:
    return client(cls, url).responses.create(model=model, input="hi", stream=True, **options)


def messages(url: str, model: str, cls: Any = anthropic.Anthropic, **options: Any) -> Any:
    return client(cls, url).messages.create(model=model, messages=MESSAGES, max_tokens=99, stream=True, **options)


def gemini(url: str, model: str) -> Any:
    return client(genai.Client, url).models.generate_content_stream(model=model, contents="hi")


async def agemini(url: str, model: str) -> Any:
    return await client(genai.Client, url).aio.models.generate_content_stream(model=model, contents="hi")


def ollama_chat(url: str, model: str, cls: Any = ollama.Client) -> Any:
    return client(cls, url).chat(model=model, messages=MESSAGES, stream=True)


def ollama_generate(url: str, model: str, cls: Any = ollama.Client) -> Any:
    return client(cls, url).generate(model=model, prompt="hi", stream=True)


@functools.cache
def _boto(url: str) -> Any:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
    return boto3.client("bedrock-runtime", endpoint_url=url, region_name="us-east-1", **keys)


def bedrock(url: str, model: str) -> Any:
    content = [{"role": "user", "content": [{"text": "hi"}]}]
    return _boto(url).converse_stream(modelId=model, messages=content)["stream"]


def awaited(open_: Callable[..., Any], cls: Any) -> Callable[[str, str], Any]:
    async def request(url: str, model: str) -> Any:
        return await open_(url, model, cls)

    return request


def run(function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """Runs a coroutine function in a new event loop. Drops cached clients, whose connections belong to an old loop."""
    client.cache_clear()
    return asyncio.run(function(*args))


APIS = [
    OfficialClient(
        "chat",
        chat,
        awaited(chat, openai.AsyncOpenAI),
        lambda e: e.choices[0].delta.content if e.choices else None,
        finish.from_openai,
        lambda e: e.usage,
    ),
    OfficialClient(
        "completions",
        completions,
        awaited(completions, openai.AsyncOpenAI),
        lambda e: e.choices[0].text if e.choices else None,
        finish.from_openai,
    ),
    OfficialClient(
        "responses",
        responses,
        awaited(responses, openai.AsyncOpenAI),
        lambda e: e.delta if e.type == "response.output_text.delta" else None,
        finish.from_responses,
        lambda e: e.response.usage if e.type == "response.completed" else None,
    ),
    OfficialClient(
        "anthropic",
        messages,
        awaited(messages, anthropic.AsyncAnthropic),
        lambda e: e.delta.text if e.type == "content_block_delta" and e.delta.type == "text_delta" else None,
        finish.from_anthropic,
        lambda e: e.usage.output_tokens if e.type == "message_delta" else None,
    ),
    OfficialClient(
        "gemini",
        gemini,
        agemini,
        lambda e: e.text,
        finish.from_gemini,
        lambda e: e.usage_metadata if e.candidates and e.candidates[0].finish_reason else None,
    ),
    OfficialClient(
        "ollama",
        ollama_chat,
        awaited(ollama_chat, ollama.AsyncClient),
        lambda e: e.message.content,
        finish.from_ollama,
        lambda e: e.eval_count,
    ),
    OfficialClient(
        "generate",
        ollama_generate,
        awaited(ollama_generate, ollama.AsyncClient),
        lambda e: e.response,
        finish.from_ollama,
        lambda e: e.eval_count,
    ),
    OfficialClient(
        "bedrock",
        bedrock,
        None,
        lambda e: e.get("contentBlockDelta", {}).get("delta", {}).get("text"),
        finish.from_bedrock,
        lambda e: e.get("metadata", {}).get("usage"),
    ),
]

BY_NAME = {api.name: api for api in APIS}
