"""Runs the filter, `python -m stopscan`, in pipes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

FILTER = [sys.executable, "-m", "stopscan"]
SECONDS = 60  # a test fails if it waits for the filter longer than this
FIRED, NONE_FIRED, BAD = 0, 1, 2
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell or argument bytes")


class Ended(NamedTuple):
    status: int
    out: bytes
    err: str


def run(data: bytes, *arguments: str | bytes) -> Ended:
    done = subprocess.run([*FILTER, *arguments], input=data, capture_output=True, timeout=SECONDS, check=False)
    return Ended(done.returncode, done.stdout, done.stderr.decode())


def report(sequence: str | None, offset: int | None, end: int | None) -> dict[str, object]:
    return {"sequence": sequence, "offset": offset, "end": end}


@contextmanager
def running(*arguments: str, stdin: int = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes]]:
    """Starts the filter, `python -m stopscan`. Kills it after `SECONDS`, so that a test does not wait for output that
    never comes."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*FILTER, *arguments], stdin=stdin, stdout=pipe, stderr=pipe, bufsize=0) as process:
        killer = threading.Timer(SECONDS, process.kill)
        killer.start()
        try:
            yield process
        finally:
            killer.cancel()
            process.kill()


def write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)


def read(process: subprocess.Popen[bytes], count: int) -> bytes:
    """Waits for `count` bytes of output, and returns them. The filter gets no input in this time."""
    assert process.stdout is not None
    data = b""
    while len(data) < count and (piece := process.stdout.read(count - len(data))):
        data += piece
    return data
