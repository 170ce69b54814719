"""Times `Segmenter.feed` and `split`, beside vLLM's lexer and mlx-lm's state machine, which also divide streams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from measure import Case, exhaust, feeding, fresh_all, net, own
from report import Limits, markdown
from workload import windows

from stopscan.segments import Segmenter, SegmentSet, split


def think(kinds: int) -> dict[str, dict[str, str]]:
    """Returns the regions of a set: an answer and ``kinds`` other regions, each with its opening and closing marker."""
    names = [f"part_{number:02}" for number in range(kinds)]
    return {"answer": {f"<{name}>": name for name in names}} | {name: {f"</{name}>": "answer"} for name in names}


def ours(kinds: int, stop: list[str]) -> list[Case]:
    segments = SegmentSet(think(kinds), stop=stop, stop_in=["answer"])
    title = f"{2 * kinds} markers, {len(stop)} stops"
    return [
        feeding(f"`Segmenter.feed`, {title}", lambda: Segmenter(segments)),
        Case(f"`split`, {title}", lambda deltas: split(fresh_all(deltas), segments), own(exhaust)),
    ]


def vllm(kinds: int) -> Case:
    from vllm.parser.engine.incremental_lexer import IncrementalLexer, LexerShape, TerminalDef

    markers = [marker for leads in think(kinds).values() for marker in leads]
    shape = LexerShape([TerminalDef(marker, re.compile(re.escape(marker)), True, marker) for marker in markers])
    return feeding(f"vLLM's IncrementalLexer, {2 * kinds} markers", lambda: IncrementalLexer(shape))


def mlx_lm(kinds: int) -> Case:
    from mlx_lm.generate import TextStateMachine

    machine = TextStateMachine({region: list(leads.items()) for region, leads in think(kinds).items()})

    class Row:
        def __init__(self) -> None:
            self.state: Any = machine.make_state("answer")

        def feed(self, delta: str) -> None:
            self.state, _ = TextStateMachine.split(self.state, delta)

    return feeding(f"mlx-lm's TextStateMachine, {2 * kinds} markers", Row)


def report(limits: Limits) -> Iterator[str]:
    there = {name: rival for name, rival in {"vllm": vllm, "mlx": mlx_lm}.items() if find_spec(name)}
    for length in (300, 20_000):
        stream = [delta for window in windows("english") for delta in window][:length]
        cases = [*ours(1, ["END"]), *ours(40, ["END", "</s>"])]
        times = net([*cases, *(rival(kinds) for rival in there.values() for kinds in (1, 40))], [stream], 7)
        head = ("case", "ns per delta", "times an empty method")
        yield f"## {length:,} deltas without a marker or a stop\n\n" + markdown([head, *times.rows()])
    feed, cut = "`Segmenter.feed`, 80 markers, 2 stops", "`split`, 80 markers, 2 stops"
    limits.most("`Segmenter.feed` / an empty Python method", 5, times.ratio(feed))
    limits.most("`split` / an empty Python method", 3, times.ratio(cut))
    if "vllm" in there:
        limits.least("vLLM's IncrementalLexer / `feed`", 6, times.ratio("vLLM's IncrementalLexer, 80 markers", feed))
