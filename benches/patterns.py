"""Times patterns in streams: compared with sglang's search and with the package `regex`, and on the worst texts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import regex
from measure import Case, feeding, net, streaming
from report import Limits, markdown
from workload import windows

from stopscan import StopScanner, StopSet

CHAT = r"\n(User|Human|Assistant) ?\d*:"
OFTEN = r"\b[Tt][a-z]+ {2}"  # every word that begins with t is held until it ends
STRINGS = ["\nUser:", "\nHuman:", "\nAssistant:"]
TAIL = 64  # characters of the text that sglang's way searches again after each delta


def chat_turns(count: int) -> list[str]:
    return [rf"\n(Name{number}|Role{number}) ?\d*:" for number in range(count)]


def scanner(name: str, patterns: list[str], stop: Iterable[str] = ()) -> Case:
    stops = StopSet(stop, patterns=patterns)
    return feeding(name, lambda: StopScanner(stops))


def sglang(deltas: Iterable[str], patterns: list[str]) -> Iterator[str]:
    """sglang's `stop_regex`, without its decoding: yields the text, then searches the tail for each pattern."""
    compiled = [re.compile(pattern) for pattern in patterns]
    tail = ""
    for delta in deltas:
        yield delta
        tail = (tail + delta)[-TAIL:]
        if any(pattern.search(tail) for pattern in compiled):
            return


def regex_partial(deltas: Iterable[str], patterns: list[str]) -> Iterator[str]:
    """Uses the package `regex`, whose partial matches show where a match may have begun."""
    pattern = regex.compile("|".join(f"(?:{pattern})" for pattern in patterns))
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


def processor_time(run: Callable[[], object], times: int) -> float:
    """Returns the processor time of the fastest run in nanoseconds. The time of other processes does not count."""

    def once() -> int:
        start = time.process_time_ns()
        run()
        return time.process_time_ns() - start

    return min(once() for _ in range(times))


def report(limits: Limits) -> Iterator[str]:
    sets = {
        "1 pattern": [CHAT],
        "10 patterns": chat_turns(10),
        "64 patterns": chat_turns(64),
        "1 pattern, held often": [OFTEN],
    }
    cases = [scanner("`feed`, 3 strings", [], STRINGS)]
    for name, patterns in sets.items():
        cases.append(scanner(f"`feed`, {name}", patterns))
        cases += [
            streaming(f"{way}, {name}", partial(function, patterns=patterns))
            for way, function in {"sglang's way": sglang, "`regex`, partial": regex_partial}.items()
        ]
    times = net(cases, windows("english")[:8], 5)
    head = ("stream", "ns per delta", "times `feed` with strings")
    yield "## Streams without a match\n\n" + markdown([head, *times.rows("`feed`, 3 strings")])
    limits.most("`feed`, 1 pattern / 3 strings", 3, times.ratio("`feed`, 1 pattern", "`feed`, 3 strings"))

    rows: list[tuple[str, ...]] = [("40,000 characters that make many threads", "ns of the processor per character")]
    letters = "abcdefghijklmnopqrstuvwxyz " * 1_500
    for pattern, name, text in [
        ("[a-z ]{900}!", "letters", letters),
        ("[a-z]{900}!", "a", "a" * 40_000),
        ("<[^>]{1,200}>", "<", "<" * 40_000),
        (r"(?:[a-z]{1,30} ){20}!", "letters", letters),
        (r"\w{999}\b", "a", "a" * 40_000),
        (r"[^>]{1,999}\b", "<", "<" * 40_000),
    ]:
        least = processor_time(partial(StopSet(patterns=[pattern], max_held=2_000).find, text), 3) / len(text)
        rows.append((f"`{pattern}` on `{name}`", f"{least:,.0f}"))
        limits.most(f"`{pattern}` on `{name}`", 1000, least, " ns a character")
    yield "## The worst texts\n\n" + markdown(rows)
