"""Patterns beside what finds regular expressions in streams elsewhere.

    python benches/patterns.py > benches/results/patterns.md

It needs the package `regex` for the rival that matches partially.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import regex
from cases import Case, empty_method, feed_each, fresh_all, own, searching, streaming
from measure import interleaved
from report import heading, markdown, nanoseconds
from workload import long_text, windows

import stopscan

CHAT = r"\n(User|Human|Assistant) ?\d*:"
OFTEN = r"\b[Tt][a-z]+ {2}"  # every word that begins with t is held until it ends
TAIL = 64  # characters: what the rivals look at again and again


def chat_turns(count: int) -> list[str]:
    return [rf"\n(Name{number}|Role{number}) ?\d*:" for number in range(count)]


def numbered(count: int) -> list[str]:
    return [rf"\n?{number}\d+\.\d+:" for number in range(count)]


def feeding(name: str, patterns: list[str], stop: list[str]) -> Case:
    stops = stopscan.StopSet(stop, patterns=patterns)

    def check(deltas: list[str]) -> None:
        scanner = stopscan.StopScanner(stops)
        assert "".join(map(scanner.feed, deltas)) + scanner.flush() == "".join(deltas)

    return Case(name, lambda deltas: (stopscan.StopScanner(stops), fresh_all(deltas)), own(feed_each), check)


def sglang(deltas: Iterable[str], patterns: list[str]) -> Iterator[str]:
    """sglang's `stop_regex`, without its decoding: the text goes out, then each pattern is searched in the tail."""
    compiled = [re.compile(pattern) for pattern in patterns]
    tail = ""
    for delta in deltas:
        yield delta
        tail = (tail + delta)[-TAIL:]
        if any(pattern.search(tail) for pattern in compiled):
            return


def re_on_the_tail(deltas: Iterable[str], patterns: list[str]) -> Iterator[str]:
    """Python's `re` on the tail, which is withheld whole."""
    pattern = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    tail = ""
    for delta in deltas:
        tail += delta
        found = pattern.search(tail)
        if found:
            yield tail[: found.start()]
            return
        if len(tail) > TAIL:
            yield tail[:-TAIL]
            tail = tail[-TAIL:]
    yield tail


def regex_partial(deltas: Iterable[str], patterns: list[str]) -> Iterator[str]:
    """The package `regex`, which tells where a match may have begun."""
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


WAYS: dict[str, Callable[[Iterable[str], list[str]], Iterator[str]]] = {
    "sglang's way": sglang,
    "`re` on the tail": re_on_the_tail,
    "`regex`, partial": regex_partial,
}


def rivals(name: str, patterns: list[str]) -> list[Case]:
    def case(way: str, function: Callable[[Iterable[str], list[str]], Iterator[str]]) -> Case:
        return streaming(f"{way}, {name}", lambda deltas: function(deltas, patterns))

    return [case(way, function) for way, function in WAYS.items()]


def streams() -> list[tuple[str, ...]]:
    literals = ["\nUser:", "\nHuman:", "\nAssistant:"]
    cases = [streaming("loop over a list", lambda deltas: deltas), empty_method("empty Python method")]
    cases.append(feeding("`feed`, 3 strings", [], literals))
    for name, patterns in [("1 pattern", [CHAT]), ("10 patterns", chat_turns(10)), ("100 patterns", chat_turns(100))]:
        cases += [feeding(f"`feed`, {name}", patterns, []), *rivals(name, patterns)]
    cases += [feeding("`feed`, 1 pattern, held often", [OFTEN], []), *rivals("1 pattern, held often", [OFTEN])]
    inputs = windows("english")[:8]
    total = sum(map(len, inputs))
    timings = {name: timing.per(total) for name, timing in interleaved(cases, inputs, 5).items()}
    bare, ours = timings["loop over a list"], timings["`feed`, 3 strings"]
    net = {name: timing.less(bare) for name, timing in timings.items() if name != "loop over a list"}
    of_strings = ours.less(bare).fastest
    rows = [(name, nanoseconds(time), f"{time.fastest / of_strings:.2f}") for name, time in net.items()]
    return [("stream", "ns per delta, net", "of `feed` with strings"), *rows]


def texts() -> list[tuple[str, ...]]:
    text = long_text("english")[:1_000_000]
    rows: list[tuple[str, ...]] = [("1 MB without a match", "MB/s")]
    for name, patterns in [("1 pattern", [CHAT]), ("10 patterns", chat_turns(10)), ("100 patterns", chat_turns(100))]:
        joined = "|".join(patterns)
        cases = [
            searching(f"`truncate`, {name}", stopscan.StopSet(patterns=patterns).truncate, lambda text: (text, None)),
            searching(f"`re.search`, {name}", re.compile(joined).search, lambda text: None),
            searching(f"`regex.search`, {name}", regex.compile(joined).search, lambda text: None),
        ]
        for case, timing in interleaved(cases, [text], 3).items():
            rows.append((case, f"{len(text) / timing.fastest * 1_000:,.0f}"))
    return rows


def processor_time(run: Callable[[], object], times: int) -> float:
    """The least nanoseconds of the processor that a run takes: what it takes from others, however busy they are."""

    def once() -> int:
        start = time.process_time_ns()
        run()
        return time.process_time_ns() - start

    return min(once() for _ in range(times))


def build(patterns: list[str], stop: Iterable[str] = ()) -> object:
    """The set of patterns, or why there is none."""
    try:
        return stopscan.StopSet(stop, patterns=patterns, max_held=2_000)
    except ValueError as error:
        return error


def compiling() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("compile", "us of the processor", "")]
    for name, patterns in [
        ("1 pattern", [CHAT]),
        ("a phrase in any case", [r"(?i)\bend of story"]),
        ("`<[^>]{1,200}>`", ["<[^>]{1,200}>"]),
        ("`[a-z ]{900}!`", ["[a-z ]{900}!"]),
        ("10 patterns", chat_turns(10)),
        ("100 patterns", chat_turns(100)),
        ("200 patterns", chat_turns(200)),
        ("236 patterns, the most", chat_turns(236)),
        ("1,000 patterns", chat_turns(1_000)),
        ("312 times `\\n?7\\d+\\.\\d+:`, the most", numbered(312)),
        ("320 times `\\n?7\\d+\\.\\d+:`", numbered(320)),
        ("20,000 words", [f"word {number}" for number in range(20_000)]),
        ("`(a{100}){100}b`", ["(a{100}){100}b"]),
        ("`[ab]*a[ab]{12}c`", ["[ab]*a[ab]{12}c"]),
        ("64 times `[a-z]{900}z`", [f"[a-z]{{900}}z{number}" for number in range(64)]),
        ("1 kB of `(?i)[a-\\x{10ffff}]`", ["(?i)" + r"[a-\x{10ffff}]" * 60]),
    ]:
        taken = "taken" if isinstance(build(patterns), stopscan.StopSet) else "refused"
        rows.append((name, f"{processor_time(partial(build, patterns), 9) / 1_000:,.0f}", taken))
    long_stop = "ab" * 1_950_000
    for name, patterns in [
        ("a stop of 3.9 MB", []),
        ("beside it 1 pattern", [CHAT]),
        ("beside it 200 patterns", chat_turns(200)),
        ("beside it 64 times `[a-z]{900}z`", [f"[a-z]{{900}}z{number}" for number in range(64)]),
    ]:
        taken = "taken" if isinstance(build(patterns, long_stop), stopscan.StopSet) else "refused"
        rows.append((name, f"{processor_time(partial(build, patterns, long_stop), 5) / 1_000:,.0f}", taken))
    return rows


def worst() -> list[tuple[str, ...]]:
    """Patterns and texts that make many threads."""
    rows: list[tuple[str, ...]] = [("40,000 characters", "ns of the processor per character")]
    letters = "abcdefghijklmnopqrstuvwxyz " * 1_500
    for pattern, name, text in [
        ("[a-z ]{900}!", "letters", letters),
        ("[a-z]{900}!", "a", "a" * 40_000),
        ("<[^>]{1,200}>", "<", "<" * 40_000),
        (r"(?:[a-z]{1,30} ){20}!", "letters", letters),
        (r"[\w.+-]{1,64}@[\w-]{1,63}\.[a-z]{2,6}", "letters", letters),
    ]:
        find = stopscan.StopSet(patterns=[pattern], max_held=2_000).find
        least = processor_time(partial(find, text), 3)
        rows.append((f"`{pattern}` on `{name}`", f"{least / len(text):,.0f}"))
    return rows


def main() -> None:
    print(heading("Patterns", ["regex"]), end="\n\n")
    print(f"The rivals look at a tail of {TAIL} characters. No pattern matches.", end="\n\n")
    for table in (streams, texts, compiling, worst):
        print(markdown(table()), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
