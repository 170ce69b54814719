"""Runs the tests in which allocations fail, in processes of their own. In pytest's own process, the allocation that
fails could be that of another thread, such as the one that tells a worker of pytest-xdist what to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["no_memory_streams.py", "no_memory_objects.py"])
def test_in_a_process_of_its_own(name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__).with_name(name))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
