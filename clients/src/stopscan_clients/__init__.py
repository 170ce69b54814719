"""Exact stops for APIs that refuse, ignore or limit ``stop``: transports for httpx, and functions for events that are
dicts."""

from stopscan_clients._version import __version__
from stopscan_clients.native import native_stops
from stopscan_clients.scan import AsyncEventStream, EventStream, ascan_events, scan_events, truncate_response
from stopscan_clients.transport import AsyncStopTransport, StopTransport

__all__ = [
    "AsyncEventStream",
    "AsyncStopTransport",
    "EventStream",
    "StopTransport",
    "__version__",
    "ascan_events",
    "native_stops",
    "scan_events",
    "truncate_response",
]
