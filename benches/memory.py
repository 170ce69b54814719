"""Peak memory of one job in a process of its own: `python memory.py JOB` prints its seconds and bytes as JSON."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pytest
from workload import scattered

import stopscan

SCANNERS = 200_000


def scanners() -> Callable[[], object]:
    stops = stopscan.StopSet("END")
    kept = [None] * SCANNERS

    def job() -> list[stopscan.StopScanner]:
        for index in range(SCANNERS):
            kept[index] = stopscan.StopScanner(stops)
        return kept

    return job


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


def measured(name: str) -> tuple[float, int]:
    """The seconds that the job `name` takes, and by how many bytes it raises the peak of its process."""
    answer = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
    seconds, size = json.loads(answer.stdout)
    return seconds, size


if __name__ == "__main__":
    job = {"scanners": scanners, "many": many, "nested": nested, "too_many": too_many}[sys.argv[1]]()
    before, start = peak(), perf_counter()
    job()
    print(json.dumps([perf_counter() - start, peak() - before]))
