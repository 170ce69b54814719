"""Stops on the client's side: what they add to an event, how late they make the text, and what others do.

    python benches/clients.py > benches/results/clients.md

Needs httpx and a vocabulary from litellm (`.[test]`); `pip install dspy langchain-community` for those
beside it. What is not installed is left out, and the first line says what is there.
The times are the processor's, so that other work on the machine counts for little.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import process_time_ns
from typing import Any

import measure
from cases import Case, empty_method, own, streaming
from client_rivals import langchain_cases, lm15, lm15_cases, lm15_events
from measure import Timing, interleaved
from report import heading, markdown, nanoseconds
from transport import transported
from workload import numbered, windows

import stopscan
from stopscan_clients import ascan_events, scan_events

sys.path.insert(0, str(Path(__file__).parent.parent / "clients" / "tests"))

from events import text_of
from wire import WIRES

measure.perf_counter_ns = process_time_ns
EVENTS = 300
LATE = "Observation result:"  # 19 characters
SETS = (numbered(4), ["END", "</s>", "\n\nHuman:", LATE])


def sources(api: str, deltas: list[str]) -> list[str]:
    """The text events of a stream, as JSON."""
    return [json.dumps(event) for event in WIRES[api](deltas) if text_of(api, event)]


def made(api: str, deltas: list[str]) -> list[Any]:
    return [*map(json.loads, sources(api, deltas))]


# Each event is parsed when it is asked for, as a client does: parsing takes the processor's caches from what scans it.
# Events that lie ready show what the scan itself takes.
def live(api: str, events: list[str]) -> Iterator[Any]:
    yield from map(json.loads, events)


def ready(api: str, events: list[str]) -> Iterator[Any]:
    return iter(list(live(api, events)))


Source = Callable[[str, list[str]], Iterator[Any]]


async def alive(api: str, events: list[str]) -> AsyncIterator[Any]:
    for event in events:
        yield json.loads(event)


# What a stream's reader does.
READERS: dict[str, Callable[[Any], str | None]] = {api: partial(text_of, api) for api in WIRES}


def reading(stream: Iterable[Any], read: Callable[[Any], str | None]) -> None:
    for event in stream:
        read(event)


async def reading_async(stream: Any, read: Callable[[Any], str | None]) -> None:
    async for event in stream:
        read(event)


def sync(name: str, api: str, wrap: Callable[[Iterator[Any]], Iterable[Any]], source: Source = live) -> Case:
    loop, read = own(reading), READERS[api]

    def run(stream: Iterable[Any]) -> None:
        loop(stream, read)

    return Case(
        name, lambda deltas: wrap(source(api, sources(api, deltas))), run, lambda deltas: check(api, deltas, wrap)
    )


def check(api: str, deltas: list[str], wrap: Callable[[Iterator[Any]], Iterable[Any]]) -> None:
    text = "".join(READERS[api](event) or "" for event in wrap(live(api, sources(api, deltas))))
    assert text == "".join(deltas), "no stop occurs in the text"


def in_loop(name: str, api: str, wrap: Callable[[AsyncIterator[Any]], Any]) -> Case:
    loop = asyncio.new_event_loop()

    def run(stream: Any) -> None:
        loop.run_until_complete(reading_async(stream, READERS[api]))

    return Case(name, lambda deltas: wrap(alive(api, sources(api, deltas))), run, lambda deltas: None)


def ours(api: str) -> list[Case]:
    cases = [sync(f"{api}: bare", api, lambda events: events)]
    for stop in SETS:
        stops = stopscan.StopSet(stop)
        cases.append(sync(f"{api}: {stop[0]}", api, lambda events, stops=stops: scan_events(events, stops)))
    stops = stopscan.StopSet(numbered(4))
    cases.append(sync(f"{api}: ready bare", api, lambda events: events, ready))
    cases.append(sync(f"{api}: ready", api, lambda events: scan_events(events, stops), ready))
    cases.append(in_loop(f"{api}: async bare", api, lambda events: events))
    cases.append(in_loop(f"{api}: async", api, lambda events: ascan_events(events, stops)))
    return cases


def added(cases: list[Case], streams: list[list[str]]) -> dict[str, Timing]:
    events = sum(map(len, streams))
    return {name: timing.per(events) for name, timing in interleaved(cases, streams, 7).items()}


def empties(timing: Timing, yardstick: Timing) -> str:
    return f"{timing.fastest / yardstick.fastest:.0f}"


def cost(streams: list[list[str]], rivals: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    empty = added([empty_method("empty"), streaming("loop", lambda deltas: deltas)], streams)
    yardstick = empty["empty"].less(empty["loop"])
    for api in READERS:
        timings = added(ours(api), streams)
        bare = timings[f"{api}: bare"]
        quiet, often = (timings[f"{api}: {stop}"].less(bare) for stop in (numbered(1)[0], "END"))
        still = timings[f"{api}: ready"].less(timings[f"{api}: ready bare"])
        slow = timings[f"{api}: async"].less(timings[f"{api}: async bare"])
        in_empties = [part for timing in (still, quiet) for part in (nanoseconds(timing), empties(timing, yardstick))]
        rows.append((api, *in_empties, *map(nanoseconds, (often, slow))))
    for name, cases in (("lm15", lm15_cases), ("langchain", langchain_cases)):
        if name in rivals:
            timings = added(cases(), streams)
            net = timings[name].less(timings[f"{name}: bare"])
            rows.append((name, nanoseconds(net), empties(net, yardstick), "", "", "", ""))
    head = (
        "ns per event over the bare stream",
        "4 stops that hold nothing, events that lie ready",
        "in empty methods",
        "events parsed as they are read",
        "in empty methods",
        "4 that hold now and then",
        "async",
    )
    return [head, *rows]


def transport_cost(streams: list[list[str]]) -> list[tuple[str, ...]]:
    empty = added([empty_method("empty"), streaming("loop", lambda deltas: deltas)], streams)
    yardstick = empty["empty"].less(empty["loop"])
    rows: list[tuple[str, ...]] = []
    for api in READERS:
        timings = added(transported(api, SETS), streams)
        bare = timings[f"{api}: bare"]
        quiet, often = (timings[f"{api}: {stop}"].less(bare) for stop in (numbered(1)[0], "END"))
        rows.append((api, nanoseconds(quiet), empties(quiet, yardstick), nanoseconds(often)))
    head = (
        "ns per event over the bare transport",
        "4 stops that hold nothing",
        "in empty methods",
        "4 that hold now and then",
    )
    return [head, *rows]


def lateness(stream: list[str], rivals: list[str]) -> list[tuple[str, ...]]:
    """Characters that are not out after an event, beyond those that can still become a stop."""
    minimal = stopscan.StopScanner(LATE)
    least = [len(minimal.held) for delta in stream if minimal.feed(delta) or True]
    rows = [row("stopscan", released(scan_events, made("chat", stream), lambda e: text_of("chat", e)), stream, least)]
    if "lm15" in rivals:
        out = released(lm15, lm15_events(stream), lambda event: event.delta.text)
        rows.append(row("lm15", out, stream, least))
    if "langchain" in rivals:
        rows.append(row("langchain", [0] * len(stream), stream, least))
    return [("characters late, after each event but the last", "mean", "most"), *rows]


def released(cut: Any, events: list[Any], text: Callable[[Any], str | None]) -> list[int]:
    """How many characters are out after each event."""
    read: list[int] = []
    out, counts = 0, []

    def source() -> Iterator[Any]:
        for event in events:
            counts.append(out)
            yield event
        counts.append(out)

    for event in cut(source(), [LATE]):
        out += len(text(event) or "")
    return counts[1:] or read


def row(name: str, out: list[int], stream: list[str], least: list[int]) -> tuple[str, ...]:
    arrived, late = 0, []
    for delta, released_now, held in zip(stream[:-1], out, least, strict=False):
        arrived += len(delta)
        late.append(arrived - released_now - held)
    return name, f"{sum(late) / len(late):.1f}", str(max(late))


def answers(rivals: list[str]) -> list[tuple[str, ...]]:
    """The same text with the same stops, cut into events in every way."""
    cuts = [(), (1,), (2,), (1, 2)]
    ways = [["abcd"[begin:end] for begin, end in pairwise((0, *cut, 4))] for cut in cuts]

    def told(cut: Callable[[list[str]], str]) -> str:
        return ", ".join(sorted({repr(cut(way)) for way in ways}))

    def scanned(way: list[str]) -> str:
        return "".join(text_of("chat", event) or "" for event in scan_events(made("chat", way), ["abc", "b"]))

    rows = [("stopscan", told(scanned))]
    if "lm15" in rivals:

        def by_lm15(way: list[str]) -> str:
            events = lm15(lm15_events(way), ["abc", "b"])
            return "".join(event.delta.text for event in events if event.type == "delta")

        rows.append(("lm15", told(by_lm15)))
    return [("`abcd` with the stops `abc` and `b`, in any chunks", "text"), *rows]


def main() -> None:
    packages = {"lm15": "dspy", "langchain": "langchain_community"}
    rivals = [name for name, package in packages.items() if find_spec(package)]
    names = ["httpx", "dspy", "langchain-community"]
    streams = [window[:EVENTS] for window in windows("english")[:8]]
    print(heading("Stops on the client's side", names), end="\n\n")
    print(
        f"Streams of {EVENTS} text events of a real tokenizer's deltas, as dicts. The times are the processor's. ",
        end="",
    )
    print("Not installed, and so left out: " + (", ".join({*packages} - {*rivals}) or "none") + ".", end="\n\n")
    print(markdown(cost(streams, rivals)), end="\n\n")
    print(markdown(transport_cost(streams)), end="\n\n")
    print(markdown(lateness(windows("english")[0][:300], rivals)), end="\n\n")
    print(markdown(answers(rivals)))


if __name__ == "__main__":
    main()
