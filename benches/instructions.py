"""Counts, with callgrind, the machine instructions of one call of `feed` or of one step of a stream.

The instructions of the Python loop around the call are included. Other processes do not change the count.

    python benches/instructions.py

Needs valgrind. Each case runs between two calls of `getppid`, at which callgrind writes its count.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from pydoc_data import topics
from typing import Any

from report import options

from stopscan import Repeat, Rewriter, StopScanner, StopSet, scan
from stopscan._stopscan import Vocabulary
from stopscan.segments import Segmenter, SegmentSet, split
from stopscan.tokens import TokenScanner, TokenSegmenter

CALLS = 4_000
STOPS = ["\n\nHuman:", "### Instruction", "</s>", "<|im_end|>"]
MARKERS = SegmentSet({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
WORDS = [f" {word}" for topic in sorted(topics.topics) for word in topics.topics[topic].split() if word.isascii()]
PLAIN = [word for word in WORDS if not set(word) & set("<#")][:CALLS]
HELD = ["a <", "b", "c <|", "im x"] * (CALLS // 4)
TOKENS = [" the", " quick", "brown", "\n", " <", "|x"]


class Empty:
    def method(self, delta: str) -> None:
        pass


def each(call: Callable[[Any], object], items: Iterable[object]) -> None:
    for item in items:
        call(item)


def drained(items: Iterable[object]) -> None:
    for _ in items:
        pass


def generated(items: Iterable[str]) -> Iterator[str]:
    yield from items


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    vocabulary, loops = Vocabulary(TOKENS), StopSet(STOPS, repeat=Repeat())
    for name, feed, items in (
        ("an empty method", Empty().method, PLAIN),
        ("`StopScanner.feed`, plain", StopScanner(STOPS).feed, PLAIN),
        ("`StopScanner.feed`, held", StopScanner(STOPS).feed, HELD),
        ("`StopScanner.feed`, plain, with `Repeat()`", StopScanner(loops).feed, PLAIN),
        ("`TokenScanner.feed`, plain", TokenScanner(vocabulary, STOPS).feed, [0, 1, 2, 1] * (CALLS // 4)),
        ("`TokenScanner.feed`, held", TokenScanner(vocabulary, STOPS).feed, [0, 3, 4, 5] * (CALLS // 4)),
        ("`TokenSegmenter.feed`, plain", TokenSegmenter(vocabulary, MARKERS).feed, [0, 1, 2, 1] * (CALLS // 4)),
        ("`Segmenter.feed`, plain", Segmenter(MARKERS).feed, PLAIN),
        ("`Rewriter.feed`, plain", Rewriter({"<P1>": "Ada"}).feed, PLAIN),
    ):
        yield name, partial(each, feed, items)
    for name, source in (
        ("a list", PLAIN),
        ("a generator", generated(PLAIN)),
        ("`scan` over a list", scan(PLAIN, STOPS)),
        ("`scan` over a generator", scan(generated(PLAIN), STOPS)),
        ("`split` over a list", split(PLAIN, MARKERS)),
    ):
        yield name, partial(drained, source)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().run:
        for name, run in cases():
            os.getppid()
            run()
            os.getppid()
            print(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        callgrind = ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={out}"]
        ran = subprocess.run(
            [*callgrind, sys.executable, __file__, "--run"], capture_output=True, text=True, check=True
        )
        print("| call | instructions |\n| --- | --- |")
        for number, name in enumerate(ran.stdout.splitlines()):
            counted = re.search(r"^summary: (\d+)", Path(f"{out}.{2 * number + 2}").read_text(), re.M)
            print(f"| {name} | {int(counted[1]) / CALLS if counted else 0:,.0f} |")


if __name__ == "__main__":
    main()
