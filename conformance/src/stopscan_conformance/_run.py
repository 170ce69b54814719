"""Sends the cases, writes the results as they come, and keeps them when it is interrupted."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import Progress

from stopscan_conformance._answer import ask
from stopscan_conformance._apis import APIS
from stopscan_conformance._cases import Case, Result
from stopscan_conformance._points import exchange_of
from stopscan_conformance._promises import Column
from stopscan_conformance._select import limited
from stopscan_conformance._server import Server
from stopscan_conformance._space import Point

BETWEEN_WRITINGS = 1.0
AT_ONCE = 4
# From so many cases on, it is told how long they may take; a case has about so many tokens.
MANY, TOKENS = 1000, 200


class Terminated(BaseException):
    """SIGTERM came."""


def run(
    server: Server,
    every: Sequence[Case],
    results: dict[Case, Result],
    *,
    columns: Sequence[Column] = (),
    write: Callable[[], None] = lambda: None,
) -> None:
    """Adds the results of the cases, with a progress bar on a terminal: several cases at once, then one by one those
    that have several requests or compare times. In the end the results are in the order of the cases. With `columns`,
    nothing but these promises counts, and a case that tests none of them has no result.

    `write` is called about every second. Raises `Terminated` when SIGTERM comes.
    """
    console = Console(stderr=True)
    try:
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            shown = progress.add_task("Sending", total=len(every))
            written = time.monotonic()

            def add(case: Case, result: Result) -> None:
                nonlocal written
                if not columns or result.outcome == "not supported":
                    results[case] = result
                elif {*columns} & {*result.columns}:
                    results[case] = limited(result, columns)
                progress.advance(shown)
                if time.monotonic() - written > BETWEEN_WRITINGS:
                    write()
                    written = time.monotonic()

            asyncio.run(_until_terminated(_send(server, every, add)))
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


async def _send(server: Server, every: Sequence[Case], add: Callable[[Case, Result], None]) -> None:
    # The first of an API finds out whether the server has it.
    firsts = {*{case.api: case for case in reversed(every)}.values()}
    for case in every:
        if case in firsts:
            add(case, await case.play(server))
    if len(every) > MANY and (told := await _estimate(server, every)):
        print(told, file=sys.stderr)
    rest = iter([case for case in every if case not in firsts and case.single])
    await _all(_worker(server.patient(AT_ONCE), rest, add) for _ in range(AT_ONCE))
    for case in every:
        if not case.single and case not in firsts:
            add(case, await case.play(server))


async def _estimate(server: Server, every: Sequence[Case]) -> str | None:
    """How long the cases may take, by the time of one answer."""
    there = [api for api, missing in server.probed.items() if missing is None and not APIS[api].harmony]
    if not there:
        return None
    exchange = exchange_of(APIS[there[0]], Point(script="paced", place=None))
    tokens = exchange.expected.tokens[0]
    step = (await ask(server, exchange.api, exchange.request)).seconds / tokens
    minutes = step * TOKENS * sum(case.api in there for case in every) / 60
    return f"{len(every)} cases: at most about {minutes:.0f} minutes, at {step * 1000:.1f} ms a token"


async def _worker(server: Server, rest: Iterator[Case], add: Callable[[Case, Result], None]) -> None:
    for case in rest:
        add(case, await case.play(server))


async def _all(workers: Iterator[Any]) -> None:
    """As a task group of Python 3.11: what one of them raises ends the others."""
    tasks = [asyncio.ensure_future(worker) for worker in workers]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
