"""What the tests share: a checkpoint that recites known texts, and test servers that send these texts without an
engine. Also sets hypothesis to test the same examples in every run, and to keep no database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from stopscan_conformance import Reciter

settings.register_profile(
    "stopscan", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("stopscan")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="ask the staged servers all cases, which takes an hour")


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--thorough"))


@pytest.fixture(scope="session")
def reciter() -> Reciter:
    return Reciter()


@pytest.fixture(scope="session")
def checkpoint(reciter: Reciter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reciter.write(tmp_path_factory.mktemp("reciter"))


@pytest.fixture(scope="session")
def staged_url() -> Iterator[str]:
    """Yields the URL under which all test servers run. The path names the server. For example, `/right` is the correct
    server."""
    yield from served("-m", "staged")


@pytest.fixture(scope="session")
def example_url() -> Iterator[str]:
    """Yields the URL of `examples/server.py`."""
    yield from served("example.py")


def served(*arguments: str) -> Iterator[str]:
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, f"{command} did not start"
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
