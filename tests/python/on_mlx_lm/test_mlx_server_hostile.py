"""Requests that end mlx_lm.server for everybody, and many at once: each is an error of that request alone."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import Server, serving

from stopscan.mlx_lm import server
from stopscan.mlx_lm._limits import COUNTS, MOST
from stopscan_conformance.reciter import Reciter

REFUSED: list[tuple[dict[str, Any], str]] = [
    # `unhashable type: 'list'` ended the generation thread.
    ({"prompt": ["a", "b"]}, "prompt must be a string, not list"),
    ({"prompt": [1, 2]}, "prompt must be a string, not list"),
    ({"prompt": None}, "prompt must be a string, not NoneType"),
    ({"prompt": ""}, "prompt is empty"),
    ({"prompt": "\ud800"}, "lone surrogate"),
    ({"stop": ["\udfff"]}, "surrogates not allowed"),
    *(({name: 2**70}, f"{name} must be at most {MOST}") for name in COUNTS),
    # A token id beyond the model's ended the process.
    ({"logit_bias": {"99999999": 1}}, "there is no token 99999999"),
    ({"logit_bias": {"-1": 1}}, "there is no token -1"),
    ({"logit_bias": {"1": float("nan")}}, "logit_bias must have finite numbers"),
    ({"temperature": float("inf")}, "temperature must be a finite number"),
    ({"repetition_penalty": float("nan")}, "repetition_penalty must be a finite number"),
    # mlx takes no booleans, and no integers of more than 64 bits.
    ({"top_logprobs": True}, "top_logprobs must be a number"),
    ({"max_tokens": True}, "max_tokens must be a number"),
    ({"frequency_penalty": 2**70}, "frequency_penalty must be a finite number"),
    ({"presence_penalty": -(2**70)}, "presence_penalty must be a finite number"),
    ({"logit_bias": {"1": 2**70}}, "logit_bias must have finite numbers"),
    # mlx-lm passes `n` over, and gives one answer.
    ({"n": 2}, "n must be 1, not 2"),
    ({"draft_model": ["x"]}, "draft_model must be a string"),
    ({"seed": -1}, "seed must be from 0"),
    ({"seed": 2**64}, "seed must be from 0"),
]


@pytest.fixture(scope="module", params=["batched", "drafted"])
def ours(request: pytest.FixtureRequest, checkpoint: Path) -> Iterator[Server]:
    draft = ["--draft-model", checkpoint] if request.param == "drafted" else []
    with serving(server.main, "--model", checkpoint, *draft) as running:
        yield running


def answers(ours: Server, reciter: Reciter) -> bool:
    return ours.ask(reciter.prompt("count"), chat=False, max_tokens=3).text == "1, 2"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[str(body)[:40] for body, _ in REFUSED])
def test_what_the_generation_thread_cannot_take_is_a_400(
    ours: Server, reciter: Reciter, body: dict[str, Any], message: str, stream: bool
) -> None:
    status, reply = ours.post("completions", {"prompt": reciter.prompt("count"), "stream": stream, **body})
    assert (status, message in json.loads(reply)["error"]) == (400, True), reply
    assert answers(ours, reciter)


@pytest.mark.parametrize(
    "body", [b'{"prompt": "\xff"}', b"[" * 100_000, b"", b"5"], ids=["bytes", "deep", "empty", "5"]
)
def test_a_body_that_is_no_request_is_a_400(ours: Server, reciter: Reciter, body: bytes) -> None:
    """The connection was closed without an answer for what is not UTF-8, and for what is too deep."""
    for length in (None, "-1", "9" * 30):
        connection = HTTPConnection("127.0.0.1", ours.port, timeout=60)
        headers = {} if length is None else {"Content-Length": length}
        connection.request("POST", "/v1/completions", body, headers)
        response = connection.getresponse()
        assert (response.status, "error" in json.loads(response.read())) == (400, True)
        connection.close()
    assert answers(ours, reciter)


@pytest.mark.parametrize("name", COUNTS)
def test_the_largest_counts_are_taken(ours: Server, reciter: Reciter, name: str) -> None:
    body = {"repetition_penalty": 1.1, "presence_penalty": 0.1, "frequency_penalty": 0.1, "max_tokens": 3, name: MOST}
    status, reply = ours.post("completions", {"prompt": reciter.prompt("count"), "stop": ["6"], **body})
    assert status == 200, reply
    assert answers(ours, reciter)


@pytest.mark.parametrize("draft", [True, False], ids=["drafted", "batched"])
def test_a_prompt_whose_every_token_is_cached(tmp_path: Path, draft: bool) -> None:
    """To continue an answer ended the generation thread: nothing was left of the prompt."""
    reciter = Reciter({"bytes": list("qzx!")})  # so that the text is encoded as it was generated
    checkpoint = reciter.write(tmp_path)
    prompt = reciter.prompt("bytes")
    with serving(server.main, "--model", checkpoint, *(["--draft-model", checkpoint] if draft else [])) as ours:
        for length in range(1, 5):
            assert ours.ask(prompt, chat=False, max_tokens=length).text == "qzx!"[:length]
            assert ours.ask(prompt + "qzx!"[:length], chat=False).text == "qzx!"[length:]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_generation_that_fails_is_an_error_in_the_form_of_the_answer(
    ours: Server, reciter: Reciter, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> str:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(server._Row, "text", failing)
    status, reply = ours.post("completions", {"prompt": reciter.prompt("count"), "stream": stream})
    if stream:
        assert status == 200
        *_, last = [line for line in reply.splitlines() if line.startswith("data: ")]
        assert json.loads(last.removeprefix("data: "))["error"]["message"] == "out of memory"
    else:
        assert (status, json.loads(reply)) == (500, {"error": "out of memory"})
    monkeypatch.undo()
    assert answers(ours, reciter)


def test_many_connections_at_once(ours: Server, reciter: Reciter) -> None:
    """Of 192 opened at once 52 were reset: mlx_lm.server listens for five."""
    sockets = [socket.socket() for _ in range(192)]
    try:
        for connection in sockets:
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", ours.port))
        body = json.dumps({"prompt": reciter.prompt("count"), "max_tokens": 3}).encode()
        head = f"POST /v1/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode()

        def ask(connection: socket.socket) -> bytes:
            connection.setblocking(True)
            connection.settimeout(60)
            connection.sendall(head + body)
            reply = b""
            while piece := connection.recv(65536):
                reply += piece
            return reply

        with ThreadPoolExecutor(16) as pool:
            replies = list(pool.map(ask, sockets))
    finally:
        for connection in sockets:
            connection.close()
    assert all(reply.startswith(b"HTTP/1.0 200") and b'"1, 2"' in reply for reply in replies)
