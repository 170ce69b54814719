"""The proxy's own errors, in the form of each API: as a whole answer, and as the last event of a stream."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import httpx
from starlette.exceptions import HTTPException

from stopscan_clients._request import error_body, route_of

AWS = "application/vnd.amazon.eventstream"
AWS_EXCEPTION = {b":exception-type": b"internalServerException", b":message-type": b"exception"}


CLOSE = {"connection": "close"}  # after an error whose request was not read to its end


def error_of(path: str, error: HTTPException) -> dict[str, Any]:
    """Returns the error as the API of this path writes it, and in OpenAI's form for paths of no API."""
    route = route_of("POST", path)
    return error_body("openai" if route is None else route.errors, error.detail, error.status_code)


def explained(error: BaseException, answered: bool) -> HTTPException:
    """Returns what the client is told. ``answered``: the upstream server's answer has begun."""
    if isinstance(error, HTTPException):
        return error
    if isinstance(error, httpx.TransportError):
        late = isinstance(error, httpx.TimeoutException)
        what = "broke off its answer" if answered else "did not answer in time" if late else "closed the connection"
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            what = "cannot be reached"
        return HTTPException(504 if late else 502, f"the upstream server {what}: {type(error).__name__}")
    if isinstance(error, TypeError | ValueError | httpx.RequestError):  # an answer that cannot be cut
        return HTTPException(502, str(error), {"x-should-retry": "false"})  # the model would generate once more
    if isinstance(error, Exception):  # its message may have what a client sent
        return HTTPException(500, f"the proxy has failed: {type(error).__name__}")
    return HTTPException(503, "the proxy is shutting down")


def last_event(media: str, begin: bytes, end: bytes, error: dict[str, Any]) -> bytes:
    """Returns the error as the last event of a stream, ``b""`` for an answer that has no events.

    ``begin`` and ``end`` are the first and the last piece that the client got. Servers label streams as they like, so
    the first bytes tell the form, but for AWS's binary one.
    """
    data = json.dumps(error).encode()
    if media == AWS:
        return _aws_exception(data)
    if begin.startswith(b"{"):  # lines of JSON, or a whole answer
        return data + b"\n" if end.endswith(b"\n") else b""
    if begin.startswith(b"["):
        return b"" if end.endswith(b"]") else b",\r\n" + data + b"]"
    name = b"event: error\n" if error.get("type") == "error" else b""  # Anthropic's client drops events without a name
    return name + b"data: " + data + b"\n\n"


def _aws_exception(data: bytes) -> bytes:
    """A message of AWS's event stream: lengths and their checksum, headers, data, and the checksum of it all."""
    pairs = AWS_EXCEPTION.items()
    headers = b"".join(struct.pack(f">B{len(n)}sBH", len(n), n, 7, len(value)) + value for n, value in pairs)
    lengths = struct.pack(">II", len(headers) + len(data) + 16, len(headers))
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + data
    return message + struct.pack(">I", zlib.crc32(message))
