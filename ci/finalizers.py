"""A pytest plugin that runs Python's garbage collector as often as possible. Each time, a finalizer reads streams.

Before Python 3.12, the collector runs inside an allocation. So the finalizer can run in the middle of a stream's
method. It reads the stream, and now and then lets other threads run. The result of the method must not change.

    PYTHONPATH=ci python -m pytest -p finalizers tests/python/core
"""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from stopscan import Rewriter, RewriteStream, StopScanner, StopStream
from stopscan.segments import Segmenter, SegmentStream
from stopscan.tokens import TokenScanner, TokenSegmenter

SCANNERS = (StopScanner, Segmenter, TokenScanner, TokenSegmenter, Rewriter)
STREAMS = (*SCANNERS, StopStream, SegmentStream, RewriteStream)
# How many stack frames a finalizer searches for streams: the frame that it interrupted, and the callers of that frame.
FRAMES = 3

reads = 0


class Garbage:
    """An object in a cycle, which only the collector frees."""

    def __init__(self) -> None:
        self.cycle = self

    def __del__(self) -> None:
        global reads
        for stream in streams(sys._getframe(1)):
            with contextlib.suppress(RuntimeError):  # a read raises if this thread holds the stream's lock
                for name in ("held", "match", "region"):
                    getattr(stream, name, None)  # a rewriter has no match and no region
                reads += 1
        if reads % 16 == 0:
            time.sleep(0)  # lets other threads run
        if gc.get_threshold()[0] == 1:
            Garbage()


def streams(frame: FrameType | None) -> Iterator[Any]:
    for _ in range(FRAMES):
        if frame is None:
            return
        for value in list(frame.f_locals.values()):
            stream = getattr(value, "__self__", value) if callable(value) else value
            if type(stream) in STREAMS:
                yield stream
        frame = frame.f_back


@pytest.fixture(autouse=True)
def _finalizers() -> Iterator[None]:
    threshold = gc.get_threshold()
    gc.collect()
    gc.set_threshold(1, 1_000, 1_000)
    Garbage()
    yield
    gc.set_threshold(*threshold)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of pytest-xdist, tells the main process how often finalizers have read streams."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["reads"] = reads


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    global reads
    reads += getattr(node, "workeroutput", {"reads": 0})["reads"]  # a worker that crashed has no output


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"{reads} reads by finalizers")
