"""`python conformance/tests/example.py [PORT]`: serves `examples/server.py` with a model that recites the kit's texts,
and prints the port."""

from __future__ import annotations

import asyncio
import codecs
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from types import ModuleType
from typing import Any

import uvicorn
from staged.generation import CHECKPOINT, step

FILE = Path(__file__).parents[2] / "examples" / "server.py"


async def recite(prompt: str, body: Any) -> AsyncGenerator[str, None]:
    script = prompt.rpartition("[")[2].removesuffix("]")
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for token in CHECKPOINT.token_ids(script):
        await step(script)
        yield decoder.decode(CHECKPOINT.tokens[token])
    if rest := decoder.decode(b"", True):
        yield rest


async def main(port: int) -> None:
    module = ModuleType("server")
    exec(compile(FILE.read_text(encoding="utf-8"), str(FILE), "exec"), module.__dict__)
    module.__dict__["model"] = recite
    server = uvicorn.Server(uvicorn.Config(module.__dict__["app"], port=port, log_level="critical", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
