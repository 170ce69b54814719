"""Jobs whose time and memory are measured. `measured(JOB)` runs a job in a new process, and returns both."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

from report import options
from workload import scattered, tokenizer, vocabularies

import stopscan

SCANNERS = 100_000  # as many streams as the front process of a large server may have


def scanners() -> Callable[[], object]:
    """Returns a job that makes scanners as servers do. Each is in the middle of its stream and holds no text."""
    stops, kept = stopscan.StopSet(["END", "</s>"]), []

    def job() -> None:
        for _ in range(SCANNERS):
            kept.append(stopscan.StopScanner(stops))
            kept[-1].feed("Once")

    return job


def token_scanners() -> Callable[[], object]:
    """Returns a job that makes token scanners, each with an EOS and a token limit, in the middle of its stream."""
    from stopscan.tokens import TokenScanner, Vocabulary

    vocabulary, stops = Vocabulary(tokenizer()), stopscan.StopSet(["END", "</s>"])
    kept: list[Any] = []

    def job() -> None:
        for _ in range(SCANNERS):
            kept.append(TokenScanner(vocabulary, stops, eos_token_ids=[0], max_tokens=1000))
            kept[-1].feed(500)

    return job


def vocabulary(name: str) -> Callable[[], object]:
    from stopscan.tokens import Vocabulary

    source = vocabularies()[name]()
    return lambda: Vocabulary(source)


def many() -> Callable[[], object]:
    stops = scattered(100_000)
    return lambda: stopscan.StopSet(stops)


def nested() -> Callable[[], object]:
    stops = ["a" * length for length in range(1, 3001)]
    return lambda: stopscan.StopSet(stops)


def too_many() -> Callable[[], object]:
    stops = scattered(450_000)

    def job() -> None:
        with suppress(ValueError):
            raise AssertionError(f"a set above the memory limit was not refused: {stopscan.StopSet(stops)}")

    return job


def peak() -> int:
    """The most memory this process ever had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, getrusage would include the memory of the parent process
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident() -> int:
    """The resident memory of this process, in bytes. Works only on Linux."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measured(job: str, of: str = "") -> tuple[float, int]:
    """Runs a job in a new process. Returns the seconds that it takes, and the bytes by which it raises the peak
    memory of the process. If ``of`` names a vocabulary, counts the bytes by which it raises the current memory
    instead, because loading the tokenizer has already raised the peak."""
    answer = subprocess.run([sys.executable, __file__, job, of], check=True, capture_output=True, text=True)
    seconds, size = json.loads(answer.stdout)
    return seconds, size


if __name__ == "__main__":
    parser = options(__doc__)
    jobs: dict[str, Callable[..., Callable[[], object]]] = {
        job.__name__: job for job in (scanners, token_scanners, vocabulary, many, nested, too_many)
    }
    parser.add_argument("job", choices=jobs)
    parser.add_argument("of", help="the name of a vocabulary, or an empty string")
    given = parser.parse_args()
    size = resident if given.of else peak
    run = jobs[given.job](given.of) if given.of else jobs[given.job]()
    before, start = size(), perf_counter()
    kept = run()
    print(json.dumps([perf_counter() - start, size() - before]))
