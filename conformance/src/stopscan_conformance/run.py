"""Sends the cases, tells each result as it comes, and keeps the results when it is interrupted."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from stopscan_conformance.apis import APIS
from stopscan_conformance.cases import Case, Result
from stopscan_conformance.client import Server
from stopscan_conformance.judge import Level
from stopscan_conformance.probe import Can, probe

BETWEEN_WRITINGS = 1.0
AT_ONCE = 4

Told = Callable[[Case, Result], None]


class Terminated(BaseException):
    """SIGTERM came."""


def run(
    server: Server,
    every: Sequence[Case],
    results: dict[Case, Result],
    *,
    level: Level = "usual",
    counts: Callable[[Case, Result], Result | None] = lambda case, result: result,
    can: Callable[[str, Can], None] = lambda api, can: None,
    told: Told = lambda case, result: None,
    write: Callable[[], None] = lambda: None,
) -> None:
    """Adds the results of the cases, API after API: first what the server can is found out, then several cases are sent
    at once, then one by one those that have several requests or compare times. In the end the results are in the order
    of the cases.

    `can` and `told` get what is found as it comes. `counts` gives what counts of a result, or None. `write` is called
    about every second. Raises `Terminated` when SIGTERM comes.
    """
    written = time.monotonic()

    def add(case: Case, result: Result) -> None:
        nonlocal written
        kept = counts(case, result)
        if kept is not None:
            results[case] = kept
            told(case, kept)
        if time.monotonic() - written > BETWEEN_WRITINGS:
            write()
            written = time.monotonic()

    try:
        asyncio.run(_until_terminated(_send(server, every, level, can, add)))
    finally:
        ordered = {case: results[case] for case in every if case in results}
        results.clear()
        results.update(ordered)


async def _until_terminated(sending: Coroutine[Any, Any, None]) -> None:
    task, loop = asyncio.ensure_future(sending), asyncio.get_running_loop()
    terminated = False

    def terminate(*_: Any) -> None:
        nonlocal terminated
        terminated = True
        loop.call_soon_threadsafe(task.cancel)

    # Not `loop.add_signal_handler`, which Windows lacks.
    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        await task
    except asyncio.CancelledError:
        if terminated:
            raise Terminated from None
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)


async def _send(
    server: Server, every: Sequence[Case], level: Level, can: Callable[[str, Can], None], add: Told
) -> None:
    for api in dict.fromkeys(case.api for case in every):
        mine = [case for case in every if case.api == api]
        found = await probe(server, APIS[api])
        can(api, found)
        rest = iter([case for case in mine if case.single and found.missing is None])
        await _all(_worker(server, rest, level, add) for _ in range(AT_ONCE))
        for case in mine:
            if not case.single or found.missing is not None:
                add(case, await case.play(server, level=level))


async def _worker(server: Server, rest: Iterator[Case], level: Level, add: Told) -> None:
    for case in rest:
        add(case, await case.play(server, level=level))


async def _all(workers: Iterator[Any]) -> None:
    """As a task group of Python 3.11: what one of them raises ends the others."""
    tasks = [asyncio.ensure_future(worker) for worker in workers]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
