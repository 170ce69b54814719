"""Starts the proxy in a separate process, as its command does. Also starts a raw server to which the proxy connects."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

# Each proxy process is forked from a process that has already imported the proxy. The import takes 0.6 s of processor
# time.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["stopscan_clients.proxy.__main__"])


def command(options: list[str], files: list[Path]) -> None:
    """Runs the command ``stopscan-proxy`` with ``options``. Its stdout and stderr go to the two ``files``."""
    from stopscan_clients.proxy.__main__ import main

    for number, path in enumerate(files, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.exit(main(options))


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


class Running:
    def __init__(self, upstream: str, *options: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._folder = tempfile.TemporaryDirectory()
        self._files = [Path(self._folder.name, name) for name in ("stdout", "stderr")]
        self.process = FORKS.Process(target=command, args=([upstream, "--port", str(port), *options], self._files))
        self.process.daemon = True
        self.process.start()

    def wait(self, seconds: float = 120) -> None:
        """Waits until the proxy answers. Limits the total time, not the number of tries."""
        end = time.monotonic() + seconds
        with httpx.Client(base_url=self.url, trust_env=False) as client:  # one client for all tries: making it is slow
            while (rest := end - time.monotonic()) > 0:
                assert self.process.is_alive(), self.stop()
                with contextlib.suppress(httpx.TransportError):
                    # The timeout is short, so that `is_alive` is called again soon: the proxy ends if its port is
                    # taken.
                    assert client.get("/health", timeout=min(rest, 10)).json() == {"status": "ok"}
                    return
                time.sleep(0.05)
        raise TimeoutError(f"the proxy has not answered for {seconds} seconds")

    def stop(self) -> tuple[str, str]:
        """Ends the process, and returns what it has written to stdout and stderr."""
        self.process.terminate()
        self.process.join(60)
        if self.process.is_alive():
            self.process.kill()
            raise TimeoutError("the proxy goes on after a SIGTERM")
        out, log = [path.read_text() for path in self._files]
        return out, log


@contextlib.contextmanager
def running(upstream: str, *options: str) -> Iterator[Running]:
    made = Running(upstream, *options)
    try:
        made.wait()
        yield made
    finally:
        made.stop()


def until(true: Callable[[], object], seconds: float = 20) -> None:
    """Waits until ``true()`` is true. Fails if that takes longer than ``seconds``."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def raw_server(answer: bytes, seconds: float = 0) -> tuple[str, list[bytes], threading.Event]:
    """Starts a server that reads from a connection until no data has come for ``seconds`` (0 means 0.2 s), and then
    sends ``answer``. Returns the server's URL, a list with the data of each connection, and an event that is set if a
    client leaves before the answer."""
    listening = socket.create_server(("127.0.0.1", 0))
    read: list[bytes] = []
    gone = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            read.append(connection.recv(1 << 20))
            connection.settimeout(seconds or 0.2)
            with contextlib.suppress(TimeoutError):
                while more := connection.recv(1 << 20):  # the rest of the request
                    read[-1] += more
                gone.set()
                return
            connection.sendall(answer)

    def accept() -> None:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}", read, gone
