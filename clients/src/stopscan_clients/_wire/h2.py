"""Resetting an HTTP/2 stream: httpcore's own close sends nothing, so that a server would generate to the end."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from typing import Any

CANCEL = 8  # RFC 9113, 7


def connection_of(stream: Any) -> tuple[Any, Any, int] | None:
    """Returns the HTTP/2 connection of a response's stream in httpcore (1.0) or httpcore2 (2.16), the request and the
    stream's number; ``None`` for any other stream, and where those packages have changed."""
    for _ in range(8):
        connection = getattr(stream, "_connection", None)
        if hasattr(connection, "_h2_state") and hasattr(connection, "_write_outgoing_data"):
            request, number = getattr(stream, "_request", None), getattr(stream, "_stream_id", None)
            return (connection, request, number) if request is not None and number is not None else None
        stream = getattr(stream, "_httpcore_stream", None) or getattr(stream, "_stream", None)
        if stream is None:
            return None
    return None


def shutting(response: Any, close: str, over: bool = False) -> Generator[Any, Any, None]:
    """The steps that close a response, after a reset of its stream if that is not over."""
    found = None if over else connection_of(response.stream)
    if found is not None:
        connection, request, number = found
        with suppress(Exception):  # h2's own errors, of a stream that has ended meanwhile
            connection._h2_state.reset_stream(number, error_code=CANCEL)
            yield connection._write_outgoing_data(request)
    yield getattr(response, close)()
