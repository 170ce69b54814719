"""Requests while stopscan fails at random: each gets the correct answer, or an error that ends only this request."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import Server, serving
from recital import recite

from stopscan.engines import Failures
from stopscan.mlx_lm import _row, server
from stopscan_conformance.reciter import SCRIPTS, Reciter

NAMES = ["count", "split", "inside", "straddle", "late", "nested", "held", "emoji", "cjk", "runs-end"]


def outcome(running: Server, reciter: Reciter, draw: random.Random) -> str:
    name, stream, limit = draw.choice(NAMES), draw.random() < 0.5, draw.choice([200, 200, 5])
    text = reciter.text(name)
    places = [draw.randrange(len(text)) for _ in range(draw.randint(0, 3))]
    stops = [text[place : place + draw.randint(1, 5)] for place in places]
    stops = [stop for stop in stops if "\ufffd" not in stop]
    body = {"prompt": reciter.prompt(name), "stop": stops, "stream": stream, "max_tokens": limit}
    status, reply = running.post("completions", body)
    events = [line.removeprefix("data: ") for line in reply.splitlines() if line.startswith("data: ")]
    reported = json.loads((events if events[-1] != "[DONE]" else events[:-1])[-1] if stream else reply)
    if "error" in reported:
        assert (status, reported["error"]["type"]) == (200 if stream else 500, "server_error")
        return "error"
    expected = recite(SCRIPTS[name], stops, max_tokens=limit)
    chunks = [json.loads(event) for event in events[:-1]] if stream else [reported]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == expected.text
    assert reported["choices"][0].get("matched_stop") == expected.matched
    return "right"


def test_requests_under_injected_faults(checkpoint: Path, reciter: Reciter, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, lock = random.Random(7), Lock()

    def failing(method: Any, rate: float) -> Any:
        def wrapper(*args: Any) -> Any:
            with lock:
                fails = draw.random() < rate
            if fails:
                raise RuntimeError("injected")
            return method(*args)

        return wrapper

    monkeypatch.setattr(server, "failures", Failures(logging.getLogger("stopscan.mlx_lm")))
    monkeypatch.setattr(Failures, "LIMIT", 1000)  # so that stopscan is never switched off
    monkeypatch.setattr(_row.BatchRow, "advance", failing(_row.BatchRow.advance, 0.02))
    monkeypatch.setattr(_row.RowScanner, "text", failing(_row.RowScanner.text, 0.005))
    with serving(server.main, "--model", checkpoint) as running, ThreadPoolExecutor(8) as pool:
        outcomes = Counter(pool.map(lambda seed: outcome(running, reciter, random.Random(seed)), range(500)))
    assert outcomes.total() == 500
    assert outcomes["error"] > 20
    assert outcomes["right"] > 300
