"""Runs the tests without memory in processes of their own. There each allocation of the process fails in turn, also one
of another thread, such as that which tells pytest-xdist's workers what to run."""

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
