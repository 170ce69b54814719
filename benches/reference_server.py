"""What the reference server's loop bears: the worst requests beside 20 streams, and 1,000 clients that hardly read.

    python benches/reference_server.py [loop] [readers]

The server is a process of its own, which times each callback of its loop. It needs mlx-lm and the server's extra.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import httpx

from stopscan_conformance.reciter import Reciter

SERVER = Path(__file__).parents[1] / "conformance" / "reference_server"
READERS, TOKENS = 1_000, 500
SHORT = {"prompt": "[count]", "stop": "5"}


def serve(model: str) -> None:
    """The server, which says at each SIGUSR1 how long the longest callback of its loop took since the last: what
    passed, without what Linux gave the core to others (so work and waits for the GIL), and the work alone.
    """
    longest = dict.fromkeys(("held", "cpu"), (0.0, ""))
    run = asyncio.Handle._run
    schedule = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)

    def held() -> float:
        queued = int(os.pread(schedule, 64, 0).split()[1])  # ns, as it waited for a core
        return time.perf_counter() - queued / 1e9

    def timed(handle: asyncio.Handle) -> None:
        begun, cpu = held(), time.thread_time()
        run(handle)
        for kind, seconds in (("cpu", time.thread_time() - cpu), ("held", held() - begun)):
            if seconds > longest[kind][0]:
                longest[kind] = (seconds, repr(handle)[:300])

    def tell(*_: Any) -> None:
        os.write(1, f"\n{json.dumps(longest)}\n".encode())  # `print` may be at a line of the log
        longest.update(dict.fromkeys(longest, (0.0, "")))

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    signal.signal(signal.SIGUSR1, tell)
    sys.path.insert(0, str(SERVER))
    sys.argv = [str(SERVER), model, "--port", "0"]
    runpy.run_path(str(SERVER), run_name="__main__")


class Served:
    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        self._told: list[str] = []
        self._came = threading.Semaphore(0)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            if line.startswith('{"held"'):
                self._told.append(line)
                self._came.release()

    def longest(self) -> dict[str, tuple[float, str]]:
        self.process.send_signal(signal.SIGUSR1)
        self._came.acquire()
        return dict(json.loads(self._told[-1]))

    def figure(self, name: str) -> float:
        lines = httpx.get(f"{self.url}/metrics", timeout=60).text.splitlines()
        return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])

    def memory(self) -> int:
        """In MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(text.split("VmRSS:")[1].split()[0]) // 1024


@contextmanager
def served(context: int = 8192) -> Iterator[Served]:
    with TemporaryDirectory() as folder:
        reciter = Reciter({"long": ["word "] * TOKENS, "count": "123456789"}, special_tokens=[])
        model = reciter.write(Path(folder, "reciter"))
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
        (model / "config.json").write_text(json.dumps({**config, "max_position_embeddings": context}), encoding="utf-8")
        command = [sys.executable, __file__, "serve", str(model)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
            line = next(line for line in process.stderr if "running on" in line)
            threading.Thread(target=lambda: [None for _ in process.stderr], daemon=True).start()
            try:
                yield Served(process, line.split("running on ")[1].split()[0])
            finally:
                process.kill()


def slow_readers(server: Served, count: int) -> None:
    """So many streams, of which each second a byte is read, until the server gives them up."""
    place = urlsplit(server.url)
    body = json.dumps({"prompt": "[long]", "stream": True, "max_tokens": TOKENS}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    readers: dict[int, socket.socket] = {}
    polled = select.poll()
    begun = time.monotonic()
    for _ in range(count):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        reader.connect((place.hostname, place.port))
        reader.sendall(head + body)
        reader.setblocking(False)
        readers[reader.fileno()] = reader
        polled.register(reader, 0)
    print(f"{count} connected in {time.monotonic() - begun:.1f} s", flush=True)
    while readers:
        for number, _ in polled.poll(0):  # an error: `recv` would first give what came before
            polled.unregister(number)
            readers.pop(number).close()
        for reader in readers.values():
            with suppress(OSError):
                reader.recv(1)
        time.sleep(1)
    print(f"{count} given up after {time.monotonic() - begun:.1f} s", flush=True)


def readers(count: int = READERS) -> None:
    """Others come from an address of their own: a client has at most half of the places."""
    others = httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.2"), timeout=300)
    with served() as server, ThreadPoolExecutor(4) as pool:
        slow = pool.submit(slow_readers, server, count)
        begun = time.monotonic()
        answers, healths = [], []
        print(f"before: {server.memory()} MB", flush=True)
        while not slow.done():
            before = time.monotonic()
            reply = others.post(f"{server.url}/v1/completions", json=SHORT).json()
            assert reply["choices"][0]["text"] == "1234", reply
            answers.append(time.monotonic() - before)
            before = time.monotonic()
            others.get(f"{server.url}/health")
            healths.append(time.monotonic() - before)
            if len(answers) % 20 == 1:
                print(
                    f"{time.monotonic() - begun:.0f} s: short answers {max(answers):.2f} s at most, /health "
                    f"{max(healths) * 1000:.0f} ms, {server.figure('rows'):.0f} rows, {server.memory()} MB, callbacks "
                    f"{server.longest()['held'][0] * 1000:.1f} ms",
                    flush=True,
                )
            time.sleep(0.2)
        slow.result()
        print(f"after: {server.figure('rows'):.0f} rows, {server.memory()} MB", flush=True)


def chat(**more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "[count]"}], **more}).encode()


def tools(count: int, description: int) -> list[dict[str, Any]]:
    function = {"name": "look", "description": "x" * description, "parameters": {"type": "object"}}
    return [{"type": "function", "function": function}] * count


def call(arguments: str) -> bytes:
    use = {"id": "a", "type": "function", "function": {"name": "look", "arguments": arguments}}
    messages = [{"role": "assistant", "content": "", "tool_calls": [use]}, {"role": "user", "content": "[count]"}]
    return json.dumps({"messages": messages}).encode()


CHAT = "/v1/chat/completions"
MANY = [f"stop {number} " + "x" * 25_000 for number in range(64)]
WORST: dict[str, tuple[str, bytes]] = {
    "a prompt of 3.9 MB": ("/v1/completions", json.dumps({"prompt": "x" * 3_900_000}).encode()),
    "a prompt of 1.9 MB": ("/v1/completions", json.dumps({"prompt": "x" * 1_900_000}).encode()),
    "900,000 token ids": ("/v1/completions", b'{"prompt": [' + b"1," * 900_000 + b"1]}"),
    "2,000 messages": (CHAT, json.dumps({"messages": [{"role": "user", "content": "x"}] * 2_000}).encode()),
    "1,500 messages": (CHAT, json.dumps({"messages": [{"role": "user", "content": "x"}] * 1_500}).encode()),
    "1.9 MB of tools": (CHAT, chat(tools=tools(100, 18_500))),
    "700 tools": (CHAT, chat(tools=tools(700, 100))),
    "64 stops of 25 kB": (CHAT, chat(stop=MANY)),
    "64 patterns": (CHAT, chat(patterns=[rf"(?i)\n(user|human) ?{n}\d*:" for n in range(64)])),
    "n: 1,000": (CHAT, chat(n=1_000)),
    "a model's name of 1.9 MB": (CHAT, chat(model="x" * 1_900_000)),
    "a field's name of 1.9 MB": (CHAT, chat(**{"x" * 1_900_000: 1})),
    "600,000 lists in a call": (CHAT, call("[" + "[]," * 600_000 + "[]]")),
    "600,000 lists": (CHAT, b'{"messages": [' + b"[]," * 600_000 + b"[]]}"),
}


def raw(url: str, data: bytes) -> bytes:
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as client:
        try:
            client.sendall(data)
            return client.recv(100)
        except ConnectionError:
            return b""


def worst(server: Served) -> Iterator[tuple[str, Any]]:
    for name, (path, body) in WORST.items():
        yield name, lambda path=path, body=body: httpx.post(f"{server.url}{path}", content=body, timeout=60).status_code
    head = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield "a body in 200,000 chunks", lambda: raw(server.url, head + b"1\r\n \r\n" * 200_000 + b"0\r\n\r\n")[9:12]
    lines = b"".join(b"a%d:\r\n" % number for number in range(2_000))
    yield "2,000 header lines", lambda: raw(server.url, b"GET /health HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n")[9:12]
    yield "200 requests at once", lambda: raw(server.url, b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n" * 200)[9:12]


def loop() -> None:
    with served(context=250_000) as server, ThreadPoolExecutor(20) as pool:

        def streams(beside: Any) -> tuple[float, Any]:
            """The longest gap of 20 streams, in ms, and what `beside` returned."""

            def stream(_: int) -> float:
                asked = {"prompt": "[long]", "stream": True, "max_tokens": 80}
                with httpx.stream("POST", f"{server.url}/v1/completions", json=asked, timeout=60) as response:
                    stamps = [time.perf_counter() for line in response.iter_lines() if "word" in line]
                return max(after - before for before, after in pairwise(stamps))

            gaps = [pool.submit(stream, number) for number in range(20)]
            time.sleep(0.3)
            told = beside()
            return max(gap.result() for gap in gaps) * 1000, told

        streams(lambda: None)
        for name, ask in [("nothing", lambda: None), *worst(server)]:
            server.longest()
            gap, told = streams(ask)
            longest = server.longest()
            (held, what), (cpu, worked) = longest["held"], longest["cpu"]
            print(
                f"{name}: {told}, held {held * 1000:.1f} ms, of CPU {cpu * 1000:.1f} ms, gap {gap:.0f} ms", flush=True
            )
            if held > 0.003:
                print("   ", what, worked, sep="\n    ")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        for name in sys.argv[1:]:
            globals()[name]()
