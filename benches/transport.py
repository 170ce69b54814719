"""Times what `StopTransport` adds to each event of a streamed answer, by API. The server is in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from measure import Case, exhaust, interleaved, own
from report import Limits, markdown
from workload import numbered, windows

from stopscan import StopSet
from stopscan_clients import StopTransport

sys.path.append(str(Path(__file__).parent.parent / "clients" / "tests"))

from replay import aws, line, sse
from wire import WIRES


class Served(httpx.BaseTransport, httpx.SyncByteStream):
    """A server in memory, which answers with the events of an API for these deltas."""

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


# The most microseconds per event. APIs whose events differ only in their text have a fast path, and a lower limit.
LIMITS = {**dict.fromkeys(ROUTES, 20), "anthropic": 4, "ollama": 4, "generate": 4}
EVENTS = 300
STOPS = {"4 stops": numbered(4), "4 that hold now and then": ["END", "</s>", "\n\nHuman:", "Observation result:"]}


def transported(api: str, name: str, stop: list[str]) -> Case:
    stops = StopSet(stop)

    def prepare(deltas: list[str]) -> Any:
        request = httpx.Request("POST", f"http://server{ROUTES[api]}", json={"stream": True})
        return StopTransport(stops, transport=Served(api, deltas)).handle_request(request).stream

    return Case(name, prepare, own(exhaust))


def report(limits: Limits) -> Iterator[str]:
    streams = [window[:EVENTS] for window in windows("english")[:8]]
    rows: list[tuple[str, ...]] = [("us per event over the bare transport", *STOPS)]
    for api in ROUTES:
        cases = [Case("bare", lambda deltas, api=api: iter(Served(api, deltas)), own(exhaust))]
        cases += [transported(api, name, stop) for name, stop in STOPS.items()]
        times = interleaved(cases, streams, 7)
        added = [(times[name] - times["bare"]) / len(streams) / EVENTS / 1000 for name in STOPS]
        rows.append((api, *(f"{time:.2f}" for time in added)))
        limits.most(f"`StopTransport`, an event of {api}", LIMITS[api], added[0], " us")
    yield f"## Streams of {EVENTS} text events\n\n" + markdown(rows)
