"""Tests stopscan's server for mlx-lm with clients that leave, half-close or reset their connections, with many clients
at once, with several machines, and with errors in stopscan."""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed; ci/mlx-env makes its environment")

from mlx_harness import Answer, Server, row_steps, serving, stream_events
from mlx_lm import server as mlx_server

from stopscan.engines import Defaults, Failures, read_options
from stopscan.mlx_lm import _row, server
from stopscan_conformance.reciter import Reciter

ENGINES: dict[str, dict[str, Any]] = {"batched": {}, "seeded": {"seed": 1}, "drafted": {}}


def sent(running: Server, body: dict[str, Any], route: str = "completions", header: str = "") -> socket.socket:
    """A connection that has sent a request."""
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=60)
    data = json.dumps(body).encode()
    head = f"POST /v1/{route} HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: {len(data)}\r\n\r\n"
    connection.sendall(head.encode() + data)
    return connection


def read(connection: socket.socket) -> bytes:
    reply = b""
    while piece := connection.recv(65536):
        reply += piece
    return reply


def test_a_client_that_leaves_does_not_end_the_others(ours: Server, reciter: Reciter) -> None:
    with sent(ours, {"prompt": reciter.prompt("late"), "stop": ["more"], "stream": True}) as leaving:
        leaving.recv(64)
    assert ours.ask(reciter.prompt("count"), stop=["6"]).matched_stop == "6"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_half_closing_client_gets_its_answer(ours: Server, reciter: Reciter, stream: bool) -> None:
    """Clients such as ``nc -N`` shut down their sending half, but still wait for the answer. Their header
    ``Connection: close`` says that they will send no other request."""
    body = {"prompt": reciter.prompt("late"), "stop": ["more"], "stream": stream}
    with sent(ours, body, header="Connection: Close\r\n") as connection:
        connection.shutdown(socket.SHUT_WR)
        reply = read(connection)
    assert reply.startswith(b"HTTP/1.0 200")
    assert b'"matched_stop": "more"' in reply


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("end", ["close", "reset", "close after Connection: close"])
def test_no_answer_is_generated_for_a_departed_client(tmp_path: Path, engine: str, stream: bool, end: str) -> None:
    """The server must notice that a client has closed or reset the connection, and end the answer. In a stream, it
    notices when a write fails. A whole answer is written only at its end, so the server must notice earlier. Before a
    fix, if a client closed the connection (as openai's client does after a timeout), the answer was still generated to
    its end."""
    if not stream and end == "close after Connection: close":
        pytest.skip("such a client may still read")
    checkpoint = Reciter({"long": [" word"] * 4000}).write(tmp_path)
    draft = ["--draft-model", checkpoint] if engine == "drafted" else []
    body = {"prompt": "[long]", "stop": ["never"], "max_tokens": 4000, "stream": stream, **ENGINES[engine]}
    with serving(server.main, "--model", checkpoint, *draft) as running, row_steps() as counted:
        with sent(running, body, header="Connection: close\r\n" if "after" in end else "") as leaving:
            while len(counted) < 5:
                time.sleep(0.01)
            if end == "reset":
                leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        before = -1
        while before != len(counted):
            before = len(counted)
            time.sleep(0.3)
        assert len(counted) < 2000  # the whole answer takes about 4000 steps, those of the draft model included


def test_many_connections_at_once(ours: Server, reciter: Reciter) -> None:
    """All 192 connections must be served. Before a fix, 52 of them were reset, because the queue of mlx_lm.server holds
    only five connections."""
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
            return read(connection)

        with ThreadPoolExecutor(16) as pool:
            replies = list(pool.map(ask, sockets))
    finally:
        for connection in sockets:
            connection.close()
    assert all(reply.startswith(b"HTTP/1.0 200") and b'"1, 2"' in reply for reply in replies)


@pytest.mark.parametrize("options", [{}, [], "", None, {"include_usage": None}, {"include_usage": True}], ids=str)
def test_stream_options_do_not_break_a_complete_answer(ours: Server, reciter: Reciter, options: Any) -> None:
    """``[DONE]`` must end each stream. Before a fix, ``stream_options: {}`` raised a KeyError after the last chunk
    instead."""
    body = {"prompt": reciter.prompt("count"), "stop": ["5"], "stream": True, "stream_options": options}
    status, reply = ours.post("completions", body)
    *_, last = stream_events(reply)
    assert (status, "usage" in last) == (200, options == {"include_usage": True})


def test_what_a_request_takes_along_can_be_pickled() -> None:
    """Distributed serving pickles each request. A socket cannot be pickled, so stopscan must leave it out. Before a
    fix, the server ended at its first request."""
    with socket.socket() as connection:
        stops = server._Stops(read_options({"stop": "END", "patterns": ["a+b"]}), True, connection)
        copy = pickle.loads(pickle.dumps(stops))
    assert (copy.options, copy.chat, copy.connection, copy.row) == (stops.options, True, None, None)


@pytest.mark.parametrize("distributed", [False, True])
def test_a_row_of_several_machines_does_not_end_alone(distributed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If several machines run one model, all must take the same steps. So they must go on with an answer whose client
    has left. Only on a single machine may this answer end early. Before a fix, it ended on one of several machines."""
    row = object.__new__(server._Row)

    def leaves(handler: Any, request: Any, stops: Any) -> None:
        stops.row = row
        raise BrokenPipeError

    monkeypatch.setattr(mlx_server.APIHandler, "handle_completion", leaves)
    handler = object.__new__(server._Handler)
    handler.body, handler.defaults, handler.max_tokens, handler.connection = {}, Defaults(), 5, None
    handler.headers = {}  # type: ignore[assignment]
    provider = SimpleNamespace(tokenizer=None)
    handler.response_generator = SimpleNamespace(_is_distributed=distributed, model_provider=provider)
    handler.handle_completion(SimpleNamespace(request_type="chat", prompt=""), [])
    assert row.departed == (not distributed)


def test_two_machines_answer_with_stops(tmp_path: Path) -> None:
    """Serves under ``mlx.launch -n 2``, which starts two processes. Each request is pickled for the other process."""
    reciter = Reciter()
    checkpoint = reciter.write(tmp_path / "model")
    config = json.loads((checkpoint / "config.json").read_text())
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}  # one head for each process
    (checkpoint / "config.json").write_text(json.dumps(config | heads))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = [str(Path(sys.executable).with_name("mlx.launch")), "-n", "2", "--backend", "ring", "--"]
    command = ["-m", "stopscan.mlx_lm.server", "--model", str(checkpoint), "--port", str(port)]
    log = tmp_path / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*launch, sys.executable, *command], stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            running = Server(port)
            for _ in range(600):
                assert process.poll() is None, log.read_text()
                try:
                    answer = running.ask(reciter.prompt("split"), stop=["END"])
                    break
                except OSError:
                    time.sleep(0.1)
            assert (answer.text, answer.matched_stop, answer.tokens) == ("This is the ", "END", 6), log.read_text()
            with sent(running, {"prompt": reciter.prompt("late"), "stop": ["never"], "stream": True}) as leaving:
                leaving.recv(64)
            for stream in (False, True):
                assert running.ask(reciter.prompt("count"), stream=stream, stop=["5", "6"]).matched_stop == "5"
            status, reply = running.post("chat/completions", {"messages": [], "stop": [""]})
            assert (status, json.loads(reply)["error"]["type"]) == (400, "invalid_request_error")
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # the launcher and both processes


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("hook", ["advance", "text", "__init__"])
def test_a_fault_of_ours_ends_its_request_alone(
    ours: Server, reciter: Reciter, hook: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in ``advance`` must be caught, because otherwise it would end the thread that generates all answers. A
    panic in Rust must also be caught: it raises a ``BaseException`` that is not an ``Exception``."""

    class PanicException(BaseException):
        """Like the exception that PyO3 raises for a panic."""

    def failing(*_: Any, **__: Any) -> Any:
        raise PanicException("out of luck") if hook != "text" else RuntimeError("out of luck")

    owner = {"advance": _row.BatchRow, "text": server._Row, "__init__": _row.BatchRow}[hook]
    monkeypatch.setattr(server, "failures", Failures(logging.getLogger("stopscan.mlx_lm")))
    with monkeypatch.context() as patched:
        patched.setattr(owner, hook, failing)
        status, reply = ours.post("completions", {"prompt": reciter.prompt("count"), "stop": ["5"], "stream": stream})
    if hook == "__init__":
        assert (status, "stopscan failed" in reply) == (404, True)  # mlx-lm's status for any failure before the answer
    else:
        reported = json.loads(reply.splitlines()[-2].removeprefix("data: ") if stream else reply)["error"]
        assert (status, reported["type"]) == (200 if stream else 500, "server_error")
        assert reported["message"] == "stopscan failed in this request"
    assert server.failures.count == 1  # counted and logged, whichever method fails
    assert ours.ask(reciter.prompt("count"), stop=["5"], stream=stream).matched_stop == "5"


def test_after_three_faults_mlx_lm_keeps_its_stops(
    ours: Server, reciter: Reciter, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = Failures(logging.getLogger("stopscan.mlx_lm"))
    monkeypatch.setattr(server, "failures", failures)
    failures.off = True
    monkeypatch.setattr(server._Row, "__init__", None)  # so that making a row would raise
    assert ours.ask(reciter.prompt("count")).text == reciter.text("count")
    got = ours.ask(reciter.prompt("count"), stop=["6"])
    assert (got.text, got.matched_stop) == ("1, 2, 3 hello world 4, 5, ", None)
    for beyond in ({"patterns": "a+b"}, {"stop": "6", "protect": ["reasoning"]}, {"repeat": True}):
        status, reply = ours.post("completions", {"prompt": reciter.prompt("count"), **beyond})
        assert (status, "switched off" in json.loads(reply)["error"]["message"]) == (400, True)


def test_set_is_compiled_in_its_client_thread(ours: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop set must not be compiled in the generation thread. Before a fix, it was, so large sets stalled all
    streams."""
    from stopscan.engines import _checkpoint

    ours.ask("[think]", max_tokens=1)  # so that a model is loaded
    compiled = _checkpoint._compiled.cache_info
    body = {"messages": [{"role": "user", "content": "[think]"}], "stop": ["a stop of its own"], "max_tokens": 1}
    tokenize, before = server.server.ResponseGenerator._tokenize, []

    def noting(*args: Any) -> Any:
        before.append(compiled().misses)
        return tokenize(*args)

    monkeypatch.setattr(server.server.ResponseGenerator, "_tokenize", noting)
    start = compiled().misses
    assert ours.post("chat/completions", body)[0] == 200
    assert (before, compiled().misses) == ([start + 1], start + 1)


@pytest.mark.parametrize("engine", ["batched", "seeded"])
def test_mlx_lms_own_initial_state_counts(tmp_path: Path, engine: str) -> None:
    """If the prompt ends with ``<think>`` and some words, no stop may fire in the reasoning. Before a fix, stops fired
    there."""
    reciter = Reciter({"open": ["<think>", "a", "b", " END", "?", "</think>", "It is 5", " END", "."]})
    with serving(server.main, "--model", reciter.write(tmp_path)) as running:
        for stream in (False, True):
            got = running.ask("[open]<think>ab", stop=[" END"], stream=stream, **ENGINES[engine])
            assert got == Answer("It is 5", " END?", "stop", " END", 5)
            got = running.ask("[open]<think>ab", stop=[" END"], stream=stream, start_protected=False)
            assert (got.text, got.reasoning) == ("", "")
