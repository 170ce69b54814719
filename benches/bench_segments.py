"""Times `Segmenter.feed` and `split` beside two other ways to divide streams: vLLM's lexer, mlx-lm's state machine."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import Case, Ran, feeding, reading
from workload import windows

from stopscan.segments import Segmenter, SegmentSet, split

LENGTHS = (300, 20_000)


def think(kinds: int) -> dict[str, dict[str, str]]:
    """Returns the regions of a `SegmentSet`: the answer, and ``kinds`` other regions, each with its two markers."""
    names = [f"part_{number:02}" for number in range(kinds)]
    return {"answer": {f"<{name}>": name for name in names}} | {name: {f"</{name}>": "answer"} for name in names}


def feed(kinds: int) -> Case:
    segments = SegmentSet(think(kinds), stop=["END", "</s>"], stop_in=["answer"])
    return feeding(lambda: Segmenter(segments))


def split_whole(kinds: int) -> Case:
    segments = SegmentSet(think(kinds), stop=["END", "</s>"], stop_in=["answer"])
    return reading(lambda deltas: split(deltas, segments), check=False)


def vllm(kinds: int) -> Case:
    lexer = pytest.importorskip("vllm.parser.engine.incremental_lexer")
    markers = [marker for leads in think(kinds).values() for marker in leads]
    terminals = [lexer.TerminalDef(marker, re.compile(re.escape(marker)), True, marker) for marker in markers]
    shape = lexer.LexerShape(terminals)
    return feeding(lambda: lexer.IncrementalLexer(shape))


def mlx_lm(kinds: int) -> Case:
    states = pytest.importorskip("mlx_lm.generate").TextStateMachine
    machine = states({region: list(leads.items()) for region, leads in think(kinds).items()})

    class Row:
        def __init__(self) -> None:
            self.state: Any = machine.make_state("answer")

        def feed(self, delta: str) -> None:
            self.state, _ = states.split(self.state, delta)

    return feeding(Row)


WAYS = {
    "`Segmenter.feed`": feed,
    "`split`": split_whole,
    "vLLM's IncrementalLexer": vllm,
    "mlx-lm's TextStateMachine": mlx_lm,
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kinds", [1, 40])
@pytest.mark.parametrize("name", WAYS)
def test_per_delta(bench: Any, name: str, kinds: int, length: int) -> None:
    stream = [delta for window in windows("english") for delta in window][:length]
    group = f"{length:,} deltas without a marker or a stop"
    bench(group, f"{name}, {2 * kinds} markers", WAYS[name](kinds), [stream], passes=30 if length == 300 else 7)


@pytest.mark.parametrize(("name", "most"), [("`Segmenter.feed`", 5), ("`split`", 3)])
def test_limit_per_delta(ran: Ran, limit: Any, name: str, most: float) -> None:
    group = f"{LENGTHS[-1]:,} deltas without a marker or a stop"
    limit(f"{name} / an empty Python method", ran.of(group, f"{name}, 80 markers").times_empty, most=most)


def test_limit_beside_vllm(ran: Ran, limit: Any) -> None:
    ratio = ran.ratio(
        f"{LENGTHS[-1]:,} deltas without a marker or a stop",
        "vLLM's IncrementalLexer, 80 markers",
        "`Segmenter.feed`, 80 markers",
    )
    limit("vLLM's IncrementalLexer / `Segmenter.feed`", ratio, least=6)
