"""Peak memory of one job in a process of its own: `python memory.py JOB` prints its seconds and bytes as JSON."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import pytest
from report import Table
from vocabularies import vocabularies
from workload import scattered, tokenizer

import stopscan

SCANNERS = 200_000
TURNS = 100_000  # streams of a server's front process


def scanners() -> Callable[[], object]:
    stops = stopscan.StopSet("END")
    kept = [None] * SCANNERS

    def job() -> list[stopscan.StopScanner]:
        for index in range(SCANNERS):
            kept[index] = stopscan.StopScanner(stops)
        return kept

    return job


def stop_scanners() -> Callable[[], object]:
    """As servers make them, each in mid-stream with nothing held."""
    stops = stopscan.StopSet(["END", "</s>"])
    kept: list[Any] = [None] * TURNS

    def job() -> None:
        for index in range(TURNS):
            kept[index] = stopscan.StopScanner(stops)
            kept[index].feed("Once")

    return job


def token_scanners() -> Callable[[], object]:
    """The same over token ids, with an EOS and a limit."""
    from stopscan.tokens import TokenScanner, Vocabulary

    vocabulary, stops = Vocabulary(tokenizer()), stopscan.StopSet(["END", "</s>"])
    kept: list[Any] = [None] * TURNS

    def job() -> None:
        for index in range(TURNS):
            kept[index] = TokenScanner(vocabulary, stops, eos_token_ids=[0], max_tokens=1000)
            kept[index].feed(500)

    return job


def vocabulary(name: str) -> Callable[[], object]:
    from stopscan.tokens import Vocabulary

    source = vocabularies()[name]()
    kept = []
    return lambda: kept.append(Vocabulary(source))


def many() -> Callable[[], object]:
    stops = scattered(100_000)

    def job() -> None:
        assert len(stopscan.StopSet(stops)) == 100_000

    return job


def nested() -> Callable[[], object]:
    stops = ["a" * length for length in range(1, 3001)]

    def job() -> None:
        assert stopscan.StopSet(stops).find("xaa") == stopscan.StopMatch("a", 1)

    return job


def too_many() -> Callable[[], object]:
    stops = scattered(450_000)

    def job() -> None:
        with pytest.raises(ValueError, match="limit"):
            stopscan.StopSet(stops)

    return job


def peak() -> int:
    """The most memory this process ever had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, what getrusage says includes the parent
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident() -> int:
    """The memory that this process has, in bytes; on Linux."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measured(name: str) -> tuple[float, int]:
    """The seconds that the job `name` takes, and by how many bytes it raises the peak of its process."""
    answer = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
    seconds, size = json.loads(answer.stdout)
    return seconds, size


def vocabularies_table() -> Table:
    """The time to read a tokenizer's vocabulary, and its memory, as they are and for 150,000 tokens."""
    from stopscan.tokens import Vocabulary

    rows = []
    for name, make in vocabularies().items():
        times = []
        for _ in range(3):
            source = make()
            start = process_time()
            vocabulary = Vocabulary(source)
            times.append(process_time() - start)
            assert vocabulary.native
        size = len(vocabulary._parts()[0])
        _, memory = measured(f"vocabulary:{name}")
        scale = 150_000 / size
        scaled = f"{min(times) * scale:.2f} s", f"{memory * scale / 1e6:.0f} MB"
        rows.append((name, f"{size:,}", f"{min(times):.2f} s", f"{memory / 1e6:.1f} MB", *scaled))
    return [("vocabulary", "ids", "read in", "memory", "150,000 ids in", "memory"), *rows]


if __name__ == "__main__":
    size = resident if ":" in sys.argv[1] else peak  # what a tokenizer took to load is no part of its vocabulary
    jobs = (scanners, stop_scanners, token_scanners, many, nested, too_many)
    name, _, of = sys.argv[1].partition(":")
    job = vocabulary(of) if of else {job.__name__: job for job in jobs}[name]()
    before, start = size(), perf_counter()
    job()
    print(json.dumps([perf_counter() - start, size() - before]))
