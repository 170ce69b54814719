"""Measures a vLLM server with stopscan: how long a request with 300 patterns delays other requests, what a client gets
if stopscan fails during a request, and how soon an answer that repeats itself is ended.

"$(ci/vllm-env)/bin/python" benches/vllm_server.py
"""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from itertools import count, cycle
from typing import Any

import httpx
from report import options

from stopscan_conformance.reciter import Reciter

RECITER = Reciter({"split": ["This", " is", " the", " E", "ND", " of", " it"], "loop": ["round ", "and "] * 200})
PATTERNS = [f"TURN {number}[!?]" for number in range(300)]
# The points at which stopscan is made to fail: while it makes the detokenizer, at the first five tokens, at the end of
# the answer, or when the match is read.
FAULTS = ["making", 1, 2, 3, 4, 5, "end", "match"]
REQUESTS = 500


def serve_with_faults() -> None:
    """Runs `vllm serve`. A request may have a ``fault``, which is one of ``FAULTS``. Then stopscan fails at this point
    of the request. It is not turned off, however often it fails."""
    from vllm.entrypoints.cli.main import main

    from stopscan.engines import Failures
    from stopscan.vllm import _adapter

    Failures.LIMIT = sys.maxsize
    arm = _adapter.arm

    def faulty(theirs: Any, scanner: Any, *, made_of: Any, **state: Any) -> None:
        at = (made_of[1].sampling_params.extra_args or {}).get("fault")
        if at == "making":
            raise LookupError("injected")
        arm(theirs, scanner, made_of=made_of, **state)
        if at is not None:
            theirs.scanner = Failing(scanner, at)

    _adapter.arm = faulty
    sys.exit(main())


class Failing:
    """A scanner that fails on purpose. If ``at`` is a number, the scanner fails at that token, counted from 1. If
    ``at`` is a name, the scanner fails when its attribute of that name is read."""

    def __init__(self, scanner: Any, at: int | str) -> None:
        self._scanner, self._at = scanner, {"end": "flush"}.get(at, at) if isinstance(at, str) else at
        self._tokens = count(1)

    def __getattr__(self, name: str) -> Any:
        if name == self._at:
            raise LookupError("injected")
        return getattr(self._scanner, name)

    def feed(self, token_id: int) -> str:
        if next(self._tokens) == self._at:
            raise LookupError("injected")
        text: str = self._scanner.feed(token_id)
        return text


@contextmanager
def server(model: str) -> Iterator[httpx.Client]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    arguments = ["serve", model, "--served-model-name", "m", "--port", port, "--gpu-memory-utilization", "0.1"]
    arguments += ["--enforce-eager", "--dtype", "float32", "--max-model-len", "512"]
    environment = {**os.environ, "STOPSCAN_VLLM": "1", "STOPSCAN_VLLM_LIMITS": "patterns=300,bytes=65536"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([sys.executable, __file__, *arguments], env=environment, stdout=log, stderr=log)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as client:
                while not healthy(client):
                    if process.poll() is not None:
                        log.seek(0)
                        raise SystemExit(log.read().decode(errors="replace"))
                    time.sleep(0.5)
                yield client
        finally:
            process.terminate()
            process.wait()


def healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def longest_gap(client: httpx.Client, patterns: list[str]) -> float:
    """Returns the longest time in seconds that `/health` took to answer while a chat with 50 answers was running."""
    body = {"model": "m", "messages": [{"role": "user", "content": "[loop]"}], "n": 50, "temperature": 1}
    body |= {"max_tokens": 20, "vllm_xargs": {"stopscan_patterns": patterns} if patterns else {}}
    gaps, done = [0.0], threading.Event()

    def poll() -> None:
        with httpx.Client(base_url=client.base_url, timeout=600) as poller:
            while not done.wait(0.01):
                began = time.perf_counter()
                poller.get("/health")
                gaps.append(time.perf_counter() - began)

    thread = threading.Thread(target=poll)
    thread.start()
    answer = client.post("/v1/chat/completions", json=body)
    done.set()
    thread.join()
    assert answer.status_code == 200, answer.text
    return max(gaps)


def faulty_request(client: httpx.Client, number: int) -> str:
    """Sends a request in which stopscan fails, and returns how it ends. Every third request has a pattern, which only
    stopscan can find."""
    extra: dict[str, Any] = {"fault": FAULTS[number % len(FAULTS)]}
    body: dict[str, Any] = {"model": "m", "prompt": "[split]", "temperature": 0, "max_tokens": 40, "vllm_xargs": extra}
    if number % 3:
        body["stop"] = ["END"]
    else:
        extra["stopscan_patterns"] = ["E[N]D"]
    answer = client.post("/v1/completions", json=body)
    if answer.status_code != 200:
        return f"{'pattern' if number % 3 == 0 else 'stop'}: {answer.status_code}"
    choice = answer.json()["choices"][0]
    right = (choice["text"], choice["stop_reason"]) == ("This is the ", "END")
    return f"{'pattern' if number % 3 == 0 else 'stop'}: {'right' if right else choice}"


def main() -> None:
    options(__doc__).parse_args()
    print(f"{date.today()}, {platform.machine()}, CPython {platform.python_version()}\n")
    with tempfile.TemporaryDirectory() as model:
        RECITER.write(model)
        with server(model) as client:
            longest_gap(client, [])
            gaps: dict[int, list[float]] = {0: [], len(PATTERNS): []}
            for _, size in zip(range(6), cycle(gaps), strict=False):
                gaps[size].append(longest_gap(client, PATTERNS[:size]))
            for size, seconds in gaps.items():
                print(f"longest gap of /health, n=50, {size} patterns:", [f"{1000 * gap:.0f} ms" for gap in seconds])
            with ThreadPoolExecutor(16) as pool:
                ends = Counter(pool.map(lambda number: faulty_request(client, number), range(REQUESTS)))
            print(f"{REQUESTS} requests with a fault:", dict(ends), "alive:", healthy(client))
            for repeat in (None, True):
                body = {"model": "m", "prompt": "[loop]", "temperature": 0, "max_tokens": 300}
                body |= {"vllm_xargs": {"stopscan_repeat": repeat}} if repeat else {}
                answer = client.post("/v1/completions", json=body).json()
                (choice,) = answer["choices"]
                ended = choice["finish_reason"], choice["stop_reason"], answer["usage"]["completion_tokens"]
                print(f"a loop, stopscan_repeat {repeat}: {len(choice['text'])} characters, {ended}")


if __name__ == "__main__":
    serve_with_faults() if sys.argv[1:2] == ["serve"] else main()
