"""If there is no memory for something whose size the caller's input decides, a call raises a `MemoryError`. The stream
stays usable, and has read either the whole delta or nothing. The calls run in a process that gets no more memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="a process learns its size from /proc")
@pytest.mark.parametrize("megabytes", [1, 10, 30])
def test_a_process_without_memory_goes_on(megabytes: int) -> None:
    """With a few megabytes left, calls must raise a `MemoryError` and leave the scanner usable. Before a fix, one
    `feed` panicked and left the scanner locked, and another `feed` ended the process."""
    script = Path(__file__).with_name("without_memory.py")
    environment = os.environ | {"RUST_BACKTRACE": "1"}
    command = [sys.executable, str(script), str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no memory" in done.stdout
