"""Lets the official clients read the recorded bytes of an answer. Needs the extra `clients`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from importlib import import_module
from typing import Any

import httpx

from stopscan_conformance.apis import Api, Request
from stopscan_conformance.wire import Wire

URL = "http://replayed"
SAID: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


async def fault(api: Api, request: Request, wire: Wire, text: str) -> str | None:
    """Returns None if the API's official client reads exactly `text` from the recorded answer, otherwise what is
    wrong."""
    package = next((name for begin, name in PACKAGES.items() if api.path.startswith(begin)), None)
    if package is None:
        return None
    client = import_module(package)
    # The mock transport must come from the HTTP package that the client uses. The kit's own `httpx` may be another
    # package.
    base = getattr(client, "DefaultAsyncHttpxClient", None)
    library = import_module(next(one.__module__ for one in base.__mro__[1:]).partition(".")[0]) if base else httpx
    answer = {"headers": {"content-type": wire.media_type}, "content": bytes(wire.body)}
    replay = library.MockTransport(lambda _: library.Response(200, **answer))
    try:
        async with library.AsyncClient(transport=replay) as http:
            joined = "".join([part async for part in READERS[package](client, http, replay, api, request.stream)])
    except Exception as error:
        return f"the client {package} cannot read it: {type(error).__name__}: {str(error)[:100]}"
    return None if joined == text else f"the client {package} reads {joined[:60]!r}, not {text[:60]!r}"


async def _each(reply: Any, stream: bool) -> AsyncIterator[Any]:
    if not stream:
        yield reply
        return
    async for part in reply:
        yield part


async def _openai(package: Any, http: Any, replay: Any, api: Api, stream: bool) -> AsyncIterator[str]:
    client = package.AsyncOpenAI(base_url=f"{URL}/v1", api_key="none", http_client=http, max_retries=0)
    if api.content == "messages":
        async for answer in _each(await client.chat.completions.create(**SAID, stream=stream), stream):
            for choice in answer.choices:
                yield (choice.delta if stream else choice.message).content or ""
    elif api.content == "prompt":
        async for answer in _each(await client.completions.create(model="m", prompt="hello", stream=stream), stream):
            for choice in answer.choices:
                yield choice.text or ""
    else:
        async for answer in _each(await client.responses.create(model="m", input="hello", stream=stream), stream):
            if not stream or answer.type == "response.output_text.delta":
                yield answer.delta if stream else answer.output_text


async def _anthropic(package: Any, http: Any, replay: Any, api: Api, stream: bool) -> AsyncIterator[str]:
    client = package.AsyncAnthropic(base_url=URL, api_key="none", http_client=http, max_retries=0)
    async for answer in _each(await client.messages.create(**SAID, max_tokens=9, stream=stream), stream):
        for block in answer.content if not stream else [answer.delta] if answer.type == "content_block_delta" else []:
            yield getattr(block, "text", None) or ""


async def _ollama(package: Any, http: Any, replay: Any, api: Api, stream: bool) -> AsyncIterator[str]:
    client = package.AsyncClient(URL, transport=replay)
    chat = api.content == "messages"
    reply = await (client.chat(**SAID, stream=stream) if chat else client.generate("m", "hello", stream=stream))
    async for answer in _each(reply, stream):
        yield (answer.message.content if chat else answer.response) or ""


PACKAGES: Mapping[str, str] = {"/v1/messages": "anthropic", "/v1/": "openai", "/api/": "ollama"}
READERS: Mapping[str, Callable[..., AsyncIterator[str]]] = {
    "openai": _openai, "anthropic": _anthropic, "ollama": _ollama,
}  # fmt: skip
