"""The bytes of a request, in bounded time: read, and looked at before they are parsed."""

from __future__ import annotations

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request

MAX_BODY = 2_000_000  # bytes
MAX_VALUES = 8_000  # strings, lists and objects: parsing and checking them holds up every other thread
BODY_SECONDS = 30.0


async def read(request: Request) -> bytearray:
    """The body, no copy of which is made. Raises `HTTPException` for one that is too long or does not come."""
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS) as scope:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise HTTPException(413, f"the body is longer than {MAX_BODY} bytes")
    if scope.cancelled_caught:
        raise HTTPException(408, f"the body did not come in {BODY_SECONDS:g} seconds")
    return body


def check(body: bytes | bytearray, numbers: int) -> None:
    """Raises `HTTPException` if the body has too many values, or more than so many `numbers` in its lists.

    Nothing here holds the GIL: a step of the loop is a search for a quote.
    """
    values = commas = 0
    end = -1
    while True:
        begin = body.find(b'"', end + 1)
        between = (end + 1, len(body) if begin < 0 else begin)
        values += (begin >= 0) + body.count(b"[", *between) + body.count(b"{", *between)
        commas += body.count(b",", *between)
        if values > MAX_VALUES:
            raise HTTPException(413, f"the body has more than {MAX_VALUES} values")
        if commas > MAX_VALUES + numbers:
            raise HTTPException(413, f"the body has more than {MAX_VALUES + numbers} numbers")
        if begin < 0:
            return
        end = _closing(body, begin)
        if end < 0:
            return  # no JSON; the parser says so


def _closing(body: bytes | bytearray, begin: int) -> int:
    """Where the string that begins there ends."""
    end = begin
    while True:
        end = before = body.find(b'"', end + 1)
        while before > 0 and body[before - 1] == ord("\\"):
            before -= 1
        if end < 0 or (end - before) % 2 == 0:
            return end
