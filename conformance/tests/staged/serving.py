"""Serves an ASGI application on loopback, and prints its port."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn


async def serve(app: Any, port: int = 0) -> None:
    config = uvicorn.Config(app, port=port, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving
