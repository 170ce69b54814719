"""Runs ``AsyncLLM`` in tests that are not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.v1.engine.async_llm import AsyncLLM


class Engine:
    """The engine, and the event loop that it belongs to."""

    def __init__(self, checkpoint: Path) -> None:
        self._runner = asyncio.Runner()
        self.engine = self.run(self._make(checkpoint))

    async def _make(self, checkpoint: Path) -> AsyncLLM:
        options = {"gpu_memory_utilization": 0.1, "enforce_eager": True, "dtype": "float32", "max_model_len": 512}
        return AsyncLLM.from_engine_args(AsyncEngineArgs(str(checkpoint), **options))

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(coroutine)

    def close(self) -> None:
        self.engine.shutdown()
        self._runner.close()


async def collect(outputs: AsyncIterator[Any]) -> list[Any]:
    return [output async for output in outputs]
