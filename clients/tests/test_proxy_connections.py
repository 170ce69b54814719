"""How many connections the proxy opens to the upstream server."""

from __future__ import annotations

import asyncio

import httpx

from stopscan_clients.proxy import proxy
from stopscan_clients.proxy._app import _Connections

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


async def opened(times: int, at_once: int) -> int:
    """Sends ``times`` groups of ``at_once`` simultaneous requests. Returns how many connections the upstream server
    gets."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(0.2)
                writer.write(ANSWER)
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    app = proxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with (
        server,
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://proxy") as client,
    ):
        for _ in range(times):
            answers = await asyncio.gather(*[client.get("/v1/models") for _ in range(at_once)])
            assert {answer.status_code for answer in answers} == {200}
    return connections


def test_consecutive_requests_share_a_connection() -> None:
    assert asyncio.run(opened(3, 1)) == 1


def test_requests_at_once_have_a_connection_each() -> None:
    assert asyncio.run(opened(3, 5)) == 5


def test_a_request_looks_at_its_own_connection_alone() -> None:
    """Requests that run at the same time have separate pools of httpcore. When all shared one pool, each request looked
    at all connections of the pool, and texts began 10 seconds late."""

    async def pools() -> None:
        connections = _Connections()
        async with connections.pool() as first, connections.pool() as second:
            assert first is not second
        async with connections.pool() as third:
            assert third in (first, second)
        connections.IDLE = 1
        async with connections.pool(), connections.pool():
            pass
        assert len(connections._idle) == 1
        await connections.aclose()
        assert not connections._idle

    asyncio.run(pools())
