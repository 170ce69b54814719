"""``vllm serve`` as a process, and its clients."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anthropic
import httpx
import openai


class Server:
    """A running server and its clients."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.openai = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)


@contextmanager
def serve(checkpoint: Path, log: Path, *options: str, **environment: str) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("vllm")), "serve", str(checkpoint), "--served-model-name", "reciter"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--gpu-memory-utilization", "0.1", "--enforce-eager"]
    command += ["--dtype", "float32", "--max-model-len", "512", "--enable-scale-out", *options]
    url = f"http://127.0.0.1:{port}"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environment})
    try:
        while not healthy(url):
            assert process.poll() is None, log.read_text()
            time.sleep(0.2)
        yield Server(url)
    finally:
        process.terminate()
        process.wait(60)


def healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False
