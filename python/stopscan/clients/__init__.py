"""Exact stops for APIs that refuse, ignore or limit ``stop``: the streams of the official clients, cut."""

from stopscan.clients._native import native_stops
from stopscan.clients._objects.streams import AsyncEventStream, EventStream
from stopscan.clients._objects.whole_answer import truncate_response
from stopscan.clients._scan import ascan_events, scan_events
from stopscan.clients._transport import AsyncStopTransport, StopTransport

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
