"""The transport over a server in memory, for ``benches/clients.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
from cases import Case, exhaust, own

import stopscan
from stopscan_clients import StopTransport

sys.path.insert(0, str(Path(__file__).parent.parent / "clients" / "tests"))

from replay import aws, line, sse
from wire import WIRES


class Served(httpx.BaseTransport, httpx.SyncByteStream):
    """A server in memory, whose answer has these pieces."""

    def __init__(self, api: str, deltas: list[str]) -> None:
        form, self.media = FORMS.get(api, (sse, "text/event-stream"))
        self.pieces = [form(event) for event in WIRES[api](deltas)]

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": self.media}, stream=self)


FORMS: dict[str, Any] = {
    **dict.fromkeys(("ollama", "generate"), (line, "application/x-ndjson")),
    "bedrock": (aws, "application/vnd.amazon.eventstream"),
}
ROUTES = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent",
    "ollama": "/api/chat",
    "generate": "/api/generate",
    "bedrock": "/model/m/converse-stream",
}


def over_transport(api: str, deltas: list[str], stops: stopscan.StopSet) -> Any:
    request = httpx.Request("POST", f"http://server{ROUTES[api]}", json={"stream": True})
    return StopTransport(stops, transport=Served(api, deltas)).handle_request(request).stream


def transported(api: str, sets: Sequence[list[str]]) -> list[Case]:
    cases = [Case(f"{api}: bare", lambda deltas: iter(Served(api, deltas)), own(exhaust), lambda deltas: None)]
    for stop in sets:
        stops = stopscan.StopSet(stop)

        def prepare(deltas: list[str], stops: stopscan.StopSet = stops) -> Any:
            return over_transport(api, deltas, stops)

        cases.append(Case(f"{api}: {stop[0]}", prepare, own(exhaust), lambda deltas: None))
    return cases
