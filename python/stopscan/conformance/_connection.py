"""One request to a server through its official client, and all that came of it."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cache, cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import ollama
import openai

from stopscan.conformance._apis import Api, End, Part, Request
from stopscan.conformance._wire import Wire

if TYPE_CHECKING:
    from stopscan.conformance._server import Server


class Connection:
    """The clients of one request. What they read is copied to `wire`."""

    def __init__(self, server: Server, wire: Wire) -> None:
        self.model = server.model
        self._url = server.url
        self._key = server.api_key
        self._http_options: dict[str, Any] = {
            "event_hooks": {"response": [wire.tap]},
            "timeout": None,  # the whole answer has a limit instead
            "verify": _tls(),
        }
        self._opened: list[Any] = []

    # Any: what the clients take is data here.
    @cached_property
    def openai(self) -> Any:
        http = openai.DefaultAsyncHttpxClient(**self._http_options)
        client = openai.AsyncOpenAI(
            base_url=f"{self._url}/v1", api_key=self._key or "none", http_client=http, max_retries=0
        )
        self._opened.append(client.close)
        return client

    @cached_property
    def anthropic(self) -> Any:
        http = anthropic.DefaultAsyncHttpxClient(**self._http_options)
        client = anthropic.AsyncAnthropic(
            base_url=self._url, api_key=self._key or "none", http_client=http, max_retries=0
        )
        self._opened.append(client.close)
        return client

    @cached_property
    def ollama(self) -> Any:
        client = ollama.AsyncClient(self._url, headers=self._headers, **self._http_options)
        self._opened.append(client._client.aclose)  # the client itself has a `close` since 0.6 only
        return client

    @cached_property
    def http(self) -> httpx.AsyncClient:
        client = httpx.AsyncClient(base_url=self._url, headers=self._headers, **self._http_options)
        self._opened.append(client.aclose)
        return client

    async def close(self) -> None:
        for close in self._opened:
            await close()

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}


@dataclass
class Answer:
    """What a client has in the end. `error` says why there is no more, and `faults` are breaches of the API's form.
    `first` and `seconds` are when the first text came, and the end."""

    wire: Wire = field(default_factory=Wire)
    chunks: list[str] = field(default_factory=list)
    reasoning: str = ""
    end: End | None = None
    head: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    timed_out: bool = False
    faults: list[str] = field(default_factory=list)
    first: float = 0.0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    @property
    def refused(self) -> bool:
        """Whether the server said that it does not know what it was asked."""
        return self.wire.status in (400, 404, 405, 413, 415, 422, 501)

    def add(self, part: Part) -> None:
        if (part.text or part.reasoning) and self.end is not None:
            self.fault("text after the finish reason")
        if part.text:
            self.chunks.append(part.text)
        self.reasoning += part.reasoning
        if part.finish is not None:
            if self.end is not None:
                self.fault("a second finish reason")
            self.end = (part.finish.reason, part.finish.matched_stop)
        self.head.update((key, value) for key, value in part.head.items() if value is not None)

    def fault(self, what: str) -> None:
        if what not in self.faults:
            self.faults.append(what)


async def ask(server: Server, api: Api, request: Request, /, *, leave: bool = False) -> Answer:
    """The answer of `server`, or what came of it in the server's time limit; with `leave`, the connection is closed
    when the first text has come. Raises nothing that the server can be the reason of.
    """
    answer = Answer()
    connection = Connection(server, answer.wire)
    began = perf_counter()
    try:
        await asyncio.wait_for(_read(connection, api, request, answer, leave, began), server.timeout)
    except asyncio.TimeoutError:
        answer.timed_out = True
        answer.error = f"no end of the answer in {server.timeout:g} s"
    except Exception as error:
        answer.error = _described(error, answer.wire)
    finally:
        answer.seconds = perf_counter() - began
        await connection.close()
    if not leave and answer.wire.status == 200:
        for fault in api.form(answer.wire, request):
            answer.fault(fault)
        if not server.has(answer.head.get("model")):
            answer.fault(f"the model is {answer.head['model']!r}, not {server.model!r}")
    return answer


async def _read(connection: Connection, api: Api, request: Request, answer: Answer, leave: bool, began: float) -> None:
    async with aclosing(api.read(connection, request)) as parts:  # type: ignore[type-var]
        async for part in parts:
            answer.add(part)
            if answer.chunks and not answer.first:
                answer.first = perf_counter() - began
            if leave and answer.chunks:
                return


def _described(error: Exception, wire: Wire) -> str:
    """The error in one line."""
    said = " ".join(wire.text.split())[:200] if wire.status not in (None, 200) else ""
    cause = error.__cause__ if wire.status is None else None
    parts = [str(wire.status) if said else type(error).__name__, said or str(error)[:200], str(cause or "")]
    return ": ".join(part for part in parts if part)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # it takes 20 ms
