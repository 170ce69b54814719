from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def staged_url() -> Iterator[str]:
    """The right server is at `/right` of it, the wrong ones are at their names."""
    command = [sys.executable, "-m", "staged"]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, "the staged server did not start"
        yield f"http://127.0.0.1:{port}"
        process.terminate()
