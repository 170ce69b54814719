"""Runs the kit's checkpoint in mlx-lm. mlx-lm's server breaks rules about stops. With stopscan it must keep them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from stopscan_conformance import Server, cases
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")

RECITER = Reciter()
# The cases of these topics are left out, because they also test things that are mlx-lm's and not stopscan's.
OTHER_TOPICS = ("generated", "rows", "wrong")
# These cases are left out, because mlx-lm fails them with and without stopscan. It refuses options that are null, and
# lists of prompts. In log probabilities, it writes tokens as they stand in its vocabulary, and not their text.
OWN = ("options-that-are-null", "a-list-of-one-prompt", "logprobs-of-a-stop", "logprobs-of-released-text")
# The routes of chats and of completions differ only in the form of their answers. So the route of chats gets all cases,
# and the route of completions only every fourth.
CASES = [
    case
    for every in (cases("openai-chat"), cases("openai-completions")[::4])
    for case in every
    if not case.timed and case.topic not in OTHER_TOPICS and case.name not in OWN
]
RESET = ("ConnectError", "ReadError", "RemoteProtocolError")
EXPECTED = {
    "no-stop": (),
    "held-at-the-limit": (),
    "one-token": (),  # mlx-lm ends at a stop of one token. It does not name the stop, but the kit does not judge that
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
    model = str(RECITER.write(tmp_path / "reciter"))
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


def test_mlx_lm_with_stopscan_passes(tmp_path: Path) -> None:
    with served(tmp_path, "stopscan.mlx_lm.server", "--protect", "reasoning") as server, ThreadPoolExecutor(4) as pool:
        results = dict(zip(CASES, pool.map(lambda case: case.run(server), CASES), strict=True))
        # mlx-lm's server queues five connections and resets further ones. Cases with a reset connection run again.
        reset = [case for case, result in results.items() if any(error in result.detail for error in RESET)]
        results |= {case: case.run(server) for case in reset}
    # mlx-lm's chunks have a wrong form, which stopscan does not change: their object is "chat.completion".
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


@pytest.fixture(scope="module")
def mlx(checkpoint: Path) -> tuple[Any, Any]:
    import mlx_lm

    model, tokenizer = mlx_lm.load(str(checkpoint))
    return model, tokenizer


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("drafted", [False, True])
def test_mlx_lm_recites(mlx: tuple[Any, Any], name: str, drafted: bool) -> None:
    import mlx_lm

    model, tokenizer = mlx
    draft_model = model if drafted else None
    steps = list(mlx_lm.stream_generate(model, tokenizer, RECITER.prompt(name), draft_model=draft_model))
    assert [step.token for step in steps] == [*RECITER.token_ids(name), RECITER.eos_token_id]
    assert steps[-1].finish_reason == "stop"
    # mlx-lm's byte-level detokenizer removes a leading space from the text.
    assert "".join(step.text for step in steps) == RECITER.text(name).removeprefix(" ")


def test_mlx_lm_recites_in_a_batch(mlx: tuple[Any, Any]) -> None:
    import mlx_lm

    model, tokenizer = mlx
    prompts = [tokenizer.encode("x" * length + RECITER.prompt(name)) for length, name in enumerate(SCRIPTS)]
    assert mlx_lm.batch_generate(model, tokenizer, prompts).texts == [RECITER.text(name) for name in SCRIPTS]


def test_mlx_lm_finds_the_thinking_markers(mlx: tuple[Any, Any]) -> None:
    _, tokenizer = mlx
    assert (tokenizer.think_start, tokenizer.think_end) == THINKING
    assert RECITER.token_ids("think")[0] == tokenizer.think_start_id
    assert RECITER.token_id("think", "</think>") == tokenizer.think_end_id


def test_chat_template_renders_the_last_message(mlx: tuple[Any, Any]) -> None:
    _, tokenizer = mlx
    messages = [{"role": "system", "content": "Recite."}, {"role": "user", "content": RECITER.prompt("count")}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    assert prompt == tokenizer.encode(RECITER.prompt("count"))


@pytest.fixture(scope="module")
def mlx_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("mlx_server"), "mlx_lm", "server") as server:
        yield server


def post(server: Server, route: str, body: dict[str, Any]) -> str:
    return httpx.post(f"{server.url}{route}", json=body, timeout=60).raise_for_status().text


@pytest.mark.parametrize("name", ["count", "echo", "harmony", "late", "emoji", "cjk", "empty"])
def test_mlx_lm_server_recites(mlx_server: Server, name: str) -> None:
    messages = [{"role": "user", "content": RECITER.prompt(name)}]
    completion = json.loads(post(mlx_server, "/v1/completions", {"prompt": RECITER.prompt(name)}))
    assert completion["choices"][0]["text"] == RECITER.text(name)
    chat = json.loads(post(mlx_server, "/v1/chat/completions", {"messages": messages}))
    assert chat["choices"][0]["message"].get("content") == (RECITER.text(name) or None)
    assert chat["usage"]["completion_tokens"] == len(SCRIPTS[name]) + 1
    stream = post(mlx_server, "/v1/chat/completions", {"messages": messages, "stream": True})
    events = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: {")]
    deltas = [json.loads(event)["choices"][0]["delta"].get("content", "") for event in events]
    assert "".join(deltas) == RECITER.text(name)
