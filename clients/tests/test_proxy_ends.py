"""The client, the server or the proxy becomes silent, breaks off or ends. The others must get an error or an end, and
never wait forever."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import wire
from botocore.eventstream import EventStreamBuffer
from events import text_of
from replay import Recording, Replay, aws
from running import Running, free_port, raw_server, running, until
from through import endless

from stopscan_clients.framing import Aws

CHAT = "/v1/chat/completions"
PATHS = {
    "chat": CHAT,
    "anthropic": "/v1/messages",
    "ollama": "/api/chat",
    "gemini": "/v1beta/models/{model}:streamGenerateContent",
    "bedrock": "/model/{model}/converse-stream",
}


@pytest.fixture(scope="module")
def proxied(server: Replay) -> Iterator[Running]:
    with running(server.url, "--stop", "END") as made:
        yield made


def test_an_absent_upstream_is_a_502() -> None:
    with running(f"http://127.0.0.1:{free_port()}") as made:
        for path, kind in ((CHAT, "server_error"), ("/v1/messages", "api_error")):
            answer = httpx.post(f"{made.url}{path}?key=secret", json={}, headers={"authorization": "Bearer secret"})
            assert (answer.status_code, answer.json()["error"]["type"]) == (502, kind)
        out, log = made.stop()
    assert "cannot be reached" in log
    assert "secret" not in out + log


def test_an_upstream_that_is_silent_is_a_504() -> None:
    upstream, _, gone = raw_server(b"", 20)
    with running(upstream, "--timeout", "0.5") as made:
        answer = httpx.post(f"{made.url}/api/chat", json={}, timeout=15)
    assert (answer.status_code, isinstance(answer.json()["error"], str)) == (504, True)
    assert gone.wait(10)


def test_a_client_that_leaves_early_ends_the_upstream_request() -> None:
    upstream, read, gone = raw_server(b"", 20)
    with running(upstream, "--stop", "END") as made:
        with socket.create_connection(("127.0.0.1", httpx.URL(made.url).port or 0)) as leaving:
            leaving.sendall(b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}" % CHAT.encode())
            until(lambda: read)
        assert gone.wait(10)


def test_a_client_that_leaves_a_stream_ends_it(server: Replay, proxied: Running) -> None:
    recording = endless("chat")
    recording.events = wire.chat(["never", *["more"] * 100])
    recording.pause = 3
    with httpx.stream(
        "POST", f"{proxied.url}{CHAT}", json={"model": server.record(recording), "stream": True}
    ) as answer:
        next(answer.iter_bytes())
    assert recording.gone.wait(10)


def broken_off(server: Replay, proxied: Running, api: str) -> bytes:
    """Returns what the client gets of a stream that the upstream server breaks off. Checks that the proxy closes the
    connection."""
    recording = Recording(wire.WIRES[api](["one", "EN"])[:4], broken=True)
    model = server.record(recording)
    request = {"model": model, "stream": True}
    body = bytearray()

    def read() -> None:
        with httpx.stream("POST", f"{proxied.url}{PATHS[api].format(model=model)}", json=request, timeout=10) as answer:
            for piece in answer.iter_bytes():
                body.extend(piece)

    with pytest.raises(httpx.RemoteProtocolError):
        read()
    return bytes(body)


@pytest.mark.parametrize("api", ["chat", "anthropic", "ollama"])
def test_an_upstream_that_breaks_off_is_an_error(server: Replay, proxied: Running, api: str) -> None:
    last = broken_off(server, proxied, api).strip().splitlines()[-1]
    assert "error" in json.loads(last.removeprefix(b"data: "))


def test_a_broken_json_array_ends_with_an_error(server: Replay, proxied: Running) -> None:
    *events, last = json.loads(broken_off(server, proxied, "gemini"))
    assert "one" in json.dumps(events)
    assert last["error"]["status"] == "UNAVAILABLE"


def test_a_broken_aws_stream_ends_with_an_exception(server: Replay, proxied: Running) -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(broken_off(server, proxied, "bedrock"))
    *_, last = [message.to_response_dict() for message in buffer]
    assert (last["status_code"], last["headers"][":exception-type"]) == (400, "internalServerException")
    assert "broke off its answer" in json.loads(last["body"])["message"]


def test_a_killed_proxy_closes_both_connections(server: Replay) -> None:
    recording = endless("chat")
    recording.events = wire.chat(["never", *["more"] * 100])
    recording.pause = 3
    with running(server.url, "--stop", "END") as made:
        request = {"model": server.record(recording), "stream": True}
        with httpx.stream("POST", f"{made.url}{CHAT}", json=request, timeout=10) as answer:
            pieces = answer.iter_bytes()
            next(pieces)
            made.process.kill()
            with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
                list(pieces)
    assert recording.gone.wait(10)


def test_a_killed_upstream_is_an_error_event() -> None:
    """A killed process sends no last chunk: the operating system resets or closes its connections. So the upstream
    server is a separate process here."""
    port = free_port()
    code = f"""import socket, sys
listening = socket.create_server(("127.0.0.1", {port}))
while True:
    connection, _ = listening.accept()
    if connection.recv(65536):
        head = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n"
        event = b'data: {{"choices": [{{"index": 0, "delta": {{"content": "one"}}}}]}}\\n\\n'
        connection.sendall(head + b"%x\\r\\n%s\\r\\n" % (len(event), event))
"""
    upstream = subprocess.Popen([sys.executable, "-c", code])
    body = b""
    try:
        with running(f"http://127.0.0.1:{port}", "--stop", "END") as made:
            request = {"model": "m", "stream": True}
            with httpx.stream("POST", f"{made.url}{CHAT}", json=request, timeout=20) as answer:
                pieces = answer.iter_bytes()
                body = next(pieces)
                upstream.kill()
                with contextlib.suppress(httpx.RemoteProtocolError):
                    for piece in pieces:
                        body += piece
    finally:
        upstream.kill()
        upstream.wait()
    assert json.loads(body.split(b"data: ")[-1])["error"]["type"] == "server_error"


def test_sigterm_lets_open_answers_end(server: Replay) -> None:
    arrived, go = threading.Event(), threading.Event()

    def slowly(path: str, body: Any) -> Recording:
        arrived.set()
        go.wait(10)
        return Recording(wire.chat(["one", " two END"]))

    with running(server.url, "--stop", "END", "--grace", "20") as made:
        model = server.record(slowly)
        answers: list[str] = []

        def ask() -> None:
            answers.append(httpx.post(f"{made.url}{CHAT}", json={"model": model, "stream": True}, timeout=20).text)

        asking = threading.Thread(target=ask)
        asking.start()
        assert arrived.wait(20)
        made.process.terminate()
        time.sleep(0.5)
        assert made.process.is_alive()
        go.set()
        asking.join(20)
        assert '"matched_stop":"END"' in answers[0]
        made.process.join(20)
        assert made.process.exitcode in (0, -signal.SIGTERM)


def test_sigterm_ends_answers_that_outlast_the_grace(server: Replay) -> None:
    """After SIGTERM, the proxy waits for running answers until its grace ends. A request whose answer has not begun by
    then gets a 503 in the API's form."""
    upstream, read, gone = raw_server(b"", 30)
    with running(upstream, "--stop", "END", "--grace", "1") as made:
        answers: list[httpx.Response] = []

        def ask() -> None:
            answers.append(httpx.post(f"{made.url}{CHAT}", json={"stream": True}, timeout=20))

        asking = threading.Thread(target=ask)
        asking.start()
        until(lambda: read)
        made.process.terminate()
        asking.join(10)
        assert not asking.is_alive()
        assert gone.wait(10)
        assert (answers[0].status_code, answers[0].json()["error"]["type"]) == (503, "server_error")


def test_a_stream_beyond_the_grace_ends_with_an_error(server: Replay) -> None:
    recording = Recording(wire.chat(["one", " two"]), pause=1)
    with running(server.url, "--stop", "END", "--grace", "1") as made:
        model = server.record(recording)
        with httpx.stream("POST", f"{made.url}{CHAT}", json={"model": model, "stream": True}, timeout=20) as answer:
            body = answer.iter_raw()
            read = next(body)
            made.process.terminate()
            with contextlib.suppress(httpx.RemoteProtocolError):
                for piece in body:
                    read += piece
        last = json.loads(read.rstrip().split(b"data: ")[-1])
        assert last["error"]["message"] == "the proxy is shutting down"


def test_events_before_an_unreadable_event_come() -> None:
    """If an event cannot be read, the client must first get the earlier events in the same piece of bytes, then the
    held text, and then the error."""
    media = b"application/vnd.amazon.eventstream"
    body = b"".join(map(aws, wire.bedrock(["one ", "two E"])[:3])) + b"\x00\x00\x00\x05" * 3
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n" % (media, len(body))
    upstream, _, _ = raw_server(head + body)
    got = bytearray()
    with running(upstream, "--stop", "END") as made:
        url = f"{made.url}/model/m/converse-stream"
        with contextlib.suppress(httpx.RemoteProtocolError), httpx.stream("POST", url, json={}, timeout=60) as answer:
            for piece in answer.iter_bytes():
                got += piece
    assert answer.status_code == 200
    form = Aws()
    *events, error = [bytes(frame) for frame in form.split(bytes(got))]
    parsed = [json.loads(form.payload(frame) or b"") for frame in events]
    assert [text_of("bedrock", event) for event in parsed] == [None, "one ", "two ", "E"]
    assert form.fails(error)
    assert b"wrong size" in error
