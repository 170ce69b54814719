"""Functions that send a request through an official client and a transport, with the same call for every API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import httpx2
import ollama
import openai
import wire
from apis import MESSAGES, genai
from replay import Recording

from stopscan_clients import AsyncStopTransport, StopTransport

APIS = ("chat", "completions", "responses", "anthropic", "gemini", "ollama", "generate")

Ask = Callable[..., Any]


def endless(api: str) -> Recording:
    """An answer whose third delta completes a stop. The server waits there for the client to leave."""
    events = wire.WIRES[api](["one E", "N", "D two", *["more"] * 100])
    last = next(number for number, event in enumerate(events, 1) if "D two" in str(event))
    return Recording(events, pause=last)


def is_gone(recording: Recording) -> bool:
    return recording.gone.wait(10) and recording.sent == recording.pause


def asker(url: str, api: str, transport: StopTransport) -> Ask:
    """Returns a function that asks a model for an answer, streamed or whole, through an official client."""
    if api in ("ollama", "generate"):
        made: Any = ollama.Client(host=url, transport=transport)
    elif api == "anthropic":
        made = anthropic.Anthropic(
            base_url=url, api_key="none", max_retries=0, http_client=httpx2.Client(transport=transport)
        )
    elif api == "gemini":
        made = genai.Client(api_key="none", http_options={"base_url": url, "client_args": {"transport": transport}})
    else:
        made = openai.OpenAI(
            base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=httpx.Client(transport=transport)
        )
    return lambda model, **options: _sent(made, api, model, **options)


def async_asker(url: str, api: str, transport: AsyncStopTransport) -> Ask:
    """Like `asker`, but with an async client, so each call returns a coroutine."""
    if api in ("ollama", "generate"):
        made: Any = ollama.AsyncClient(host=url, transport=transport)
    elif api == "anthropic":
        http = httpx2.AsyncClient(transport=transport)
        made = anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0, http_client=http)
    elif api == "gemini":
        # Without this httpx client, the async client of google-genai would use aiohttp, and not the transport.
        options = {"base_url": url, "httpx_async_client": httpx2.AsyncClient(transport=transport)}
        made = genai.Client(api_key="none", http_options=options).aio
    else:
        http_client = httpx.AsyncClient(transport=transport)
        made = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=http_client)
    return lambda model, **options: _sent(made, api, model, **options)


def _sent(made: Any, api: str, model: str, stream: bool = True, **options: Any) -> Any:
    if api == "chat":
        return made.chat.completions.create(model=model, messages=MESSAGES, stream=stream, **options)
    if api == "completions":
        return made.completions.create(model=model, prompt="hi", stream=stream, **options)
    if api == "responses":
        return made.responses.create(model=model, input="hi", stream=stream, **options)
    if api == "anthropic":
        return made.messages.create(model=model, messages=MESSAGES, max_tokens=99, stream=stream, **options)
    if api == "gemini":
        generate = made.models.generate_content_stream if stream else made.models.generate_content
        return generate(model=model, contents="hi", **options)
    if api == "ollama":
        return made.chat(model=model, messages=MESSAGES, stream=stream, **options)
    return made.generate(model=model, prompt="hi", stream=stream, **options)
