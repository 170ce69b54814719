"""Resetting an HTTP/2 stream: httpcore's own close sends nothing, so that a server would generate to the end."""

from __future__ import annotations

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


def reset(connection: Any, number: int) -> bool:
    """Whether the stream was open; then ``_write_outgoing_data`` is to be called."""
    try:
        connection._h2_state.reset_stream(number, error_code=CANCEL)
    except Exception:  # h2's own errors, of a stream that has ended meanwhile
        return False
    return True
