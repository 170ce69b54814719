"""What `Repeat` costs in Python: `feed` with it beside `feed` without it, over real text and over the worst texts.

    python benches/loops.py > benches/results/loops.md
"""

from __future__ import annotations

import random

from cases import Case, feed_each, fresh_all, own, streaming
from measure import Timing, interleaved
from report import heading, markdown, nanoseconds
from workload import WINDOW, numbered, windows

import stopscan
from stopscan import Repeat

SETTINGS = {
    "`Repeat()`": Repeat(),
    "`min_length=64`": Repeat(min_length=64),
    "`max_period=65536`": Repeat(max_period=65_536),
    "`min_length=32`": Repeat(min_length=32),
}
# How much `feed` may take with it, of `feed` without it.
MUSTS = {"`Repeat()`": 1.5, "`min_length=64`": 1.8}


def fibonacci(length: int) -> str:
    before, text = "a", "ab"
    while len(text) < length:
        before, text = text, text + before
    return text[:length]


def tokens(text: str) -> list[str]:
    """Pieces as long as tokens are."""
    draw, start, pieces = random.Random(7), 0, []
    while start < len(text):
        end = start + draw.choice([1, 2, 3, 4, 4, 5, 5, 6, 7, 9])
        pieces.append(text[start:end])
        start = end
    return pieces


# No loops by these settings, or all copies of one: `count` is out of reach where they are read.
WORST = {"one character": "a" * 20_000, "Fibonacci word": fibonacci(20_000), "rows": ("a" * 50 + "b") * 400}


def feeding(name: str, repeat: Repeat | None) -> Case:
    stops = stopscan.StopSet(numbered(4), repeat=repeat)

    def check(deltas: list[str]) -> None:
        scanner = stopscan.StopScanner(stops)
        assert "".join(map(scanner.feed, deltas)) + scanner.flush() == "".join(deltas)

    return Case(name, lambda deltas: (stopscan.StopScanner(stops), fresh_all(deltas)), own(feed_each), check)


def timed(settings: dict[str, Repeat], streams: list[list[str]]) -> dict[str, Timing]:
    """Nanoseconds a delta, without the loop over the list."""
    cases = [streaming("loop", lambda deltas: deltas), feeding("`feed`", None)]
    cases += [feeding(name, repeat) for name, repeat in settings.items()]
    total = sum(map(len, streams))
    timings = {name: timing.per(total) for name, timing in interleaved(cases, streams, 15).items()}
    return {name: timing.less(timings["loop"]) for name, timing in timings.items() if name != "loop"}


def main() -> None:
    rows: list[tuple[str, ...]] = [("deltas", "`feed`", *(name for name in SETTINGS))]
    musts: list[tuple[str, ...]] = [("in English", "must", "measured", "holds")]
    for language, name in [("english", "English prose and code"), ("cjk", "Chinese and Japanese")]:
        net = timed(SETTINGS, windows(language)[:16])
        rows.append((name, *map(nanoseconds, net.values())))
        if language == "english":
            for setting, must in MUSTS.items():
                ratio = net[setting].fastest / net["`feed`"].fastest
                holds = "yes" if ratio <= must else "**no**"
                musts.append((setting, f"<= {must}x `feed`", f"{ratio:.2f}x", holds))
    # Nothing fires, so that all of the text is read.
    endless = {
        name: Repeat(10**6, max_period=repeat.max_period, min_length=repeat.min_length)
        for name, repeat in SETTINGS.items()
    }
    for name, text in WORST.items():
        deltas = tokens(text)
        rows.append((name, *map(nanoseconds, timed(endless, [deltas[:WINDOW]]).values())))
    print(heading("Loops", ["tokenizers"]))
    print(f"ns a delta of about 4.6 characters (2 of Chinese), net of the loop.\n\n{markdown(musts)}\n\n{markdown(rows)}")


if __name__ == "__main__":
    main()
