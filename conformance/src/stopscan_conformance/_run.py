"""Sends the cases, writes the results as they come, and keeps them when it is interrupted."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import track

from stopscan_conformance._cases import Case, Result
from stopscan_conformance._promises import Column
from stopscan_conformance._select import limited
from stopscan_conformance._server import Server

BETWEEN_WRITINGS = 1.0


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
    """Adds the results of the cases, in their order, with a progress bar on a terminal.

    `write` is called about every second. Raises `Terminated` when SIGTERM comes.
    """
    console = Console(stderr=True)
    written = time.monotonic()
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        for case in track(every, "Sending", console=console, transient=True, disable=not console.is_terminal):
            results[case] = limited(case.run(server), columns)
            if time.monotonic() - written > BETWEEN_WRITINGS:
                write()
                written = time.monotonic()
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminate(*_: Any) -> None:
    raise Terminated
