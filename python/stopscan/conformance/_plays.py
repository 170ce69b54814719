"""How a case is played: one request, several at once or one after another, some of which the client leaves.

A play is awaited with a server and gives what is wrong, by promise. `Exchange.run` is the simplest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from stopscan.conformance._answer import ask
from stopscan.conformance._exchange import Exchange
from stopscan.conformance._judge import COLUMNS, Column, Findings
from stopscan.conformance._server import Server

Play = Callable[[Server], Awaitable[Findings]]

LEAVING = 4


def at_once(every: Sequence[Play]) -> Play:
    """All at the same time. What one of them raises comes when all are over."""

    async def play(server: Server) -> Findings:
        found: list[Findings] = []
        for one in await asyncio.gather(*(one(server) for one in every), return_exceptions=True):
            if isinstance(one, BaseException):
                raise one
            found.append(one)
        return _merged(found)

    return play


def in_turn(every: Sequence[Play]) -> Play:
    """One after another."""

    async def play(server: Server) -> Findings:
        return _merged([await one(server) for one in every])

    return play


def leaving(left: Exchange) -> Play:
    """Streams whose client goes away when the first text has come."""

    async def play(server: Server) -> Findings:
        await asyncio.gather(*(ask(server, left.api, left.request, leave=True) for _ in range(LEAVING)))
        return {}

    return play


def the_same(exchange: Exchange) -> Play:
    """The same request twice: the second answer has another id, and as many prompt tokens."""

    async def play(server: Server) -> Findings:
        heads = []
        for _ in range(2):
            answer = await ask(server, exchange.api, exchange.request)
            if answer.error is not None:
                return exchange.judged(answer)
            heads.append(answer.head)
        faults = []
        if "id" in heads[0] and heads[0]["id"] == heads[1].get("id"):
            faults.append(f"two answers have the id {heads[0]['id']!r}")
        if heads[0].get("prompt") != heads[1].get("prompt"):
            faults.append(f"{heads[0].get('prompt')} and {heads[1].get('prompt')} tokens of the same prompt")
        return {"form": "; ".join(faults) or None}

    return play


def _merged(found: Sequence[Findings]) -> Findings:
    """What was first wrong with each promise."""
    merged: dict[Column, str | None] = {}
    for column in COLUMNS:
        judged = [(number, one[column]) for number, one in enumerate(found, 1) if column in one]
        if judged:
            wrong = [f"{fault} (request {number} of {len(found)})" for number, fault in judged if fault]
            merged[column] = wrong[0] if wrong else None
    return merged
