"""AWS's event stream: binary messages with headers and checksums."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

from stopscan_clients._wire.framing import LIMIT, Framing, dumps

# The sizes of a header's values by their type; strings and bytes say theirs.
SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class Aws(Framing):
    """Converse's events, or InvokeModel's chunks, each of which has an event of the model's own API."""

    margins = (12, 4)  # lengths and checksums

    def like(self, frame: bytes, core: bytes) -> bytes:
        return struct.pack(">I", len(core) + 16) + frame[4:12] + core + bytes(4)

    def split(self, data: bytes) -> list[bytes]:
        self.rest += data
        ends, place = [], 0
        while len(self.rest) - place >= 12:
            (size,) = struct.unpack_from(">I", self.rest, place)
            if not 16 <= size <= LIMIT:
                raise ValueError(f"a message of {size:,} bytes in an AWS event stream")
            place += size
            if place > len(self.rest):
                break
            ends.append(place)
        return self._taken(ends)

    def payload(self, frame: bytes) -> bytes | None:
        headers, body = _parts(frame)
        if headers.get(":message-type") != "event":
            return None
        try:
            told = json.loads(body)
            if headers.get(":event-type") == "chunk":
                return base64.b64decode(told["bytes"])
        except (KeyError, TypeError, ValueError):
            return None
        return dumps({headers.get(":event-type", ""): told})

    def changed(self, frame: bytes, event: Any) -> bytes:
        self._like = frame
        return self.made(event)

    def out(self, frame: bytes) -> bytes:
        self._like = frame
        return frame

    def made(self, event: Any) -> bytes:
        headers, _ = _parts(self._like)
        if headers.get(":event-type") == "chunk":
            return _message(headers, dumps({"bytes": base64.b64encode(dumps(event)).decode()}))
        ((name, fields),) = event.items()
        return _message({**headers, ":event-type": name}, dumps(fields))

    def fails(self, frame: bytes) -> bool:
        return _parts(frame)[0].get(":message-type", "event") != "event"

    def failed(self, error: Any) -> bytes:
        headers = {":exception-type": "internalServerException", ":content-type": "application/json"}
        return _message({**headers, ":message-type": "exception"}, dumps(error))

    _like = b""  # a message whose headers new ones have


def _parts(frame: bytes) -> tuple[dict[str, str], bytes]:
    """The headers that are strings, and the payload."""
    if len(frame) < 16:
        return {}, b""
    total, length = struct.unpack_from(">II", frame)
    headers: dict[str, str] = {}
    place, end = 12, min(12 + length, len(frame) - 4)
    try:
        while place < end:
            named = place + 1 + frame[place]
            name, kind = frame[place + 1 : named].decode(), frame[named]
            if kind in SIZES:
                place = named + 1 + SIZES[kind]
                continue
            (size,) = struct.unpack_from(">H", frame, named + 1)
            place = named + 3 + size
            if kind == 7:
                headers[name] = frame[named + 3 : place].decode()
    except (IndexError, UnicodeDecodeError, struct.error):
        return {}, b""
    return headers, frame[end : total - 4]


def _message(headers: dict[str, str], body: bytes) -> bytes:
    block = b""
    for name, value in headers.items():
        block += bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value.encode())) + value.encode()
    prelude = struct.pack(">II", len(block) + len(body) + 16, len(block))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + block + body
    return message + struct.pack(">I", zlib.crc32(message))
