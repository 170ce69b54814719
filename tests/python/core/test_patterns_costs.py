"""Compiling a pattern takes little time and memory."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

ONCE_ENDLESS = [
    ("END", r"\w{30}!"),
    ("User:", "[^:]{20}:"),
    ("abc", r"[a-f0-9]{32}\b"),
    (None, r"(?i)\b(sk|api|key)[-_][a-z0-9]{16,48}\b"),
    (None, "api[a-z]{16}!"),
    (None, "(?i)key[a-z]{16}!"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="a process learns its size from /proc")
def test_one_short_pattern_took_all_memory() -> None:
    """Each pattern must compile in little memory. Before a fix, the compilation doubled a list at each character, so a
    short pattern such as `\\w{30}!` took all memory."""
    code = textwrap.dedent(f"""
        import resource
        from pathlib import Path

        from stopscan import StopSet

        # A Python without a GIL reserves a gigabyte of address space at its start. So the limit is half a gigabyte
        # above what the process has now.
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        data = pages * resource.getpagesize() + (1 << 29)
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        resource.setrlimit(resource.RLIMIT_DATA, (data, data))
        for stop, pattern in {ONCE_ENDLESS}:
            print(pattern, flush=True)
            StopSet(stop, patterns=[pattern])
        print("done")
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["done"], (done.returncode, done.stdout, done.stderr)
