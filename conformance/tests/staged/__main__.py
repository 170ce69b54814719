"""`python -m staged`: serves all staged servers, and prints their port."""

from __future__ import annotations

import asyncio

import uvicorn

from staged.app import Staged, application
from staged.right import OTHERS, RIGHT
from staged.wrong import WRONG


async def main() -> None:
    app = application([Staged(), *OTHERS, *(one.staged for one in [*RIGHT, *WRONG])])
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving


asyncio.run(main())
