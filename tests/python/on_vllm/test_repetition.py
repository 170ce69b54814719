"""stopscan finds a loop at the same character as vLLM's detection of repetition, if each character is a token."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed")

from vllm.sampling_params import RepetitionDetectionParams
from vllm.v1.core.sched.utils import check_sequence_repetition

from stopscan import Repeat, StopMatch, StopScanner, StopSet


def loops(text: str, repeat: Repeat, period: int) -> bool:
    """Whether vLLM says that the text ends with a loop of this period.

    A loop of stopscan consists of whole copies of a block and sometimes a part of a copy. vLLM counts only whole
    copies. So vLLM is asked twice. The first question is about the whole copies that end where the loop ends. The
    second question is about the whole copies that begin where the loop begins.
    """
    length = max(repeat.count * period, repeat.min_length)
    copies, cut = divmod(length, period)
    rule = RepetitionDetectionParams(max_pattern_size=period, min_pattern_size=period, min_count=copies)
    ids = [ord(character) for character in text[-length:]] if len(text) >= length else []
    return bool(ids) and check_sequence_repetition(ids, rule) and check_sequence_repetition(ids[: length - cut], rule)


def by_vllm(text: str, repeat: Repeat) -> StopMatch | None:
    for end in range(1, len(text) + 1):
        for period in range(1, repeat.max_period + 1):
            if loops(text[:end], repeat, period):
                offset = end - max(repeat.count * period, repeat.min_length)
                return StopMatch(text[offset:end], offset, period=period)
    return None


def staged(seed: int) -> tuple[str, Repeat]:
    """Returns a random text in which blocks repeat, some of them often enough for a loop, and the settings of the loop
    detection."""
    chosen = random.Random(seed)
    repeat = Repeat(
        chosen.choice([3, 4, 5]), max_period=chosen.choice([1, 3, 8, 16]), min_length=chosen.choice([32, 40])
    )
    pieces = []
    for _ in range(3):
        block = "".join(chosen.choices("ab世", k=chosen.randint(1, 14)))
        pieces.append(
            "".join(chosen.choices("abc", k=chosen.randrange(20))) + block * chosen.randint(1, 60 // len(block))
        )
    return "".join(pieces), repeat


def test_loops_are_where_vllm_finds_them() -> None:
    fired = 0
    for seed in range(150):
        text, repeat = staged(seed)
        expected = by_vllm(text, repeat)
        scanner = StopScanner(StopSet(repeat=repeat))
        for character in text:
            scanner.feed(character)
        assert scanner.match == expected, (text, repeat)
        fired += expected is not None
    assert 30 < fired < 120
