"""Times how much longer each event of a streamed answer takes through `StopTransport`, for each API."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from conftest import LOOP, Case, Ran, Times, exhaust
from replay import aws, line, sse
from wire import WIRES
from workload import numbered, windows

from stopscan import StopSet
from stopscan_clients import StopTransport


class Served(httpx.BaseTransport, httpx.SyncByteStream):
    """A server in memory. It answers each request with a stream of `deltas`, in the events of an API."""

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
# The limits in microseconds per event. APIs whose events differ only in their text have a fast path, and a lower limit.
LIMITS = {**dict.fromkeys(ROUTES, 20), "anthropic": 4, "ollama": 4, "generate": 4}
EVENTS = 300
STOPS = {"4 stops": numbered(4), "4 that hold now and then": ["END", "</s>", "\n\nHuman:", "Observation result:"]}


def bare(api: str) -> Case:
    return Case(exhaust, lambda deltas: (iter(Served(api, deltas)),))


def transported(api: str, stop: list[str]) -> Case:
    stops = StopSet(stop)

    def prepare(deltas: list[str]) -> tuple[Any]:
        request = httpx.Request("POST", f"http://server{ROUTES[api]}", json={"stream": True})
        return (StopTransport(stops, transport=Served(api, deltas)).handle_request(request).stream,)

    return Case(exhaust, prepare)


def added(kind: str, times: Times) -> dict[str, float]:
    return {f"us per event over the bare transport, {kind}": times.net / 1000}


@pytest.mark.parametrize("kind", STOPS)
@pytest.mark.parametrize("api", ROUTES)
def test_per_event(bench: Any, ran: Ran, limit: Any, api: str, kind: str) -> None:
    streams = [window[:EVENTS] for window in windows("english")[:8]]
    case, group = transported(api, STOPS[kind]), f"streams of {EVENTS} text events, {kind}"
    bench(group, api, case, streams, 7, yardsticks={LOOP: bare(api)}, columns=partial(added, kind))
    if kind == "4 stops":
        limit(f"`StopTransport`, an event of {api}", ran.of(group, api).net / 1000, most=LIMITS[api], unit=" us")
