"""What is measured. A case prepares fresh objects, runs the timed part, and checks the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import rivals
from workload import fresh

import stopscan


@dataclass(frozen=True)
class Case:
    name: str
    prepare: Callable[[Any], Any]  # untimed: of the input, fresh objects for one round
    run: Callable[[Any], object]  # timed
    check: Callable[[Any], None]  # of the input: asserts the result


class Empty:
    """The yardstick: a Python method that does nothing, called as `feed` is."""

    def feed(self, delta: str) -> None:
        pass


def feed_each(subject: tuple[Any, list[str]]) -> object:
    target, deltas = subject
    for delta in deltas:
        target.feed(delta)
    return target


def exhaust(stream: Iterable[str]) -> None:
    for _ in stream:
        pass


def own(function: Callable[[Any], object]) -> Callable[[Any], object]:
    """A copy with code of its own: CPython specializes a loop's bytecode for the types that it sees in it."""
    return FunctionType(function.__code__.replace(), globals())


def fresh_all(deltas: list[str]) -> list[str]:
    return [fresh(delta) for delta in deltas]


def generated(deltas: list[str]) -> Iterator[str]:
    yield from deltas


def feeding(name: str, stop: list[str]) -> Case:
    """`StopScanner.feed`, delta by delta."""
    stops = stopscan.StopSet(stop)

    def check(deltas: list[str]) -> None:
        scanner = stopscan.StopScanner(stops)
        assert "".join(map(scanner.feed, deltas)) + scanner.flush() == "".join(deltas)
        assert scanner.match is None

    return Case(name, lambda deltas: (stopscan.StopScanner(stops), fresh_all(deltas)), own(feed_each), check)


def empty_method(name: str) -> Case:
    def check(deltas: list[str]) -> None:
        assert set(map(Empty().feed, deltas)) == {None}

    return Case(name, lambda deltas: (Empty(), fresh_all(deltas)), own(feed_each), check)


def streaming(name: str, stream: Callable[[Iterable[str]], Iterable[str]]) -> Case:
    """An iterator of safe text over deltas, exhausted."""

    def check(deltas: list[str]) -> None:
        assert "".join(stream(deltas)) == "".join(deltas)

    return Case(name, lambda deltas: stream(fresh_all(deltas)), own(exhaust), check)


def scanning(name: str, stop: list[str]) -> Case:
    stops = stopscan.StopSet(stop)
    return streaming(name, lambda deltas: stopscan.scan(deltas, stops))


def rival_cases(stop: list[str]) -> list[Case]:
    ways = {
        "buffer and `in`": rivals.buffer_loop,
        "`endswith` of each prefix": rivals.endswith_loop,
        "vLLM's way": rivals.vllm,
        "mlx-lm's way": rivals.mlx_lm,
        "mlx-engine's way": rivals.mlx_engine,
        "llama.cpp's way, in Python": rivals.llama_cpp,
    }
    if find_spec("mlx_lm"):
        ways["mlx-lm itself"] = rivals.mlx_lm_installed
    return [streaming(name, partial(way, stop=stop)) for name, way in ways.items()]


def searching(name: str, search: Callable[[str], object], nothing: Callable[[str], object]) -> Case:
    """A search of a whole text; `nothing` is what it returns when no stop is in it."""

    def check(text: str) -> None:
        assert search(text) == nothing(text)

    return Case(name, fresh, search, check)


def search_cases(stop: list[str]) -> list[Case]:
    """`truncate`, and the searches of the multi-pattern packages that are installed."""
    cases = [searching("stopscan", stopscan.StopSet(stop).truncate, lambda text: (text, None))]
    if find_spec("ahocorasick_rs"):
        import ahocorasick_rs

        find = ahocorasick_rs.AhoCorasick(stop).find_matches_as_indexes
        cases.append(searching("ahocorasick_rs", find, lambda text: []))
    if find_spec("ahocorasick"):
        import ahocorasick

        automaton = ahocorasick.Automaton()
        for sequence in stop:
            automaton.add_word(sequence, sequence)
        automaton.make_automaton()
        cases.append(searching("pyahocorasick", lambda text: list(automaton.iter(text)), lambda text: []))
    if find_spec("hyperscan"):
        cases.append(searching("hyperscan", hyperscan_search(stop), lambda text: []))
    return cases


def hyperscan_search(stop: list[str]) -> Callable[[str], list[int]]:
    """All ends; hyperscan takes bytes, so it encodes what the others read as it is or encode themselves."""
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    expressions = [b"".join(b"\\x%02x" % byte for byte in sequence.encode()) for sequence in stop]
    database.compile(expressions=expressions, ids=list(range(len(stop))))

    def search(text: str) -> list[int]:
        ends: list[int] = []
        database.scan(text.encode(), match_event_handler=lambda _id, _start, end, _flags, _context: ends.append(end))
        return ends

    return search


def compile_cases(stop: list[str]) -> list[Case]:
    def check_ours(stop: list[str]) -> None:
        assert stopscan.StopSet(stop).find("x" + stop[-1]) == stopscan.StopMatch(stop[-1], 1)

    cases = [Case("stopscan", list, stopscan.StopSet, check_ours)]
    if find_spec("ahocorasick_rs"):
        import ahocorasick_rs

        def check_theirs(stop: list[str]) -> None:
            found = ahocorasick_rs.AhoCorasick(stop).find_matches_as_indexes("x" + stop[-1])
            assert found == [(len(stop) - 1, 1, 1 + len(stop[-1]))]

        cases.append(Case("ahocorasick_rs", list, ahocorasick_rs.AhoCorasick, check_theirs))
    return cases
