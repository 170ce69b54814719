"""Times many streams in one process: each gets its next delta or token in turn. All share one set or vocabulary."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from typing import Any

from measure import Case, Empty, exhaust, fresh_all, interleaved, own
from memory import SCANNERS, measured
from report import Limits, Table, markdown
from tokens import ids
from workload import REALISTIC, numbered, tokenizer, windows

from stopscan import StopScanner, StopSet
from stopscan.tokens import TokenScanner, Vocabulary

LOOP, ALL, SHUFFLED, IDLE = "loop", f"{SCANNERS:,}", "shuffled in memory", "of an empty method, shuffled in memory"
PART = 2_000  # pieces that are timed together: so few that other processes rarely interrupt them


def feed_in_turn(pairs: Iterable[tuple[Any, Any]]) -> None:
    for target, piece in pairs:
        target.feed(piece)


def shuffled(objects: list[Any]) -> list[Any]:
    """Returns the objects in random order, as streams lie in a server's memory: no processor can prefetch the next."""
    return random.Random(1).sample(objects, len(objects))


def taking_turns(name: str, make: Callable[[], Any], pieces: list[Any], limits: Limits, most: float) -> str:
    """Returns a table: the time of one `feed`, if 1, 100, 10,000 or 100,000 streams get a piece in turn."""
    streams, objects = ([new() for _ in range(SCANNERS)] for new in (make, Empty))

    def case(title: str, targets: list[Any], run: Callable[[Any], object] = feed_in_turn) -> Case:
        def prepare(start: int) -> Iterable[tuple[Any, Any]]:
            part, warm = pieces[start : start + PART], make()
            for piece in part:  # loads the vocabulary into the cache, so that no timed run has to do it
                warm.feed(piece)
            # `zip` is lazy: it takes a scanner only when the scanner gets a piece. If there are many scanners, each
            # has left the cache by then.
            turn = [number % len(targets) for number in range(start, start + PART)]
            return zip(map(targets.__getitem__, turn), fresh_all(part), strict=True)

        return Case(title, prepare, own(run))

    cases = [case(LOOP, [None], exhaust), case("an empty method", objects[:1])]
    cases += [case(f"{count:,}", streams[:count]) for count in (1, 100, 10_000, SCANNERS)]
    cases += [case(f"{ALL}, {SHUFFLED}", shuffled(streams)), case(f"{ALL} {IDLE}", shuffled(objects))]
    times = {name: time / SCANNERS for name, time in interleaved(cases, [*range(0, SCANNERS, PART)], 9).items()}
    loop = times.pop(LOOP)
    net = {name: time - loop for name, time in times.items()}
    limits.most(f"`{name}`, {ALL} in turn / 1", most, net[ALL] / net["1"])
    limits.most(
        f"`{name}`, {ALL} shuffled / objects that do nothing", 1.25, net[f"{ALL}, {SHUFFLED}"] / net[f"{ALL} {IDLE}"]
    )
    rows = [(title, f"{time:.1f}", f"{time / net['1']:.2f}") for title, time in net.items()]
    return f"## `{name}.feed`\n\n" + markdown([("streams in turn", "ns", "times one stream"), *rows])


def split_at_each(text: str, stop: list[str]) -> str:
    for sequence in stop:
        text = text.split(sequence)[0]
    return text


def texts_table() -> str:
    """Times whole texts of about 2,000 characters without a stop, such as the rows of `examples/dataset.py`."""
    texts = ["".join(window[start : start + 460]) for window in windows("english") for start in range(0, 4000, 500)]
    rows: Table = [("stops", "`str.split` at each", "`truncate`", "times faster")]
    for stop in (REALISTIC, numbered(64)):
        truncate = StopSet(stop).truncate

        def split(part: list[str], stop: list[str] = stop) -> list[str]:
            return [split_at_each(text, stop) for text in part]

        def cut(part: list[str], truncate: Callable[[str], Any] = truncate) -> list[Any]:
            return [truncate(text) for text in part]

        cases = [Case("split", fresh_all, split), Case("cut", fresh_all, cut)]
        times = interleaved(cases, [texts[start : start + 50] for start in range(0, len(texts), 50)], 9)
        size = sum(len(text.encode()) for text in texts)
        speeds = (f"{size / times[name]:.1f} GB/s" for name in ("split", "cut"))
        rows = [*rows, (str(len(stop)), *speeds, f"{times['split'] / times['cut']:.1f}")]
    return "## Whole texts of about 2,000 characters, on one core\n\n" + markdown(rows)


def report(limits: Limits) -> Iterator[str]:
    stops, vocabulary = StopSet(numbered(4)), Vocabulary(tokenizer())
    deltas = list(islice(cycle([delta for stream in windows("english") for delta in stream]), SCANNERS))
    token_ids = list(islice(cycle(ids("english")), SCANNERS))
    yield taking_turns("StopScanner", lambda: StopScanner(stops), deltas, limits, 1.5)

    def token_scanner() -> TokenScanner:
        return TokenScanner(vocabulary, stops, eos_token_ids=[0], max_tokens=100 * SCANNERS)

    yield taking_turns("TokenScanner", token_scanner, token_ids, limits, 2)
    for name, job, most in (("StopScanner", "scanners", 256), ("TokenScanner", "token_scanners", 512)):
        limits.most(f"`{name}` in mid-stream", most, measured(job)[1] / SCANNERS, " bytes")
    yield texts_table()
