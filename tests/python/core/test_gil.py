"""Calls that can take more than a millisecond must release the GIL, so that other threads run. In these tests, the
interpreter never takes the GIL from a thread. So another thread runs only if the call releases the GIL, and no time has
to be measured."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from stopscan import StopScanner, StopSet, scan, truncate
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter, SegmentSet

pytestmark = pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no GIL")

TEXT = "plain text 字 " * 20_000
STOPS = StopSet(["END", "</answer>"], patterns=[r"\n(User|Human) ?\d*:"])
ROLES = [rf"\n(Speaker|Role) {number}:" for number in range(60)]
TOKENS = {f"token{number}": number for number in range(20_000)}
MODEL = {"type": "BPE", "vocab": TOKENS, "merges": []}
JSON = json.dumps({"decoder": {"type": "ByteLevel"}, "model": MODEL}).encode()


@pytest.fixture(autouse=True)
def gil_is_never_taken() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    yield
    sys.setswitchinterval(before)


def lets_run(call: Callable[[], object], times: int) -> bool:
    """Returns whether another thread, which is ready and only lacks the GIL, runs during one of `times` calls."""
    start, ran = threading.Event(), []

    def other() -> None:
        start.wait()
        ran.append(True)

    thread = threading.Thread(target=other)
    thread.start()
    start.set()
    for _ in range(times):
        call()
        if ran:
            break
    seen = bool(ran)
    thread.join()
    return seen


def refused(patterns: list[str]) -> None:
    with pytest.raises(ValueError, match="too large"):
        StopSet(patterns=patterns)


@pytest.mark.parametrize(
    "call",
    [
        lambda: StopSet(patterns=ROLES),
        lambda: refused(["[ab]*a[ab]{12}c"]),
        lambda: StopSet("ab" * 200_000),
        lambda: SegmentSet({"a": {}}, stop=["ab" * 200_000]),
        lambda: STOPS.find(TEXT),
        lambda: STOPS.truncate(TEXT),
        lambda: truncate(TEXT, "END"),
        lambda: StopScanner("END").feed(TEXT),
        lambda: StopScanner(STOPS).feed(TEXT),
        lambda: list(scan([TEXT], "END")),
        lambda: Segmenter({"a": {"<": "a"}}).feed(TEXT),
        lambda: Vocabulary(JSON),
    ],
    ids=[
        "patterns",
        "refused",
        "a long stop",
        "segments",
        "find",
        "truncate",
        "truncate()",
        "feed",
        "feed with patterns",
        "scan",
        "Segmenter",
        "json",
    ],
)
def test_another_thread_runs_meanwhile(call: Callable[[], object]) -> None:
    assert lets_run(call, times=2_000)


def test_no_other_thread_runs_during_a_short_call() -> None:
    scanner = StopScanner("END")
    assert not lets_run(lambda: scanner.feed("a delta"), times=2_000)
