"""Requests that are wrong on purpose. A correct server answers with a status of 4xx."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stopscan_conformance.apis import Api, Request
from stopscan_conformance.client import Server, ask
from stopscan_conformance.judge import Findings
from stopscan_conformance.single import NotSupported, Single

Change = Callable[[Api, "dict[str, Any]"], Any]  # returns the changed body of a request


def _option(name: str, value: Any) -> Change:
    return lambda api, body: api.with_option(body, getattr(api, name, name), value)


WRONG: Mapping[str, Change] = {
    "a-stop-that-is-a-number": _option("stop", 5),
    "a-stop-that-is-an-object": _option("stop", {"text": "END"}),
    "stops-that-are-numbers": _option("stop", [1, 2]),
    "a-stop-among-numbers": _option("stop", ["END", 5]),
    "a-limit-that-is-text": _option("limit", "many"),
    "a-temperature-that-is-text": _option("temperature", "hot"),
    "no-content": lambda api, body: {key: value for key, value in body.items() if key != api.content},
    "a-list": lambda api, body: [body],
    "no-json": lambda api, body: '{"model": ',
}


@dataclass(frozen=True, eq=False)
class Wrong:
    """A case that sends one request after `change` has made it wrong."""

    api: Api
    request: Request
    change: Change

    def body(self, model: str) -> Any:
        """Returns the body of the request. A string is sent as it is."""
        return self.change(self.api, self.api.body(model, self.request))

    async def __call__(self, server: Server) -> Findings:
        body = self.body(server.model)
        answer = await ask(server, self.api, self.request, body=body)
        status = answer.wire.status
        if status is None:
            return {"wrong-request": f"a wrong request gets no answer: {answer.error}"}
        if status == 501:
            raise NotSupported(answer.error)
        wrong = f"a wrong request gets {status}, not 400: {(body if isinstance(body, str) else json.dumps(body))[:120]}"
        return {"wrong-request": None if 400 <= status < 500 else wrong}


@dataclass(frozen=True, eq=False)
class Odd:
    """A case that sends a list of stops with a wrong entry. The server may refuse the list or ignore the entry."""

    single: Single

    async def __call__(self, server: Server) -> Findings:
        try:
            findings = await self.single.run(server)
        except NotSupported:
            return {"odd-stops": None}
        wrong = [fault for rule, fault in findings.items() if fault and rule in ("text", "form", "competing-stops")]
        return {"odd-stops": "; ".join(wrong) or None}


def odd_stops(single: Single) -> Iterator[tuple[str, Odd]]:
    """Yields two cases with their names. In the first case, null stands before the stops of `single`, and in the second
    case an empty string."""
    for name, odd in (("null-among-stops", None), ("an-empty-stop-among-stops", "")):
        stops = [odd, *single.request.stops["stop"]]
        yield name, Odd(replace(single, request=replace(single.request, stops={"stop": stops}), optional=True))
