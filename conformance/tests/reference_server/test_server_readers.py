"""Clients that do not read, or a byte a second, and clients that ask for more than their share."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest
from server_harness import Connection, CountingEngine, engine_module, served

from stopscan_conformance.reciter import Reciter

COUNT = {"prompt": "[count]", "stop": "5"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> CountingEngine:
    reciter = Reciter({"long": ["word "] * 2_000, "count": "123456789"}, special_tokens=[])
    return CountingEngine(str(reciter.write(tmp_path_factory.mktemp("readers") / "reciter")))


@pytest.fixture(scope="module")
def url(engine: CountingEngine) -> Iterator[str]:
    with served(engine) as url:
        yield url


def asked(url: str, prompt: str, max_tokens: int) -> socket.socket:
    """A client with little room for what comes, which has asked for a stream."""
    place = urlsplit(url)
    body = json.dumps({"prompt": prompt, "stream": True, "max_tokens": max_tokens}).encode()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    client.settimeout(60)
    client.connect((place.hostname, place.port))
    client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return client


def serves(url: str, address: str = "127.0.0.1") -> bool:
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address), timeout=60) as client:
        return client.post(f"{url}/v1/completions", json=COUNT).json()["choices"][0]["text"] == "1234"


def is_given_up(client: socket.socket) -> bool:
    """Whether the server resets the connection before a byte every 50 ms has read all of the answer."""
    deadline = time.monotonic() + 240
    try:
        while time.monotonic() < deadline and client.recv(1):
            time.sleep(0.05)
    except ConnectionResetError:
        return True
    finally:
        client.close()
    return False


def test_who_reads_a_byte_at_a_time_is_given_up(
    engine: CountingEngine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They kept their rows for ever. The long answer waits in its middle, the short one after its end."""
    monkeypatch.setattr(Connection, "read_seconds", 0.5)
    monkeypatch.setattr(Connection, "kernel_bytes", 2048)
    slow = [asked(url, "[long]", 2_000) for _ in range(4)] + [asked(url, "[long]", 150) for _ in range(4)]
    assert serves(url)
    with ThreadPoolExecutor(len(slow)) as pool:
        assert all(pool.map(is_given_up, slow))
    deadline = time.monotonic() + 240
    while engine.rows and time.monotonic() < deadline:
        time.sleep(0.05)
    assert engine.rows == 0
    assert serves(url)


def test_who_reads_in_time_is_not_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "read_seconds", 1.5)
    monkeypatch.setattr(Connection, "kernel_bytes", 2048)
    with asked(url, "[long]", 150) as client, client.makefile("rb") as answer:
        time.sleep(0.3)
        assert any(b"[DONE]" in line for line in answer)
        time.sleep(1.8)
        client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert any(b'"ok"' in line for line in answer)


def test_one_client_leaves_places_for_others(engine: CountingEngine, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 streams of one client kept everybody else waiting for minutes."""
    monkeypatch.setattr(engine_module, "SHARE", 2)
    before = len(engine.model.widths)
    streams = [asked(url, "[long]", 1_000) for _ in range(6)]
    assert serves(url, "127.0.0.2")
    assert engine.rows == 2  # the others of the six wait
    for stream in streams[:3]:
        stream.close()
    for stream in streams[3:]:
        with stream, stream.makefile("rb") as answer:
            assert any(b"[DONE]" in line for line in answer)
    assert max(engine.model.widths[before:]) == 3
