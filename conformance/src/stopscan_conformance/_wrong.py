"""Requests that are wrong on purpose: a server says so, with a status of 4xx, and neither fails nor answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stopscan_conformance._apis import Api, Request
from stopscan_conformance._connection import Connection
from stopscan_conformance._exchange import Exchange, NotSupported
from stopscan_conformance._paths import PATHS, body_of, named, with_option
from stopscan_conformance._promises import Findings
from stopscan_conformance._server import Server

Change = Callable[[str, dict[str, Any]], Any]  # of an API's body


def _option(name: str, value: Any) -> Change:
    return lambda api, body: with_option(api, body, named(api, name), value)


def _without(name: str) -> Change:
    return lambda api, body: {key: value for key, value in body.items() if key != named(api, name)}


WRONG: Mapping[str, Change] = {
    "a-stop-that-is-a-number": _option("stop", 5),
    "a-stop-that-is-an-object": _option("stop", {"text": "END"}),
    "stops-that-are-numbers": _option("stop", [1, 2]),
    "a-stop-among-numbers": _option("stop", ["END", 5]),
    "a-limit-that-is-text": _option("limit", "many"),
    "a-temperature-that-is-text": _option("temperature", "hot"),
    "no-content": _without("content"),
    "a-list": lambda api, body: [body],
    "no-json": lambda api, body: None,
}


@dataclass(frozen=True, eq=False)
class Wrong:
    """A play of one wrong request."""

    api: Api
    request: Request
    change: Change

    def content(self, model: str) -> str:
        """What is sent."""
        body = self.change(self.api.name, body_of(self.api.name, model, self.request))
        return '{"model": ' if body is None else json.dumps(body)

    async def __call__(self, server: Server) -> Findings:
        content = self.content(server.model)
        connection = Connection(server)
        try:
            sent = connection.http.post(
                PATHS[self.api.name], content=content, headers={"Content-Type": "application/json"}
            )
            answer = await asyncio.wait_for(sent, server.timeout)
        except Exception as error:
            return {"form": f"a wrong request gets no answer: {type(error).__name__}: {error}"}
        finally:
            await connection.close()
        if 400 <= answer.status_code < 500:
            return {"form": None}
        if answer.status_code == 501:
            raise NotSupported(f"501: {answer.text[:100]}")
        return {"form": f"a wrong request gets {answer.status_code}, not 400: {content[:120]}"}


@dataclass(frozen=True, eq=False)
class Odd:
    """A play of stops among which one is none: a refusal is right, too."""

    exchange: Exchange

    async def __call__(self, server: Server) -> Findings:
        try:
            return await self.exchange.run(server)
        except NotSupported:
            return {"form": None}


def odd_stops(exchange: Exchange) -> Iterator[tuple[str, Odd]]:
    """Lists with null or an empty string among the stops."""
    for name, odd in (("null-among-stops", None), ("an-empty-stop-among-stops", "")):
        stops = [odd, *exchange.request.stops["stop"]]
        yield name, Odd(replace(exchange, request=replace(exchange.request, stops={"stop": stops}), optional=True))
