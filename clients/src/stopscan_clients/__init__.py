"""Exact stops for APIs that refuse, ignore or limit ``stop``: the streams of the official clients, cut."""

from stopscan_clients._native import native_stops
from stopscan_clients._objects.streams import AsyncEventStream, EventStream
from stopscan_clients._objects.whole_answer import truncate_response
from stopscan_clients._scan import ascan_events, scan_events
from stopscan_clients._transport import AsyncStopTransport, StopTransport

__all__ = [
    "AsyncEventStream",
    "AsyncStopTransport",
    "EventStream",
    "StopTransport",
    "ascan_events",
    "native_stops",
    "scan_events",
    "truncate_response",
]
