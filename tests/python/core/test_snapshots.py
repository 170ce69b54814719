"""Snapshots: the state of a stream as bytes, which must be the same in every process and in Rust."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from stopscan import Repeat, StopScanner, StopSet
from stopscan.segments import Segmenter, keep

GRAPH = {"answer": {"<think>": "reasoning", "<call>": keep("call")}, "reasoning": {"</think>": "answer"}, "call": {}}

# The same bytes as `VERSION_4` in tests/rust/snapshots.rs, because they come from the same set and the same text.
VERSION_4 = bytes([4, 66, 104, 185, 43, 39, 222, 120, 219, 0, 0, 0, 23, 24, 0, 0, 1, 4, 45, 52, 222, 18])


def test_version_4_is_that_of_rust() -> None:
    scanner = StopScanner(StopSet(["END", "\n\nHuman:"], protect=[("<think>", "</think>")]))
    assert scanner.feed("<think>END</think>é\n\nHu") == "<think>END</think>é"
    assert scanner.snapshot() == VERSION_4
    other = StopScanner(scanner.stops)
    other.restore(VERSION_4)
    assert (other.held, other.feed("man: Hi"), other.match and other.match.offset) == ("\n\nHu", "", 19)


def test_a_set_of_stops_has_one_order() -> None:
    """The order of a Python `set` differs between processes. If stopscan kept this order, a snapshot could not be
    restored in another process."""
    made = "from stopscan import StopScanner; print(StopScanner({'END', 'STOP', 'Human:', '###'}).snapshot().hex())"
    snapshots = {
        subprocess.run(
            [sys.executable, "-c", made],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(1, 5)
    }
    assert len(snapshots) == 1


@pytest.mark.parametrize("text", ["", "E", "a END more", "<think>x", "é 12", "x" * 300])
@pytest.mark.parametrize("include_stop", [False, True])
def test_a_scanner_goes_on_elsewhere(text: str, include_stop: bool) -> None:
    stops = StopSet("END", patterns=[r"\d+:"], protect=[("<think>", "</think>")], repeat=Repeat())
    scanner = StopScanner(stops, include_stop=include_stop)
    scanner.feed(text)
    restored = StopScanner(StopSet("END", **options_of(stops)), include_stop=include_stop)
    assert restored.restore(scanner.snapshot()) is None
    for other in (restored, scanner.copy(), copy.deepcopy(scanner), pickle.loads(pickle.dumps(scanner))):
        assert seen(other) == seen(scanner)
        original = scanner.copy()
        for delta in ["ND", "</think>1: ", "END"]:
            assert other.feed(delta) == original.feed(delta)
            assert seen(other) == seen(original)


def options_of(stops: StopSet) -> dict[str, Any]:
    return {"patterns": stops.patterns, "protect": stops.protect, "repeat": stops.repeat}


def seen(scanner: StopScanner | Segmenter) -> tuple[Any, ...]:
    return scanner.held, scanner.match, scanner.unused, scanner.region


def test_a_segmenter_goes_on_elsewhere() -> None:
    segmenter = Segmenter(GRAPH)
    segmenter.feed("<think>a</thi")
    other = Segmenter(GRAPH)
    other.restore(segmenter.snapshot())
    assert seen(other) == seen(segmenter) == ("</thi", None, "", "reasoning")
    assert other.feed("nk>b<call>c") == [("answer", "b", 2), ("call", "<call>c", 3)]


def test_what_is_refused_changes_nothing() -> None:
    scanner = StopScanner("END")
    scanner.feed("a EN")
    snapshot = scanner.snapshot()
    others = [
        StopScanner("EN").snapshot(),
        StopScanner(StopSet("END", patterns=["x"])).snapshot(),
        StopScanner("END", include_stop=True).snapshot(),
        Segmenter({"answer": {"|": "answer"}}).snapshot(),
        b"",
        snapshot[:-1],
        snapshot + b"\0",
        bytes([snapshot[0] + 1]) + snapshot[1:],
    ]
    for other in others:
        with pytest.raises(ValueError, match="snapshot"):
            scanner.restore(other)
        assert (scanner.held, scanner.snapshot()) == ("EN", snapshot)
    with pytest.raises(TypeError, match="bytes"):
        scanner.restore("END")  # type: ignore[arg-type]
    assert scanner.feed("D") == ""


def test_a_snapshot_is_small() -> None:
    scanner = StopScanner(StopSet("END", visible=["s" * 100_000]))
    scanner.feed("s" * 99_999)
    assert len(scanner.snapshot()) <= 256


def test_a_snapshot_can_be_given_by_its_name() -> None:
    scanner = StopScanner("END")
    scanner.feed("EN")
    other = StopScanner("END")
    other.restore(snapshot=scanner.snapshot())
    assert other.held == "EN"
