"""Right for one request; wrong for several at once, one after another, or after one whose client went away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from staged.defects.defect import Defect, wrong
from staged.generation import Generation, Scanner
from staged.request import right_stops
from staged.scanners import Simple

Parts = AsyncIterator[tuple[str, str]]


class Shared:
    """What all requests of a server find."""

    def __init__(self) -> None:
        self.running = 0
        self.stopped = 0
        self.left = 0
        self.tokens = 0
        self.held = ""
        self.stops: list[str] = []
        self.answers: dict[Any, list[tuple[str, str]]] = {}
        self.slots = asyncio.Semaphore(4)
        self.refused = False
        self.last = ("eos", None)


class OneScanner(Scanner):
    """For all requests."""

    def __init__(self) -> None:
        super().__init__([])
        self.current: Simple = Simple([])

    def __call__(self, stops: list[str]) -> Any:
        self.current.stops = stops
        self.current.match = None
        return self.current


class OneListOfStops:
    """For all requests: that of the newest one."""

    def __init__(self) -> None:
        self.stops: list[str] = []

    def __call__(self, stops: list[str]) -> Any:
        self.stops[:] = stops
        scanner = Simple([])
        scanner.stops = self.stops
        return scanner


class KeepsStops:
    """A request without stops has those of the one before."""

    def __init__(self) -> None:
        self.stops: list[str] = []

    def __call__(self, given: Any) -> list[str]:
        self.stops = right_stops(given) or self.stops
        return self.stops


async def one_answer_a_prompt(made: Generation) -> Parts:
    shared = found(made)
    if made.script not in shared.answers:
        shared.answers[made.script] = [part async for part in made.texts()]
    for part in shared.answers[made.script]:
        yield part


async def all_stop_with_one(made: Generation) -> Parts:
    shared = found(made)
    stopped = shared.stopped
    async for part in made.texts():
        yield part
        if shared.stopped != stopped:
            return
    shared.stopped += made.end[0] == "stop_sequence"


async def all_leave_with_one(made: Generation) -> Parts:
    shared = found(made)
    left, ended = shared.left, False
    try:
        async for part in made.texts():
            if shared.left != left:
                return
            yield part
        ended = True
    finally:
        shared.left += not ended


async def ends_after_one_that_left(made: Generation) -> Parts:
    shared = found(made)
    if shared.left:
        shared.left = 0
        return
    async for part in all_leave_with_one(made):
        yield part


async def slots_are_lost(made: Generation) -> Parts:
    shared = found(made)
    await shared.slots.acquire()
    async for part in made.texts():
        yield part
    shared.slots.release()


async def held_text_is_lost_and_found(made: Generation) -> Parts:
    shared = found(made)
    held, shared.held = shared.held, ""
    yield "answer", held
    ended, last = False, ""
    try:
        async for kind, text in made.texts():
            last = text or last
            yield kind, text
        ended = True
    finally:
        shared.held = "" if ended else last


async def rows_are_confused(made: Generation) -> Parts:
    shared = found(made)
    shared.running += 1
    try:
        async for kind, text in made.texts():
            yield kind, text[::-1] if shared.running > 2 else text
    finally:
        shared.running -= 1


async def one_buffer(made: Generation) -> Parts:
    shared = found(made)
    async for kind, text in made.texts():
        shared.held += text
        await asyncio.sleep(0)
        yield kind, shared.held
        shared.held = ""


async def two_at_once(made: Generation) -> Parts:
    shared = found(made)
    shared.running += 1
    try:
        if shared.running > 2:
            raise RuntimeError("too many")
        async for part in made.texts():
            yield part
    finally:
        shared.running -= 1


def found(made: Generation) -> Shared:
    shared: Shared = made.staged.memory.setdefault("shared", Shared())
    return shared


def counts_all(made: Generation) -> int:
    shared = found(made)
    shared.tokens += made.tokens
    return shared.tokens


def names_the_last(made: Generation) -> tuple[str, Any]:
    """An end of the turn has the name of the stop before it."""
    shared = found(made)
    if made.end[0] == "stop_sequence":
        shared.last = made.end
    return shared.last if made.end[0] == "eos" and shared.last[1] is not None else made.end


def several(name: str, case: str, columns: str, /, api: str = "openai-chat", **changes: Any) -> Defect:
    return wrong(name, case, columns, api, **changes)


DEFECTS = [
    several("one scanner for all", "at-once", "text", scanner=OneScanner()),
    several("one scanner for one after another", "in-turn", "text", scanner=OneScanner()),
    several("one list of stops for all", "at-once", "text", scanner=OneListOfStops()),
    several("one list of stops for one prompt", "one-prompt", "text", "anthropic", scanner=OneListOfStops()),
    several("the stops before stay", "in-turn", "text", stops=KeepsStops()),
    several("one answer for one prompt", "in-turn", "text", chunks=one_answer_a_prompt),
    several("a stop ends all", "at-once", "text", chunks=all_stop_with_one),
    several("a client that leaves takes all along", "beside-leaving", "text", chunks=all_leave_with_one),
    several("a client that leaves takes the next along", "after-leaving", "text", chunks=ends_after_one_that_left),
    several("a client that leaves keeps its slot", "after-leaving", "text", chunks=slots_are_lost),
    several("a client that leaves leaves text", "after-leaving", "text", chunks=held_text_is_lost_and_found),
    several("rows are confused", "at-once", "text", chunks=rows_are_confused),
    several("one buffer for all", "at-once-mixed", "text", chunks=one_buffer),
    several("two at once", "at-once", "text", "generate", chunks=two_at_once),
    several("tokens of all are counted", "in-turn", "cost", counted=counts_all),
    several("the last stop is named again", "in-turn", "finish", told=names_the_last),
]
