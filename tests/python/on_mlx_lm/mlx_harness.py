"""What the tests of real mlx-lm share: a model that counts its steps, and servers in threads."""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import mlx_lm
from mlx_lm import server
from mlx_lm.models import llama
from mlx_lm.tokenizer_utils import TokenizerWrapper

# Whether this mlx-lm is 0.32 or later, in which each row of a batch can have stop sequences of its own.
NEW = hasattr(sys.modules["mlx_lm.generate"], "StopSequences")


def load(path: Path) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    model, tokenizer = mlx_lm.load(str(path))
    if not NEW:
        # Before 0.32, mlx-lm's fast detokenizer cannot read a vocabulary in which several ids have the same text.
        tokenizer = TokenizerWrapper(tokenizer._tokenizer)
    return model, tokenizer


def with_tool_calls(tokenizer: Any, start: str, end: str) -> Any:
    """Sets the markers of the tokenizer's tool calls, as mlx-lm does for some models."""
    tokenizer._tool_call_start, tokenizer._tool_call_end = start, end
    return tokenizer


class Steps:
    """Wraps a model, and records the shape of the input tokens of each step."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, tokens: Any, **options: Any) -> Any:
        self.shapes.append(tuple(tokens.shape))
        return self._model(tokens, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __len__(self) -> int:
        return len(self.shapes)


@dataclass
class Server:
    """A running server: mlx_lm.server or stopscan's."""

    port: int

    def post(self, route: str, body: dict[str, Any]) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", f"/v1/{route}", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()

    def ask(self, prompt: str, *, chat: bool = True, stream: bool = False, **body: Any) -> Answer:
        request_body = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
        streaming = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        status, reply = self.post("chat/completions" if chat else "completions", {**request_body, **streaming, **body})
        assert status == 200, reply
        return Answer.of_stream(reply) if stream else Answer.of(json.loads(reply))


@dataclass
class Answer:
    text: str
    reasoning: str
    finish_reason: str
    matched_stop: str | int | None
    tokens: int

    @classmethod
    def of(cls, reply: Any) -> Answer:
        (choice,) = reply["choices"]
        part = choice.get("message", choice)
        text = part.get("content" if "message" in choice else "text") or ""
        return cls(
            text=text,
            reasoning=part.get("reasoning", ""),
            finish_reason=choice["finish_reason"],
            matched_stop=choice.get("matched_stop"),
            tokens=reply["usage"]["completion_tokens"],
        )

    @classmethod
    def of_stream(cls, reply: str) -> Answer:
        *chunks, usage = stream_events(reply)
        parts = [(chunk["choices"][0], chunk["choices"][0].get("delta", chunk["choices"][0])) for chunk in chunks]
        # The finish reason comes once, in the last chunk that has a choice.
        assert all(choice["finish_reason"] is None and "matched_stop" not in choice for choice, _ in parts[:-1])
        return cls(
            text="".join(part.get("content", part.get("text", "")) for _, part in parts),
            reasoning="".join(part.get("reasoning", "") for _, part in parts),
            finish_reason=parts[-1][0]["finish_reason"],
            matched_stop=parts[-1][0].get("matched_stop"),
            tokens=usage["usage"]["completion_tokens"],
        )


def stream_events(reply: str) -> list[Any]:
    data = [line.removeprefix("data: ") for line in reply.splitlines() if line.startswith("data: ")]
    assert data.pop() == "[DONE]"
    return [json.loads(event) for event in data]


class _HTTPServer(ThreadingHTTPServer):
    # The tests send dozens of requests at once; with a short queue, a busy machine resets some of their connections.
    request_queue_size = 128


@contextmanager
def serving(main: Callable[[], None], *arguments: Any) -> Iterator[Server]:
    """Runs the server that ``main`` sets up. The server runs in a thread and listens on a free port."""
    running: dict[str, Any] = {}

    def run_http_server(
        host: str, port: int, generator: Any, server_class: Any = None, handler_class: Any = server.APIHandler
    ) -> None:
        def handler(*args: Any) -> Any:
            return handler_class(generator, *args, system_fingerprint="test")

        running["generator"] = generator
        running["http"] = http = _HTTPServer(("127.0.0.1", 0), handler)
        running["thread"] = thread = threading.Thread(target=http.serve_forever)
        thread.start()

    with (
        patch.object(sys, "argv", ["server", *map(str, arguments)]),
        patch.object(server, "_run_http_server", run_http_server),
        patch.object(server, "ResponseGenerator", server.ResponseGenerator),
    ):
        main()
    try:
        port = running["http"].server_address[1]
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
        yield Server(port)
    finally:
        running["http"].shutdown()
        running["http"].server_close()
        running["thread"].join()
        running["generator"].stop_and_join()
        joined(running["generator"])


def joined(generator: Any) -> None:
    """Waits until the thread of a generator has ended. After `Thread.join`, the thread may still be freeing functions
    that mlx compiled. If the process exits meanwhile, it aborts."""
    while Path(f"/proc/self/task/{generator._generation_thread.native_id}").exists():
        time.sleep(0.01)


@contextmanager
def row_steps() -> Iterator[list[int]]:
    """Yields a list. In the ``with`` block, each step of a Llama model appends its batch size (the number of rows) to
    the list."""
    counted: list[int] = []
    step = llama.Model.__call__

    def counting(model: Any, tokens: Any, *args: Any, **options: Any) -> Any:
        counted.append(tokens.shape[0])
        return step(model, tokens, *args, **options)

    with patch.object(llama.Model, "__call__", counting):
        yield counted


@contextmanager
def both(checkpoint: Path, *arguments: Any) -> Iterator[tuple[Server, Server]]:
    """Plain mlx_lm.server, and ours."""
    from stopscan.mlx_lm import server as our_server  # this import fails before mlx-lm 0.32

    with (
        serving(server.main, "--model", checkpoint, *arguments) as plain,
        serving(our_server.main, "--model", checkpoint, *arguments) as ours,
    ):
        yield plain, ours
