"""Compares `vllm serve` without and with stopscan: prints what a streaming client has received after each token.

    "$(ci/vllm-env)/bin/python" examples/vllm_serve.py

`STOPSCAN_VLLM=1` in the server's environment switches the plugin on. You change no code. The model is tiny, so that it
runs on any CPU, and always writes the same text for a prompt. The official openai client sends a request with a stop of
19 characters, and then a request with a stop that also occurs in the model's reasoning.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openai import APIConnectionError, OpenAI

from stopscan_conformance.reciter import Reciter

RECITER = Reciter()


@contextmanager
def serve(model: str, **environment: str) -> Iterator[OpenAI]:
    """Starts `vllm serve`, and yields a client when the server answers."""
    options = ["--enforce-eager", "--dtype", "float32", "--max-model-len", "512", "--gpu-memory-utilization", "0.1"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [str(Path(sys.executable).with_name("vllm")), "serve", model, "--port", port, *options]
    server = subprocess.Popen(
        command,
        env={**os.environ, "HF_HUB_OFFLINE": "1", **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    try:
        while not answers(client):
            if server.poll() is not None:
                raise SystemExit(f"vllm serve ended with status {server.returncode}")
            time.sleep(0.5)
        yield client
    finally:
        server.terminate()
        server.wait()


def answers(client: OpenAI) -> bool:
    try:
        return bool(client.models.list().data)
    except APIConnectionError:
        return False


def stream(client: OpenAI, model: str) -> list[str]:
    """Returns the texts that the client received: one for each token up to the stop. A text may be empty."""
    chunks = client.completions.create(
        model=model,
        prompt=RECITER.prompt("late"),
        stop=["<|end_of_document|>"],
        max_tokens=40,
        temperature=0,
        stream=True,
        extra_body={"return_token_ids": True},
    )
    texts = []
    for chunk in chunks:
        for choice in chunk.choices:
            # If the client reads slowly, a chunk has several tokens. The last token gets the text of the chunk, and the
            # tokens before it get an empty text.
            texts += [""] * (len(choice.model_extra["token_ids"] or []) - 1) + [choice.text]
    return texts


def think(client: OpenAI, model: str) -> str:
    """Returns an answer whose stop also occurs in its reasoning."""
    answer = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": RECITER.prompt("think")}],
        stop=["END"],
        temperature=0,
        extra_body={"vllm_xargs": {"stopscan_protect": ["<think>", "</think>"]}},
    )
    return answer.choices[0].message.content or ""


def main() -> None:
    streams, thoughts = [], []
    with tempfile.TemporaryDirectory() as model:
        RECITER.write(model)
        for switch in ("0", "1"):
            with serve(model, STOPSCAN_VLLM=switch) as client:
                streams.append(stream(client, model))
                thoughts.append(think(client, model))
    print("token  vLLM      with stopscan")
    for number, (before, after) in enumerate(zip(*streams, strict=True), 1):
        print(f"{number:5}  {before!r:9} {after!r}")
    print(f"\nreasoning, vLLM:           {thoughts[0]!r}\nreasoning, with stopscan:  {thoughts[1]!r}")


if __name__ == "__main__":
    main()
