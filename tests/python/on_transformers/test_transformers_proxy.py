"""``transformers serve`` behind stopscan's proxy, both started as docs/transformers.md says."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

from openai import OpenAI
from recital import recite

from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

MODES = {
    "generate": (),
    # Without these numbers, continuous batching takes nearly all memory for its cache.
    "continuous": (
        "--continuous-batching", "--cb-num-blocks", "256", "--cb-block-size", "32", "--cb-max-batch-tokens", "128",
    ),
}  # fmt: skip


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def running(log: Path, port: int, *command: str) -> Iterator[str]:
    """Starts a server, and yields its address as soon as it listens."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with (
        log.open("w") as output,
        subprocess.Popen([sys.executable, "-m", *command], stdout=output, stderr=output, env=environment) as process,
    ):
        try:
            while True:
                with socket.socket() as client:
                    if client.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.fixture(scope="module", params=MODES)
def urls(
    request: pytest.FixtureRequest, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The URLs of transformers' server and of the proxy in front of it."""
    folder, port, proxy_port = tmp_path_factory.mktemp("proxy"), free_port(), free_port()
    serve = ("transformers.cli.transformers", "serve", str(checkpoint), "--device", "cpu", "--port", str(port))
    proxy = ("--port", str(proxy_port), "--api", "none", "--protect", *THINKING)
    with ExitStack() as servers:
        url = servers.enter_context(running(folder / "server", port, *serve, *MODES[request.param]))
        yield url, servers.enter_context(running(folder / "log", proxy_port, "stopscan_clients.proxy", url, *proxy))


def answer_of(url: str, checkpoint: Path, prompt: str, *, chat: bool, stream: bool, **options: Any) -> tuple[str, Any]:
    """The text of an answer, and the stop that it names."""
    client = OpenAI(base_url=f"{url}/v1", api_key="none", timeout=60, max_retries=0)
    given: dict[str, Any] = {"model": str(checkpoint), "max_tokens": 100, "stream": stream, **options}
    if chat:
        answer: Any = client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **given)
    else:
        answer = client.completions.create(prompt=prompt, **given)
    choices = [choice for event in (answer if stream else [answer]) for choice in event.choices]
    texts = [
        (choice.delta.content if stream else choice.message.content) if chat else choice.text for choice in choices
    ]
    return "".join(text or "" for text in texts), getattr(choices[-1], "matched_stop", None)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_answers_end_at_their_stop(
    urls: tuple[str, str], checkpoint: Path, reciter: Reciter, chat: bool, stream: bool
) -> None:
    _, proxy = urls
    for name, stop in {"count": ["hello world", "6"], "think": ["END"], "late": ["never"]}.items():
        expected = recite(SCRIPTS[name], stop, protect=[THINKING])
        answer = answer_of(proxy, checkpoint, reciter.prompt(name), chat=chat, stream=stream, stop=stop)
        assert answer == (expected.text, expected.matched)
    pattern = {"stopscan": {"patterns": [r"w\w+d \d"]}}
    answer = answer_of(proxy, checkpoint, reciter.prompt("count"), chat=chat, stream=stream, extra_body=pattern)
    assert answer == ("1, 2, 3 hello ", "world 4")


def test_the_server_alone_does_not(urls: tuple[str, str], checkpoint: Path, reciter: Reciter) -> None:
    server, _ = urls
    text, stop = answer_of(server, checkpoint, reciter.prompt("count"), chat=True, stream=True, stop=["hello world"])
    assert text != "1, 2, 3 "
    assert stop is None
