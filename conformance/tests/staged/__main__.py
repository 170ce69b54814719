"""`python -m staged`: prints its port and serves all of them."""

from __future__ import annotations

import asyncio

import uvicorn

from staged.app import Staged, application
from staged.defects import DEFECTS
from staged.dimensions import MUTANTS
from staged.faults import FAULTS
from staged.unusual import UNUSUAL
from staged.variants import OTHERS, VARIANTS


async def main() -> None:
    app = application(
        [
            Staged(),
            *OTHERS,
            *(one.staged for one in [*VARIANTS, *UNUSUAL]),
            *(one.staged() for one in [*DEFECTS, *MUTANTS, *FAULTS]),
        ]
    )
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving


asyncio.run(main())
