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

from staged.generation import CHECKPOINT, step
from staged.serving import serve

FILE = Path(__file__).parents[2] / "examples" / "server.py"


async def recite(prompt: str, body: Any) -> AsyncGenerator[str, None]:
    script = prompt.rpartition("[")[2].removesuffix("]")
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for token in CHECKPOINT.token_ids(script):
        await step(script)
        yield decoder.decode(CHECKPOINT.tokens[token])
    if rest := decoder.decode(b"", True):
        yield rest


module = ModuleType("server")
exec(compile(FILE.read_text(encoding="utf-8"), str(FILE), "exec"), module.__dict__)
module.__dict__["model"] = recite
asyncio.run(serve(module.__dict__["app"], *map(int, sys.argv[1:])))
