"""`examples/server.py`, unchanged, run by uvicorn on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[3] / "examples" / "server.py"


@pytest.fixture(scope="module")
def server() -> ModuleType:
    module = ModuleType("server")
    exec(compile(FILE.read_text(encoding="utf-8"), str(FILE), "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def url(server: ModuleType) -> Iterator[str]:
    import uvicorn

    running = uvicorn.Server(uvicorn.Config(server.app, port=0, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        thread.join(0.01)
    yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    running.should_exit = True
    thread.join()
