"""Tests the proxy with clients that send half a request, with clients that do not read, and with very many clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import wire
from replay import Recording, Replay
from running import Running, free_port, raw_server, running, until
from through import endless
from wholes import WHOLES

from stopscan import StopSet
from stopscan_clients.machine import ScanOptions
from stopscan_clients.proxy import Limits
from stopscan_clients.proxy._app import _plan_of

CHAT = "/v1/chat/completions"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def hasty(server: Replay) -> Iterator[Running]:
    """A proxy that gives a client one second to send or to read."""
    with running(server.url, "--stop", "END", "--request-timeout", "1", "--max-connections", "20") as made:
        yield made


def connected(made: Running) -> socket.socket:
    url = httpx.URL(made.url)
    return socket.create_connection((url.host, url.port or 80), timeout=15)


def rest(connection: socket.socket) -> bytes:
    """Returns all data that comes until the proxy closes the connection."""
    out = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            out += piece
    return bytes(out)


def error_in(answer: bytes) -> tuple[bytes, dict[str, object]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, json.loads(body)


@pytest.mark.parametrize("half", [b"", b"POST /v1/chat", b"POST /v1/messages HTTP/1.1\r\nhost: a\r\n"])
def test_half_a_head_is_cut(hasty: Running, half: bytes) -> None:
    begun = time.monotonic()
    with connected(hasty) as connection:
        connection.sendall(half)
        assert rest(connection) == b""
    assert 0.5 < time.monotonic() - begun < 10


def test_a_head_that_comes_byte_by_byte_is_cut(hasty: Running) -> None:
    with connected(hasty) as connection:
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - begun < 20:
                connection.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() - begun < 10


def test_half_of_a_second_head_is_cut(server: Replay, hasty: Running) -> None:
    with connected(hasty) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\nGET /hea")
        assert b'{"status":"ok"}' in rest(connection)


@pytest.mark.parametrize(("path", "kind"), [(CHAT, "invalid_request_error"), ("/v1/messages", "invalid_request_error")])
def test_half_of_a_body_is_a_408(hasty: Running, path: str, kind: str) -> None:
    with connected(hasty) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{{".encode())
        head, error = error_in(rest(connection))
    assert head.startswith(b"HTTP/1.1 408 ")
    assert error["error"]["type"] == kind  # type: ignore[index]


def test_fifty_halves_leave_the_proxy_to_others(server: Replay) -> None:
    with running(server.url, "--request-timeout", "2") as made, contextlib.ExitStack() as stack:
        halves = [stack.enter_context(connected(made)) for _ in range(50)]
        for number, half in enumerate(halves):
            half.sendall(b"POST /v1/chat/completions HTTP/1.1\r\n" + b"content-length: 9\r\n\r\n{" * (number % 2))
        assert httpx.get(f"{made.url}/health", timeout=10).status_code == 200
        for half in halves:
            rest(half)  # the proxy closes each of them


def test_connections_above_the_limit_get_a_503(hasty: Running) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connected(hasty))
        with connected(hasty) as one_more:
            one_more.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}")
            head, error = error_in(rest(one_more))
        assert head.startswith(b"HTTP/1.1 503 ")
        assert error["type"] == "error"
    until(lambda: httpx.get(f"{hasty.url}/health", timeout=10).status_code == 200)


def test_a_client_that_does_not_read_is_cut(server: Replay, hasty: Running) -> None:
    recording = Recording(wire.chat(["never " * 5000] * 3000))
    body = json.dumps({"model": server.record(recording), "stream": True}).encode()
    with connected(hasty) as connection:
        connection.sendall(
            b"POST %b HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % (CHAT.encode(), len(body)) + body
        )
        assert recording.gone.wait(20)
    assert recording.sent < 3000


def test_a_client_that_reads_slowly_gets_all(server: Replay, hasty: Running) -> None:
    texts = [f"{number} " * 500 for number in range(100)]
    recording = Recording(wire.chat(texts))
    body = json.dumps({"model": server.record(recording), "stream": True}).encode()
    out = bytearray()
    with connected(hasty) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        connection.sendall(
            b"POST %b HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % (CHAT.encode(), len(body))
            + body
        )
        while piece := connection.recv(8192):
            out += piece
            time.sleep(0.01)
    assert out.count(b'"content":') >= 100
    assert out.endswith(b"0\r\n\r\n")


def test_absolute_form_targets_pass_like_others(server: Replay, hasty: Running) -> None:
    model = server.record(Recording(whole=WHOLES["chat"]("one END two")))
    body = json.dumps({"model": model, "messages": []}).encode()
    for scheme in (b"http", b"HTTPS"):
        head = b"POST %b://name:secret@a%b HTTP/1.1\r\nhost: a\r\nconnection: close\r\n" % (scheme, CHAT.encode())
        with connected(hasty) as connection:
            connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            answer = rest(connection)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"one "' in answer
        assert b"two" not in answer


def test_a_request_with_two_lengths_is_a_400() -> None:
    upstream, read, _ = raw_server(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    with running(upstream) as made, connected(made) as connection:
        head = b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
        smuggled = b"GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
        connection.sendall(head + b"5\r\nabcde\r\n0\r\n\r\n" + smuggled)
        head, error = error_in(rest(connection))
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in head
    assert "content-length beside a transfer-encoding" in json.dumps(error)
    assert read == []


def test_an_answer_with_two_lengths_keeps_none_of_them() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
    upstream, _, _ = raw_server(head + b"a\r\n0123456789\r\n0\r\n\r\n")
    with running(upstream) as made:
        answer = httpx.get(f"{made.url}/any")
    assert answer.content == b"0123456789"
    assert "content-length" not in answer.headers


@pytest.mark.parametrize("target", [b"*", b"a:80", b"ftp://a/v1/messages"])
def test_a_target_that_is_no_path_is_a_400(hasty: Running, target: bytes) -> None:
    with connected(hasty) as connection:
        connection.sendall(b"OPTIONS %b HTTP/1.1\r\nhost: a\r\n\r\n" % target)
        head, error = error_in(rest(connection))
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "neither a path nor a URL" in json.dumps(error)


def test_names_and_keys_of_targets_are_not_logged() -> None:
    with running("http://127.0.0.1:9") as made:
        with connected(made) as connection:
            connection.sendall(
                b"GET http://user:secret@a/v1/models?key=secret HTTP/1.1\r\nhost: a\r\nx-key: secret\r\n\r\n"
            )
            connection.settimeout(5)
            assert b"502" in connection.recv(65536)
        out, log = made.stop()
    assert "/v1/models: the upstream server cannot be reached" in log
    assert "secret" not in out + log


GRAPH = {"answer": {"<a>": "one"}, "one": {"<b>": "two"}, "two": {"</b>": "answer"}}
ABOVE: list[tuple[str, Any, str]] = [
    (CHAT, {"stop": [*"abcdef"]}, "stop has 6 entries; the limit is 5"),
    ("/api/chat", {"options": {"stop": [*"abcdef"]}}, "options.stop has 6 entries; the limit is 5"),
    (CHAT, {"stopscan": {"patterns": [*"abcd"]}}, "stopscan.patterns has 4 entries; the limit is 3"),
    (CHAT, {"stop": ["a" * 20], "stopscan": {"patterns": ["b" * 21]}}, "has 41 bytes of text; the limit is 40"),
    (CHAT, {"stopscan": {"protect": [["<a>", "</a>"]] * 3}}, "3 regions; the limit is 2"),
    (CHAT, {"stopscan": {"regions": GRAPH}}, "3 regions; the limit is 2"),
    (CHAT, {"stopscan": {"protect": ["<" * 50, "</a>"]}}, "stopscan.regions and stopscan.protect have"),
]


def test_stops_and_patterns_have_their_own_limits(server: Replay) -> None:
    """The number of stops and the number of patterns have separate options. They once shared an option: if it
    allowed 5 patterns, a request with 6 stops was refused."""
    limits = ("--max-stops", "5", "--max-patterns", "3", "--max-text", "40", "--max-regions", "2")
    model = server.record(Recording(wire.chat(["one END"]), whole=wire.chat_whole("one END")))
    with running(server.url, *limits) as made:
        for path, fields, words in ABOVE:
            answer = httpx.post(f"{made.url}{path}", json=fields)
            assert (answer.status_code, words in answer.text) == (400, True), (fields, answer.text)
        fields = {"model": model, "stop": [*"ABCDE"], "stopscan": {"patterns": ["x", "y", "z"]}}
        assert httpx.post(f"{made.url}{CHAT}", json=fields).status_code == 200


def test_an_unknown_stream_is_a_502_without_a_retry() -> None:
    events = b'data: {"odd": "one"}\n\n'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    upstream, _, _ = raw_server(head + events)
    with running(upstream, "--stop", "END") as made:
        answer = httpx.post(f"{made.url}{CHAT}", json={"stream": True})
    assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "false")


def test_two_hundred_streams_while_clients_leave(server: Replay) -> None:
    """While some clients leave in mid-stream, the streams of all others must be cut at their stops, within the clients'
    timeout. The upstream streams of the clients that have left must also end."""
    recording = Recording(wire.chat(["one ", "two ", "E", "ND", "three"]))
    body = {"model": server.record(recording), "stream": True}
    deserted = [endless("chat") for _ in range(60)]
    models = [server.record(each) for each in deserted]

    async def ask(client: httpx.AsyncClient) -> str:
        async with client.stream("POST", CHAT, json=body) as answer:
            return "".join([text async for text in answer.aiter_text()])

    async def leave(client: httpx.AsyncClient, model: str) -> None:
        async with client.stream("POST", CHAT, json={"model": model, "stream": True}) as answer:
            await anext(answer.aiter_bytes())

    async def ask_all(url: str) -> list[str]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits, trust_env=False) as client:
            leaving = asyncio.gather(*[leave(client, model) for model in models])
            answers = await asyncio.gather(*[ask(client) for _ in range(140)])
            await leaving
            return answers

    with running(server.url, "--stop", "END") as made:
        answers = asyncio.run(ask_all(made.url))
        until(lambda: all(each.gone.is_set() for each in deserted), 60)
        _, log = made.stop()
    assert log.splitlines()[1:] == []
    assert len(answers) == 140
    for answer in answers:
        assert '"two "' in answer
        assert '"matched_stop":"END"' in answer
        assert "three" not in answer


def test_sigterm_with_slow_clients_ends_in_time(server: Replay) -> None:
    recording = Recording(wire.chat(["never " * 5000] * 3000))
    body = json.dumps({"model": server.record(recording), "stream": True}).encode()
    with (
        running(server.url, "--stop", "END", "--grace", "1") as made,
        connected(made) as half,
        connected(made) as idle,
        connected(made) as unread,
    ):
        half.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{")
        unread.sendall(b"POST %b HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % (CHAT.encode(), len(body)) + body)
        until(lambda: recording.sent > 1)
        begun = time.monotonic()
        made.process.terminate()
        head, error = error_in(rest(half))
        assert head.startswith(b"HTTP/1.1 503 ")
        assert error["type"] == "error"
        assert rest(idle) == b""
        made.process.join(20)
        assert time.monotonic() - begun < 15
    assert recording.gone.wait(10)


def test_a_client_that_leaves_is_not_logged(server: Replay) -> None:
    recording = endless("chat")
    with running(server.url, "--stop", "NEVER") as made:
        request = {"model": server.record(recording), "stream": True}
        with httpx.stream("POST", f"{made.url}{CHAT}", json=request) as answer:
            next(answer.iter_bytes())
        assert recording.gone.wait(10)
        with connected(made) as leaving:
            leaving.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{")
        time.sleep(0.2)
        log = made.stop()[1]
    assert log.splitlines()[1:] == []


def test_a_break_in_mid_stream_is_called_a_break() -> None:
    events = b'data: {"choices": [{"index": 0, "delta": {"content": "one"}}]}\n\n'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 1000\r\n\r\n"
    upstream, _, _ = raw_server(head + events)
    got = bytearray()
    with running(upstream, "--stop", "END") as made:
        with (
            contextlib.suppress(httpx.RemoteProtocolError),
            httpx.stream("POST", f"{made.url}{CHAT}", json={"stream": True}) as answer,
        ):
            for piece in answer.iter_bytes():
                got += piece
        log = made.stop()[1]
    message = json.loads(bytes(got).rstrip().rpartition(b"data: ")[2])["error"]["message"]
    assert message.startswith("the upstream server broke off its answer")
    assert "cannot be reached" not in log


def test_clients_that_leave_early_end_the_upstreams_work() -> None:
    upstream, read, gone = raw_server(b"", 30)
    with running(upstream, "--stop", "END") as made:
        threads = []
        for _ in range(10):

            def leave() -> None:
                with contextlib.suppress(httpx.ReadTimeout):
                    httpx.post(f"{made.url}{CHAT}", json={}, timeout=0.5)

            threads.append(threading.Thread(target=leave))
            threads[-1].start()
        for thread in threads:
            thread.join()
        until(lambda: len(read) == 10)
        assert gone.wait(10)


BODIES: dict[str, bytes] = {
    "objects": b'{"stream": true, "model": "%b", "a": [' + b"{}," * 666_000 + b"{}]}",
    "distinct keys": b'{"stream": true, "model": "%b", ' + b",".join(b'"%07d":1' % at for at in range(200_000)) + b"}",
    "a picture": b'{"stream": true, "model": "%b", "a": "' + b"A" * (20 << 20) + b'"}',
}


@pytest.mark.parametrize("name", BODIES)
def test_a_long_body_is_read_beside_the_streams(server: Replay, name: str) -> None:
    """The proxy must find the stop although another process reads the long body of the request. (benches/proxy.py
    measures how long streams wait meanwhile.)"""
    model = server.record(Recording(wire.chat(["one E", "ND two"]))).encode()
    with running(server.url, "--stop", "END") as made:
        answer = httpx.post(f"{made.url}{CHAT}", content=BODIES[name].replace(b"%b", model), headers=JSON, timeout=120)
        assert b'"one "' in answer.content
        assert b"two" not in answer.content
        _, log = made.stop()
    assert log.splitlines()[1:] == []


@pytest.mark.parametrize(
    ("body", "headers", "is_slow"),
    [
        (b"[" + b"[]," * 5_000 + b"1]", {}, False),
        (b'"' + b"a" * 200_000 + b'"', {}, False),
        (b'"' + b"a" * 300_000 + b'"', {}, True),
        (b"[" * 300 + b"1" + b"]" * 300 + b",[]" * 10_000, {}, True),
        (b"1", {"content-encoding": "identity"}, True),
    ],
    ids=["few values", "short", "long", "many values", "encoded"],
)
def test_slow_body_is_read_in_another_process(
    monkeypatch: pytest.MonkeyPatch, body: bytes, headers: dict[str, str], is_slow: bool
) -> None:
    """The proxy must read a long body in another process, so that streams do not wait. It once read bodies of up to 1
    MiB in the process that serves the streams, and this took 0.47 s."""
    elsewhere = []

    async def run_sync(read: Any, cancellable: bool) -> Any:
        elsewhere.append(cancellable)
        return read()

    monkeypatch.setattr("anyio.to_process.run_sync", run_sync)
    content = b'{"stop": "AB", "a": [%b]}' % body
    plan = asyncio.run(_plan_of("POST", CHAT, headers, content, ScanOptions(StopSet("END")), None, Limits()))
    assert plan.options.stops.stop == ("END", "AB")
    assert elsewhere == [True] * is_slow


@pytest.mark.parametrize(("last", "status"), [(b"1]}", 404), (b"1,1]}", 413)], ids=["as many", "too many"])
def test_long_and_short_bodies_have_the_same_errors(last: bytes, status: int) -> None:
    upstream, read, _ = raw_server(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno")
    with running(upstream) as made:
        content = b'{"stop": "END", "a": [' + b"1," * 1_999_997 + last
        answer = httpx.post(f"{made.url}{CHAT}", content=content, headers=JSON, timeout=120)
        assert answer.status_code == status
        assert len(read) == (status == 404)
        content = b'{"stop": ["END", ""], "a": "' + b"a" * (2 << 20) + b'"}'
        answer = httpx.post(f"{made.url}{CHAT}", content=content, headers=JSON, timeout=120)
        assert (answer.status_code, "empty" in answer.json()["error"]["message"]) == (400, True)


def test_sigterm_with_open_streams_logs_a_single_line(server: Replay) -> None:
    model = server.record(Recording(wire.chat(["one", " two"]), pause=1))
    with running(server.url, "--stop", "END", "--grace", "1") as made, contextlib.ExitStack() as stack:
        body = {"model": model, "stream": True}
        answers = [
            stack.enter_context(httpx.stream("POST", f"{made.url}{CHAT}", json=body, timeout=20)).iter_raw()
            for _ in range(5)
        ]
        for answer in answers:
            next(answer)
        made.process.terminate()
        for answer in answers:
            with contextlib.suppress(httpx.RemoteProtocolError):
                assert b"the proxy is shutting down" in b"".join(answer)
        _, log = made.stop()
    assert len(log.splitlines()[1:]) == 1
    assert "Cancel 5 running task(s)" in log


def test_a_broken_stream_logs_a_single_line() -> None:
    events = b'data: {"choices": [{"index": 0, "delta": {"content": "one"}}]}\n\n'
    upstream, _, _ = raw_server(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\n" + events
    )
    with running(upstream, "--stop", "END") as made:
        with contextlib.suppress(httpx.RemoteProtocolError):
            httpx.post(f"{made.url}{CHAT}", json={"stream": True})
        _, log = made.stop()
    (line,) = log.splitlines()[1:]
    assert line.endswith(f"{CHAT}: the upstream server broke off its answer: RemoteProtocolError")


def test_the_log_names_dns_refusal_and_tls() -> None:
    refuses = f"http://127.0.0.1:{free_port()}"
    speaks_no_tls = raw_server(b"HTTP/1.1 400 no\r\n\r\n", 0.1)[0].replace("http:", "https:")
    for upstream, words in (
        ("http://no-such-name.invalid", "its name has no address"),
        (refuses, "it refuses connections"),
        (speaks_no_tls, "TLS fails (WRONG_VERSION_NUMBER)"),
    ):
        with running(upstream) as made:
            assert httpx.get(f"{made.url}/v1/models?key=secret", timeout=60).status_code == 502
            _, log = made.stop()
        assert f"/v1/models: the upstream server cannot be reached: {words}" in log
        assert "secret" not in log


@pytest.mark.parametrize(
    ("status", "ready"), [("200 OK", 200), ("404 Not Found", 200), ("401 Unauthorized", 200), ("503 Loading", 503)]
)
def test_readiness_looks_upstream(status: str, ready: int) -> None:
    upstream, read, _ = raw_server(f"HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nno".encode())
    with running(f"{upstream}/base") as made:
        assert httpx.get(f"{made.url}/ready").status_code == ready
        assert httpx.get(f"{made.url}/health").status_code == 200
    assert read[0].startswith(b"GET /base/health HTTP/1.1\r\n")


def test_readiness_without_an_upstream_server() -> None:
    with running(f"http://127.0.0.1:{free_port()}") as made:
        answer = httpx.get(f"{made.url}/ready")
        assert (answer.status_code, httpx.get(f"{made.url}/health").status_code) == (502, 200)
        assert "refuses connections" in answer.text


def test_without_its_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "starlette.py").write_text("raise ModuleNotFoundError('none', name='starlette')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "stopscan_clients.proxy", "http://127.0.0.1:9"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "the proxy needs starlette: pip install './clients[proxy]' in a checkout of stopscan" in ran.stderr
