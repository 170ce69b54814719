"""What many streams in one process cost: each gets its next delta or token in turn, on one set and one vocabulary.

    mkdir -p benches/results && python benches/scale.py > benches/results/scale.md

A server's front process holds as many. The rows are fed alike, and differ only in how many scanners take turns.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from typing import Any

from cases import Case, Empty, exhaust, fresh_all, own
from measure import interleaved
from memory import TURNS, measured
from report import Table, heading, markdown, ratio
from tokens import windows as token_windows
from workload import REALISTIC, numbered, tokenizer, windows

from stopscan import StopScanner, StopSet
from stopscan.tokens import TokenScanner, Vocabulary

LOOP, EMPTY, SHUFFLED = "the loop", "an empty Python method", "shuffled in memory"
STREAMS = [1, 100, 10_000, TURNS]
PASSES = 9
PART = 2_000
PARTS = [*range(0, TURNS, PART)]


def feed_in_turn(pairs: Iterable[tuple[Any, Any]]) -> None:
    for target, piece in pairs:
        target.feed(piece)


def taking_turns(make: Callable[[], Any], pieces: list[Any], fresh: Callable[[list[Any]], list[Any]]) -> Table:
    """`TURNS` pieces, given to so many scanners in turn, timed in parts that a busy machine rarely interrupts."""
    streams, objects = ([new() for _ in range(TURNS)] for new in (make, Empty))

    def case(name: str, targets: list[Any], run: Callable[[Any], object]) -> Case:
        def prepare(start: int) -> Iterable[tuple[Any, Any]]:
            # New objects: a piece has no cached UTF-8 yet, as a decoder's string has none.
            part = fresh(pieces[start : start + PART])
            warm = make()  # the first row is not to fetch the vocabulary for the others
            for piece in pieces[start : start + PART]:
                warm.feed(piece)
            # Nothing touches a scanner before its turn: it comes from memory as after 100,000 others.
            turn = [number % len(targets) for number in range(start, start + PART)]
            return zip(map(targets.__getitem__, turn), part, strict=True)

        return Case(name, prepare, own(run), lambda start: None)

    cases = [case(LOOP, [None], exhaust), case(EMPTY, objects[:1], feed_in_turn)]
    cases += [case(f"{count:,}", streams[:count], feed_in_turn) for count in STREAMS]
    cases += [case(f"{TURNS:,}, {SHUFFLED}", shuffled(streams), feed_in_turn)]
    cases += [case(f"{EMPTY} of {TURNS:,}, {SHUFFLED}", shuffled(objects), feed_in_turn)]
    timings = {name: timing.per(TURNS) for name, timing in interleaved(cases, PARTS, PASSES).items()}
    loop = timings.pop(LOOP)
    net = {name: timing.less(loop) for name, timing in timings.items()}
    rows = [(name, f"{timing.fastest:.1f}", f"{ratio(timing, net['1']):.2f}x") for name, timing in net.items()]
    return [("streams in turn", "ns, net of the loop", "of one stream"), *rows]


def shuffled(objects: list[Any]) -> list[Any]:
    """As streams that come and go lie in memory: no prefetcher guesses the next one."""
    return random.Random(1).sample(objects, len(objects))


def split_at_each(text: str, stop: list[str]) -> str:
    for sequence in stop:
        text = text.split(sequence)[0]
    return text


def texts_table() -> Table:
    """Whole texts of about 2,000 characters, without a stop: what `examples/dataset.py` does with a row."""
    texts = ["".join(window[start : start + 460]) for window in windows("english") for start in range(0, 4000, 500)]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    rows = []
    for stop in (REALISTIC, numbered(64)):
        truncate = StopSet(stop).truncate

        def split(part: list[str], stop: list[str] = stop) -> list[str]:
            return [split_at_each(text, stop) for text in part]

        def cut(part: list[str], truncate: Callable[[str], Any] = truncate) -> list[Any]:
            return [truncate(text) for text in part]

        def check(part: list[str]) -> None:
            assert split(part) == [text for text, _ in cut(part)] == part

        cases = [Case("split", fresh_all, split, check), Case("cut", fresh_all, cut, check)]
        inputs = [texts[start : start + 50] for start in range(0, len(texts), 50)]
        timings = interleaved(cases, inputs, PASSES)
        speeds = (f"{megabytes / timings[name].fastest * 1e9 / 1e3:.1f} GB/s" for name in ("split", "cut"))
        rows.append((str(len(stop)), *speeds, f"{ratio(timings['split'], timings['cut']):.1f}x"))
    return [("stops", "`str.split` at each", "`truncate`", "faster"), *rows]


def pieces(streams: list[list[Any]]) -> list[Any]:
    """`TURNS` of them, from real text."""
    return list(islice(cycle([piece for stream in streams for piece in stream]), TURNS))


def main() -> None:
    stops, vocabulary = StopSet(numbered(4)), Vocabulary(tokenizer())
    print(heading(f"{TURNS:,} streams in one process", ["tokenizers"]), end="\n\n")
    print("`StopScanner.feed`, a delta:", end="\n\n")
    print(markdown(taking_turns(lambda: StopScanner(stops), pieces(windows("english")), fresh_all)), end="\n\n")
    print("`TokenScanner.feed`, a token:", end="\n\n")

    def token_scanner() -> TokenScanner:
        return TokenScanner(vocabulary, stops, eos_token_ids=[0], max_tokens=100 * TURNS)

    print(markdown(taking_turns(token_scanner, pieces(token_windows("english")), list)), end="\n\n")
    sizes = {name: measured(job)[1] / TURNS for name, job in JOBS.items()}
    rows = [(f"`{name}`", f"{size:.0f}", f"{size * TURNS / 1e6:.1f} MB") for name, size in sizes.items()]
    print(markdown([("in mid-stream", "bytes each", f"{TURNS:,} of them"), *rows]), end="\n\n")
    print("Whole texts of about 2,000 characters, on one core:", end="\n\n")
    print(markdown(texts_table()))


JOBS = {"StopScanner": "stop_scanners", "TokenScanner": "token_scanners"}

if __name__ == "__main__":
    main()
