"""Tests of the rule `pace`: at which times the chunks of a correct text may come, even on a busy machine, and which
times are a fault."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from stopscan_conformance.apis import APIS
from stopscan_conformance.client import Answer
from stopscan_conformance.clock import unevenness
from stopscan_conformance.generated import single_of
from stopscan_conformance.oracle import Recital
from stopscan_conformance.space import Point

PACE = 0.002
Chunks = list[tuple[float, int]]  # for each chunk: its time in seconds, and the length of all text up to its end


def recited(among: str) -> Recital:
    point = Point(script="paced", place=None, among=among, stream=True)
    recital = single_of(APIS["openai-chat"], point).expected.recital
    assert recital is not None
    return recital


HELD, FREE = recited("held-here"), recited("alone")


def on_time(recital: Recital) -> Chunks:
    every = [(PACE * (token + 1), safe) for token, safe in enumerate(recital.safe[:-1])]
    return [after for before, after in pairwise([(0.0, 0), *every]) if after[1] > before[1]]


def by_a_clock(recital: Recital, seconds: float) -> Chunks:
    """Returns the chunks of a server that sends text only at the ticks of a clock, which are `seconds` apart."""
    return [((time // seconds + 1) * seconds, end) for time, end in on_time(recital)]


def several_at_once(recital: Recital, count: int) -> Chunks:
    chunks = on_time(recital)
    return [(chunks[min(at // count * count + count, len(chunks)) - 1][0], end) for at, (_, end) in enumerate(chunks)]


def joined(chunks: Chunks) -> Chunks:
    return [*{time: (time, end) for time, end in chunks}.values()]


def after_a_hold_a_token_late(recital: Recital) -> Chunks:
    safe = recital.safe
    late = {safe[at] for at in range(2, len(safe) - 1) if safe[at - 2] == safe[at - 1] < safe[at]}
    return [(time + PACE * (end in late), end) for time, end in on_time(recital)]


def delayed(recital: Recital, count: int) -> Chunks:
    """Returns the chunks of a server that sends one token in each chunk, always `count` tokens late. The last `count`
    chunks come together at the end."""
    chunks = on_time(recital)
    times = [time for time, _ in chunks]
    return [(times[min(at + count, len(times) - 1)], end) for at, (_, end) in enumerate(chunks)]


def replayed(recital: Recital) -> Chunks:
    chunks = on_time(recital)
    return [(time + chunks[-1][0], end) for time, end in chunks]


def on_a_busy_machine(recital: Recital) -> Chunks:
    """Returns chunks that now and then wait for up to 30 ms."""
    draw = random.Random(7)
    now, chunks = 0.0, []
    for time, end in on_time(recital):
        now = max(now, time)
        now += draw.random() * 0.03 if draw.random() < 0.1 else 0.0
        chunks.append((now, end))
    return chunks


def said_of(chunks: Chunks, recital: Recital, gaps: Sequence[tuple[float, float]] = ()) -> str | None:
    ends = [0, *(end for _, end in chunks)]
    times = [time for time, _ in chunks]
    texts = [recital.text[before:after] for before, after in pairwise(ends)]
    answer = Answer(chunks=texts, times=times, first=times[0], last=times[-1], seconds=times[-1] + PACE)
    answer.gaps = [*gaps]
    return unevenness(answer, recital)


@pytest.mark.parametrize("recital", [HELD, FREE], ids=["held", "free"])
@pytest.mark.parametrize(
    "made",
    [
        on_time,
        on_a_busy_machine,
        lambda recital: several_at_once(recital, 4),
        lambda recital: joined(several_at_once(recital, 3)),
        lambda recital: joined(several_at_once(recital, 10)),
    ],
    ids=["on time", "busy", "four steps of speculation", "three tokens a chunk", "ten tokens a chunk"],
)
def test_what_is_no_fault(made: Callable[[Recital], Chunks], recital: Recital) -> None:
    assert said_of(made(recital), recital) is None


@pytest.mark.parametrize("recital", [HELD, FREE], ids=["held", "free"])
def test_bursts_of_20_milliseconds_are_late(recital: Recital) -> None:
    assert "chunks come in bursts" in str(said_of(by_a_clock(recital, 0.02), recital))


def test_what_was_read_late_did_not_come_late() -> None:
    # This process slept before it read each chunk, so it cannot know whether the chunk had come earlier.
    asleep = [(step * 0.02, step * 0.02 + 0.0199) for step in range(100)]
    assert said_of(by_a_clock(FREE, 0.02), FREE, asleep) is None


def test_chunks_read_after_a_sleep_are_no_burst() -> None:
    """If the kit's process did not run for a while, it then reads many tokens at once. It must not report that the
    server sent them at once."""
    gaps = [(0.05 + step * 0.11, 0.15 + step * 0.11) for step in range(6)]

    def read(time: float) -> float:
        return next((end for begin, end in gaps if begin <= time <= end), time)

    chunks = [(read(time), end) for time, end in on_time(FREE)]
    assert said_of(chunks, FREE) is not None
    assert said_of(chunks, FREE, gaps) is None


def test_text_a_token_late_after_a_hold_is_late() -> None:
    assert said_of(after_a_hold_a_token_late(HELD), HELD) == "held text comes 1.0 tokens after it became safe"


def test_a_replay_at_the_generations_pace_is_late() -> None:
    assert "the first text comes after 50% of the time" in str(said_of(replayed(FREE), FREE))


@pytest.mark.parametrize("recital", [HELD, FREE], ids=["held", "free"])
@pytest.mark.parametrize("count", [3, 5, 8])
def test_a_delay_of_a_few_tokens_is_late(recital: Recital, count: int) -> None:
    told = f"the text of the last {count + 1} tokens comes at once, at the end"
    assert said_of(delayed(recital, count), recital) == told
    assert said_of(joined(delayed(recital, count)), recital) == told


def test_a_short_sleep_hides_no_delay_at_the_end() -> None:
    chunks = delayed(FREE, 8)
    end = chunks[-1][0]
    assert "the last 9 tokens" in str(said_of(chunks, FREE, [(end - 2 * PACE, end)]))
    begin = end - 9 * PACE
    read_late = [(end if time > begin else time, text_end) for time, text_end in on_time(FREE)]
    assert said_of(read_late, FREE, [(begin, end)]) is None
