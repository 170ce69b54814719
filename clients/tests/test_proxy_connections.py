"""How many connections the proxy opens to the upstream server."""

from __future__ import annotations

import asyncio

import httpx

from stopscan_clients.proxy import proxy
from stopscan_clients.proxy._app import _Connections

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


async def opened(times: int, at_once: int) -> int:
    """Sends ``at_once`` requests at once, ``times`` times. Returns how many connections the upstream server gets."""
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


def test_requests_one_after_the_other_share_a_connection() -> None:
    assert asyncio.run(opened(3, 1)) == 1


def test_requests_at_once_have_a_connection_each_and_leave_it_to_the_next() -> None:
    assert asyncio.run(opened(3, 5)) == 5


def test_a_request_does_not_look_at_the_connections_of_a_thousand_others() -> None:
    """Requests that run at the same time have separate pools of httpcore. When all shared one pool, each request looked
    at all connections of the pool, and texts began 10 seconds late."""

    async def pools() -> None:
        connections = _Connections()
        async with connections.one() as first, connections.one() as second:
            assert first is not second
        async with connections.one() as third:
            assert third in (first, second)
        connections.IDLE = 1
        async with connections.one(), connections.one():
            pass
        assert len(connections._idle) == 1
        await connections.aclose()
        assert not connections._idle

    asyncio.run(pools())
