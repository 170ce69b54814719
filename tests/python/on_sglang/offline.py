"""Prints answers of sglang's offline `Engine` as JSON: sync and async, whole and streamed. stopscan's plugin is on."""

from __future__ import annotations

import json
import sys
from typing import Any


async def asynchronous(engine: Any, sampling_params: dict[str, Any]) -> dict[str, Any]:
    whole = await engine.async_generate(**sampling_params)
    events = [event async for event in await engine.async_generate(**sampling_params, stream=True)]
    return {"async": shown(whole), "async stream": shown(events[-1])}


def shown(answer: dict[str, Any]) -> list[Any]:
    return [answer["text"], answer["meta_info"]["finish_reason"]["matched"]]


def main(checkpoint: str, prompt: str, params: str) -> None:
    from sglang import Engine

    sampling_params = {"prompt": prompt, "sampling_params": json.loads(params)}
    engine = Engine(
        model_path=checkpoint,
        device="cpu",
        attention_backend="torch_native",
        sampling_backend="pytorch",
        disable_radix_cache=True,
        mem_fraction_static=0.1,
        dtype="float32",
        max_total_tokens=4096,
        skip_server_warmup=True,
    )
    answers = {
        "sync": shown(engine.generate(**sampling_params)),
        "stream": shown([*engine.generate(**sampling_params, stream=True)][-1]),
    }
    answers |= engine.loop.run_until_complete(asynchronous(engine, sampling_params))
    engine.shutdown()
    print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
