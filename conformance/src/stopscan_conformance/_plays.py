"""How a case is played: one request, several at once or one after another, some of which the client leaves.

A play is awaited with a server and gives what is wrong, by promise. `Exchange.run` is the simplest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from stopscan_conformance._answer import ask
from stopscan_conformance._exchange import Exchange
from stopscan_conformance._merged import merged
from stopscan_conformance._promises import Findings
from stopscan_conformance._says import LONG_PROMPT
from stopscan_conformance._server import Server

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
        return merged(found)

    return play


def in_turn(every: Sequence[Play]) -> Play:
    """One after another."""

    async def play(server: Server) -> Findings:
        return merged([await one(server) for one in every])

    return play


def leaving(left: Exchange) -> Play:
    """Streams whose client goes away when the first text has come."""

    async def play(server: Server) -> Findings:
        await asyncio.gather(*(ask(server, left.api, left.request, leave=True) for _ in range(LEAVING)))
        return {}

    return play


def longer_prompt(exchange: Exchange) -> Play:
    """The same prompt, and one with much before it, which has more tokens."""

    async def play(server: Server) -> Findings:
        counted: list[int] = []
        longer = replace(exchange.request, prompt=LONG_PROMPT + exchange.request.prompt)
        for request in (exchange.request, longer):
            answer = await ask(server, exchange.api, request)
            if answer.error is not None:
                return replace(exchange, optional=True).judged(answer)
            counted.append(answer.head.get("prompt", 0))
        if not all(counted):
            return {}
        return {
            "cost": None
            if counted[0] < counted[1]
            else f"{counted[1]} tokens of a prompt that is longer than one of {counted[0]}"
        }

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
