"""Times patterns in streams, and compares them with sglang's search and with the package `regex`. Also times the texts
that take the longest to scan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from time import process_time
from typing import Any

import pytest
from conftest import Case, Ran, feeding, reading
from workload import windows

from stopscan import StopScanner, StopSet

STRINGS = ["\nUser:", "\nHuman:", "\nAssistant:"]
TAIL = 64  # after each delta, sglang's way searches this many characters at the end of the text


def chat_turns(count: int) -> list[str]:
    return [rf"\n(Name{number}|Role{number}) ?\d*:" for number in range(count)]


SETS = {
    "1 pattern": [r"\n(User|Human|Assistant) ?\d*:"],
    "10 patterns": chat_turns(10),
    "64 patterns": chat_turns(64),
    "1 pattern, held often": [r"\b[Tt][a-z]+ {2}"],  # every word that begins with t is held until it ends
}


def scanner(patterns: list[str], stop: Iterable[str] = ()) -> Case:
    stops = StopSet(stop, patterns=patterns)
    return feeding(lambda: StopScanner(stops))


def sglang(deltas: Iterable[str], patterns: list[str]) -> Iterator[str]:
    """Imitates sglang's search for `stop_regex`, without the decoding. Yields each delta, and then searches the last
    characters of the text for each pattern."""
    compiled = [re.compile(pattern) for pattern in patterns]
    tail = ""
    for delta in deltas:
        yield delta
        tail = (tail + delta)[-TAIL:]
        if any(pattern.search(tail) for pattern in compiled):
            return


def regex_partial(deltas: Iterable[str], patterns: list[str]) -> Iterator[str]:
    """Searches with the package `regex`, which also finds partial matches. More text may complete a partial match, so
    the text is held from the beginning of the match on."""
    pattern = pytest.importorskip("regex").compile("|".join(f"(?:{pattern})" for pattern in patterns))
    held = ""
    for delta in deltas:
        held += delta
        found = pattern.search(held, partial=True)
        if found is not None and not found.partial:
            yield held[: found.start()]
            return
        safe = len(held) if found is None else found.start()
        yield held[:safe]
        held = held[safe:]
    yield held


WAYS = {
    "`feed`": scanner,
    "sglang's way": lambda patterns: reading(partial(sglang, patterns=patterns)),
    "`regex`, partial": lambda patterns: reading(partial(regex_partial, patterns=patterns)),
}
GROUP = "streams without a match"


def test_strings(bench: Any) -> None:
    bench(GROUP, "`feed`, 3 strings", scanner([], STRINGS), windows("english")[:8], passes=5)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("name", WAYS)
def test_per_delta(bench: Any, name: str, kind: str) -> None:
    streams = windows("english")[: 8 if name == "`feed`" else 2]
    bench(GROUP, f"{name}, {kind}", WAYS[name](SETS[kind]), streams, passes=5)


def test_limit_per_delta(ran: Ran, limit: Any) -> None:
    ratio = ran.ratio(GROUP, "`feed`, 1 pattern", "`feed`, 3 strings")
    limit("`feed`, 1 pattern / 3 strings", ratio, most=3)


# 40,000 characters on which many matches stay open.
LETTERS = "abcdefghijklmnopqrstuvwxyz " * 1_500
WORST = {
    "[a-z ]{900}!": LETTERS,
    "[a-z]{900}!": "a" * 40_000,
    "<[^>]{1,200}>": "<" * 40_000,
    r"(?:[a-z]{1,30} ){20}!": LETTERS,
    r"\w{999}\b": "a" * 40_000,
    r"[^>]{1,999}\b": "<" * 40_000,
}


@pytest.mark.parametrize("pattern", WORST)
def test_worst_text(benchmark: Any, limit: Any, pattern: str) -> None:
    find, text = StopSet(patterns=[pattern], max_held=2_000).find, WORST[pattern]
    seconds: list[float] = []

    def search() -> None:  # measures processor time, which leaves out the time of other processes
        start = process_time()
        find(text)
        seconds.append(process_time() - start)

    benchmark.group = "the worst texts"
    benchmark.pedantic(search, rounds=3)
    each = min(seconds) * 1e9 / len(text)
    limit(f"`{pattern}` on `{text[:27].strip()[:1]}…`", each, most=1000, unit=" ns a character")
    benchmark.extra_info.update(case=f"`{pattern}`", columns={"ns of the processor per character": each})
