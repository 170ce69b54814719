"""What the detection of loops costs: vLLM's check of the token ids at every step, and `Repeat` at every delta.

"$(ci/vllm-env)/bin/python" benches/vllm_repetition.py
"""

from __future__ import annotations

import platform
import random
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from time import thread_time_ns

from vllm.sampling_params import RepetitionDetectionParams
from vllm.v1.core.sched.utils import check_sequence_repetition

from stopscan import Repeat, StopScanner, StopSet

TOKENS = 4_000
ROUNDS = 5
WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "read", "some", "code", "until", "late", "at", "night"]
STOPS = ["</s>", "<|im_end|>", "\n\nHuman:", "###"]


def least(once: Callable[[], int]) -> float:
    """Nanoseconds of processor time a token, the best of some rounds, because other processes may run."""
    return min(once() for _ in range(ROUNDS)) / TOKENS


def of_vllm(ids: list[int], longest: int) -> Callable[[], int]:
    rule = RepetitionDetectionParams(max_pattern_size=longest, min_pattern_size=1, min_count=4)

    def once() -> int:
        seen: list[int] = []
        begun = thread_time_ns()
        for token in ids:
            seen.append(token)
            check_sequence_repetition(seen, rule)
        return thread_time_ns() - begun

    return once


def of_stopscan(deltas: list[str], repeat: Repeat | None) -> Callable[[], int]:
    stops = StopSet(STOPS, repeat=repeat)

    def once() -> int:
        scanner = StopScanner(stops)
        begun = thread_time_ns()
        for delta in deltas:
            scanner.feed(delta)
        assert scanner.match is None
        return thread_time_ns() - begun

    return once


def main() -> None:
    chosen = random.Random(5)
    ids = [chosen.randrange(len(WORDS)) for _ in range(TOKENS)]
    deltas = [f" {WORDS[token]}" for token in ids]
    print(f"vLLM {version('vllm')}, Python {platform.python_version()}, {platform.machine()}, {date.today()}")
    print(f"{TOKENS} tokens of {sum(map(len, deltas)) / TOKENS:.1f} characters; nanoseconds a token")
    for longest in (16, 128, 1024):
        print(f"vLLM, periods to {longest} tokens: {least(of_vllm(ids, longest)):.0f}")
    bare = least(of_stopscan(deltas, None))
    print(f"feed: {bare:.0f}")
    for repeat in (Repeat(), Repeat(min_length=64), Repeat(max_period=65_536)):
        print(f"feed with {repeat}: {least(of_stopscan(deltas, repeat)):.0f}")


if __name__ == "__main__":
    main()
