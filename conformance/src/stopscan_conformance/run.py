"""Sends the cases, reports each result as it comes, and keeps the results if it is interrupted."""

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

Show = Callable[[Case, Result], None]


class Terminated(BaseException):
    """Raised when SIGTERM comes."""


def run(
    server: Server,
    every: Sequence[Case],
    results: dict[Case, Result],
    *,
    level: Level = "usual",
    counts: Callable[[Case, Result], Result | None] = lambda case, result: result,
    can: Callable[[str, Can], None] = lambda api, can: None,
    show: Show = lambda case, result: None,
    write: Callable[[], None] = lambda: None,
) -> None:
    """Runs the cases of one API after another, and adds the results to `results`. At the end, sorts them in the order
    of `every`.

    For each API it first finds out what the server can do. Then it runs the cases of one request, several at a time,
    and then, one by one, the cases that have several requests or compare times. It calls `can` with the abilities of
    the server, `show` with each result that counts, and `write` about every second. `counts` returns the part of a
    result that counts, or None.

    Raises `Terminated` when SIGTERM comes.
    """
    written = time.monotonic()

    def add(case: Case, result: Result) -> None:
        nonlocal written
        kept = counts(case, result)
        if kept is not None:
            results[case] = kept
            show(case, kept)
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

    # Not `loop.add_signal_handler`, which Windows does not have.
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
    server: Server, every: Sequence[Case], level: Level, can: Callable[[str, Can], None], add: Show
) -> None:
    for api in dict.fromkeys(case.api for case in every):
        of_api = [case for case in every if case.api == api]
        abilities = await probe(server, APIS[api])
        can(api, abilities)
        rest = iter([case for case in of_api if case.single and abilities.missing is None])
        await _all(_worker(server, rest, level, add) for _ in range(AT_ONCE))
        for case in of_api:
            if not case.single or abilities.missing is not None:
                add(case, await case.run_async(server, level=level))


async def _worker(server: Server, rest: Iterator[Case], level: Level, add: Show) -> None:
    for case in rest:
        add(case, await case.run_async(server, level=level))


async def _all(workers: Iterator[Any]) -> None:
    """Runs all workers at once. If one raises an error, cancels the others, as `asyncio.TaskGroup` of Python 3.11
    does."""
    tasks = [asyncio.ensure_future(worker) for worker in workers]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
