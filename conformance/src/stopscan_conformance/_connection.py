"""The official clients of one request, which copy what they read.

A client is imported when a case needs it: tests of engines import the package for the reciter alone.
"""

from __future__ import annotations

import ssl
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import httpx

from stopscan_conformance._server import Server
from stopscan_conformance._wire import Wire


class Connection:
    """The clients of one request, or of several in turn. What they read is copied to `wire`."""

    def __init__(self, server: Server) -> None:
        self.wire = Wire()
        self.model = server.model
        self._url = server.url
        self._key = server.api_key
        self._http_options: dict[str, Any] = {
            "event_hooks": {"response": [self._tap]},
            "timeout": None,  # the whole answer has a limit instead
            "verify": _tls(),
        }
        self._opened: list[Any] = []

    # Any: what the clients take is data here.
    @cached_property
    def openai(self) -> Any:
        import openai

        http = openai.DefaultAsyncHttpxClient(**self._http_options)
        client = openai.AsyncOpenAI(
            base_url=f"{self._url}/v1", api_key=self._key or "none", http_client=http, max_retries=0
        )
        self._opened.append(client.close)
        return client

    @cached_property
    def anthropic(self) -> Any:
        import anthropic

        http = anthropic.DefaultAsyncHttpxClient(**self._http_options)
        client = anthropic.AsyncAnthropic(
            base_url=self._url, api_key=self._key or "none", http_client=http, max_retries=0
        )
        self._opened.append(client.close)
        return client

    @cached_property
    def ollama(self) -> Any:
        import ollama

        client = ollama.AsyncClient(self._url, headers=self._headers, **self._http_options)
        self._opened.append(client._client.aclose)  # the client itself has a `close` since 0.6 only
        return client

    @cached_property
    def http(self) -> httpx.AsyncClient:
        client = httpx.AsyncClient(base_url=self._url, headers=self._headers, **self._http_options)
        self._opened.append(client.aclose)
        return client

    async def _tap(self, response: Any) -> None:
        await self.wire.tap(response)

    async def close(self) -> None:
        for close in self._opened:
            await close()

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}


@cache
def import_clients() -> None:
    """Imports what the connections use, before a server's time begins: on a busy machine that takes many seconds."""
    for name in ("anthropic", "ollama", "openai"):
        import_module(name)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # it takes 20 ms
