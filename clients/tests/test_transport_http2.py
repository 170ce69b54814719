"""When httpcore 1.0.9 or httpcore2 2.16 closes an HTTP/2 stream, it does not tell the server. So the transport itself
resets the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
import trio
import wire
from h2_server import h2_serving
from replay import sse

from stopscan_clients import AsyncStopTransport, StopTransport
from stopscan_clients.transport import connection_of

packages = pytest.mark.parametrize("package", [httpx, httpx2], ids=["httpx", "httpx2"])
BODY = {"stream": True, "messages": []}


def endless() -> Iterator[bytes]:
    for text in ["one E", "ND two", *["more"] * 100_000]:
        yield sse(wire.chat_chunk([wire.chat_choice(content=text)]))


def short() -> Iterator[bytes]:
    yield from map(sse, wire.chat(["one"]))


@packages
def test_a_stop_resets_the_stream_alone(package: Any) -> None:
    with h2_serving(endless) as server:
        transport = StopTransport("END", transport=package.HTTPTransport(http1=False, http2=True))
        with package.Client(transport=transport) as client:
            for _ in range(3):
                server.reset.clear()
                answer = client.post(f"{server.url}/v1/chat/completions", json=BODY)
                assert (answer.http_version, b"two" in answer.content) == ("HTTP/2", False)
                assert server.reset.wait(5)
        assert server.connections == 1


@packages
def test_a_client_that_leaves_resets_the_stream(package: Any) -> None:
    with h2_serving(endless) as server:
        transport = StopTransport("never", transport=package.HTTPTransport(http1=False, http2=True))
        with (
            package.Client(transport=transport) as client,
            client.stream("POST", f"{server.url}/v1/chat/completions", json=BODY) as answer,
        ):
            next(answer.iter_bytes())
        assert server.reset.wait(5)


@packages
@pytest.mark.parametrize("run", [asyncio.run, lambda coroutine: trio.run(lambda: coroutine)], ids=["asyncio", "trio"])
def test_a_stop_resets_the_async_stream(package: Any, run: Any) -> None:
    async def read(url: str) -> None:
        transport = AsyncStopTransport("END", transport=package.AsyncHTTPTransport(http1=False, http2=True))
        async with package.AsyncClient(transport=transport) as client:
            for _ in range(2):
                answer = await client.post(f"{url}/v1/chat/completions", json=BODY)
                assert b"two" not in answer.content

    with h2_serving(endless) as server:
        run(read(server.url))
        assert server.reset.wait(5)
        assert server.connections == 1


@packages
def test_a_stream_that_ends_by_itself_is_not_reset(package: Any) -> None:
    with h2_serving(short) as server:
        transport = StopTransport("END", transport=package.HTTPTransport(http1=False, http2=True))
        with package.Client(transport=transport) as client:
            assert b"one" in client.post(f"{server.url}/v1/chat/completions", json=BODY).content
        assert not server.reset.is_set()


def test_a_stream_of_another_kind_is_not_reset() -> None:
    assert connection_of(httpx.ByteStream(b"")) is None
