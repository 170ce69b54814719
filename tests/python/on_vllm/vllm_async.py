"""``AsyncLLM`` in a test that is not asynchronous, and one whose outputs come otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from copy import copy
from pathlib import Path
from types import SimpleNamespace
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


class Staged:
    """The engine, whose outputs come in another order, and which keeps what it was asked."""

    def __init__(self, engine: AsyncLLM, arrange: Callable[[list[Any]], list[Any]], parser: str = "") -> None:
        self._engine = engine
        self._arrange = arrange
        self.params: Any = None
        self.get_tokenizer = engine.get_tokenizer
        self.input_processor = engine.input_processor
        config = SimpleNamespace(reasoning_parser=parser)
        self.vllm_config = SimpleNamespace(structured_outputs_config=config)

    async def generate(self, prompt: str, params: Any, request_id: str, **options: Any) -> AsyncIterator[Any]:
        self.params, self.options = params, options
        for output in self._arrange(await collect(self._engine.generate(prompt, params, request_id, **options))):
            yield output


def at_once(outputs: list[Any]) -> list[Any]:
    """As to a reader who is late."""
    first, *others = outputs
    for output in others:
        first.add(output, aggregate=True)
    (answer,) = first.outputs
    if answer.logprobs:
        # The reciter is always sure: as of a model that is less so with each token.
        for place, position in enumerate(answer.logprobs):
            for logprob in position.values():
                logprob.logprob = -float(place)
        answer.cumulative_logprob = -float(sum(range(len(answer.logprobs))))
    return [first]


def one_by_one(outputs: list[Any]) -> list[Any]:
    """All of the second answer, and then the first."""
    parts = []
    for output in outputs:
        for answer in output.outputs:
            parts.append(copy(output))
            parts[-1].outputs = [answer]
    return sorted(parts, key=lambda part: -part.outputs[0].index)
