"""mlx-lm's server by itself, which the kit must not pass, and with stopscan, which it must."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from stopscan_conformance import Server, cases
from stopscan_conformance.reciter import Reciter

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")

# What else a request says beside stops is mlx-lm's own to answer.
OTHER_TOPICS = ("generated", "rows", "wrong")
# The routes differ in their form alone, so a part of the cases is enough for the second.
CASES = [
    case
    for every in (cases("openai-chat"), cases("openai-completions")[::4])
    for case in every
    if not case.timed and case.topic not in OTHER_TOPICS
]
RESET = ("ConnectError", "ReadError", "RemoteProtocolError")
EXPECTED = {
    "no-stop": (),
    "held-at-the-limit": (),
    "one-token": (),  # it stops, and does not say at what, which is not judged
    "three-tokens": ("text", "cost"),
    "never-in-a-run": ("text",),
    "held-at-eos": ("text",),
}


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def served(tmp_path: Path, *command: str) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = str(Reciter().write(tmp_path / "reciter"))
    command = (sys.executable, "-m", *command, "--model", model, "--port", str(port))
    log = tmp_path / "log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            while not listens(port):
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            yield Server(f"http://127.0.0.1:{port}", model="default_model")
        finally:
            process.terminate()


def test_mlx_lm_server_with_stopscan_keeps_the_promises_of_stops(tmp_path: Path) -> None:
    with served(tmp_path, "stopscan.mlx_lm.server", "--protect", "reasoning") as server, ThreadPoolExecutor(4) as pool:
        results = dict(zip(CASES, pool.map(lambda case: case.run(server), CASES), strict=True))
        # mlx-lm's server queues five connections and resets others, as it would for any client.
        reset = [case for case, result in results.items() if any(error in result.detail for error in RESET)]
        results |= {case: case.run(server) for case in reset}
    # The routes are mlx-lm's own: its streams say "chat.completion".
    form = "a chunk has 'chat.completion' as object"
    wrong = {
        str(case): result
        for case, result in results.items()
        if {*result.wrong} - {"form"} or not (result.columns.get("form") or form).startswith(form)
    }
    assert wrong == {}


def test_plain_mlx_lm_server_does_not(tmp_path: Path) -> None:
    chosen = [case for case in CASES if case.api == "openai-chat" and not case.stream and case.name in EXPECTED]
    with served(tmp_path, "mlx_lm", "server") as server:
        results = {case.name: case.run(server) for case in chosen}
    assert {name: result.wrong for name, result in results.items()} == EXPECTED
    assert results["three-tokens"].detail.startswith("text '1, 2, 3  4, 5, 6, 7, 8', not '1, 2, 3 '")
