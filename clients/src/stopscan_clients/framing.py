"""Reads and writes the framing of events in a body: server-sent events, lines of JSON, a JSON array, AWS's event
stream."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

LIMIT = 1 << 26  # the most bytes of one event
END = rb"(?:\r\n|\n|\r(?!\n))"
BLANK_LINE = re.compile(END + END)
BOM = b"\xef\xbb\xbf"


def dumps(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


class Lines:
    """Lines with one JSON object each. The other framings override what differs."""

    gap = b"\n"  # the bytes that end a frame, such as an event or a comment
    as_read = True  # whether an unchanged frame is written as it came

    def __init__(self) -> None:
        self.rest = bytearray()  # the beginning of a frame that has not ended
        self._seen = 0  # where in `rest` to continue the search for the end of that frame

    def split(self, data: bytes) -> Iterable[bytes]:
        """Returns the frames that ``data``, the next piece of the body, completes. After the last of them, raises
        ``ValueError`` if the rest cannot be the beginning of a frame."""
        if not self.rest and data.find(b"\n") == len(data) - 1:
            return [data]  # the usual case
        begin = len(self.rest)
        self.rest += data
        return self._taken(begin + match.end() for match in re.finditer(b"\n", data))

    def _taken(self, ends: Iterable[int]) -> Iterator[bytes]:
        begin = 0
        for end in ends:
            yield bytes(self.rest[begin:end])
            begin = end
        del self.rest[:begin]
        if len(self.rest) > LIMIT:
            raise ValueError(f"an event is longer than {LIMIT:,} bytes")

    def payload(self, frame: bytes) -> bytes | None:
        """Returns the JSON of a frame, or ``None`` if the frame has none."""
        return frame.strip() or None

    def changed(self, frame: bytes, event: Any, cut: bool = False) -> bytes:
        """Returns the bytes of a frame whose event was changed to ``event``. If a stop has fired (``cut``), the frame
        keeps only the fields that are known by name."""
        return self.made(event)

    def made(self, event: Any) -> bytes:
        return dumps(event) + self.gap

    def out(self, frame: bytes) -> bytes:
        """Returns the bytes to write for a frame, with any separator before it, such as the comma in a JSON array."""
        return frame

    def fails(self, frame: bytes) -> bool:
        """Returns whether a frame without an event reports that the stream has failed. Only AWS has such frames."""
        return False

    def tail(self) -> bytes:
        """Returns the bytes that a body has after its last complete frame. Called when the body has ended."""
        return bytes(self.rest)

    def closing(self, done: bool) -> bytes:
        """Returns the bytes that must end a body, such as the ``]`` of a JSON array. ``done`` is true if the API ends
        its streams with ``[DONE]``."""
        return b""

    def failed(self, error: Any) -> bytes:
        """Returns an error as the last event, for a body that breaks off."""
        return self.out(self.made(error))


class Sse(Lines):
    """Server-sent events, parsed as the HTML standard says."""

    gap = b"\n\n"
    named = False  # whether frames have `event:` lines

    def split(self, data: bytes) -> Iterable[bytes]:
        if not self.rest and data[-2:] == b"\n\n" and data.find(b"\n\n") == len(data) - 2 and b"\r" not in data:
            return [data]
        self.rest += data
        until = len(self.rest) - self.rest.endswith(b"\r")  # a CR at the end may be the first half of CR LF
        ends = [0, *(match.end() for match in BLANK_LINE.finditer(self.rest, self._seen, until))]
        self._seen = max(0, len(self.rest) - ends[-1] - 3)
        return self._taken(ends[1:])

    def payload(self, frame: bytes) -> bytes | None:
        lines = frame.removeprefix(BOM).splitlines()
        self.named = self.named or any(line.startswith(b"event:") for line in lines)
        data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:") or line == b"data"]
        return b"\n".join(data) if data else None

    def changed(self, frame: bytes, event: Any, cut: bool = False) -> bytes:
        lines = [line for line in frame.splitlines() if line and not line.removeprefix(BOM).startswith(b"data")]
        if cut:
            lines = [line for line in lines if line.startswith((b"event:", b"id:"))]
        return b"".join(line + b"\n" for line in lines) + b"data: " + dumps(event) + b"\n\n"

    def made(self, event: Any) -> bytes:
        name = event.get("type") if self.named else None
        return (f"event: {name}\n".encode() if name else b"") + b"data: " + dumps(event) + b"\n\n"

    def closing(self, done: bool) -> bytes:
        return b"data: [DONE]\n\n" if done else b""


class Array(Lines):
    """A JSON array of events, as in Gemini's streams without ``alt=sse``."""

    gap = b""
    as_read = False
    MARK = re.compile(rb'["\\{}\[\]]')

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._quoted = False
        self._first = True
        self._open = False

    def split(self, data: bytes) -> Iterable[bytes]:
        self.rest += data
        ends, place = [0], self._seen
        while (mark := self.MARK.search(self.rest, place)) is not None:
            place = mark.end()
            char = mark[0]
            if self._quoted:
                place += char == b"\\"  # skip the escaped character
                self._quoted = char != b'"'
            elif char == b'"':
                self._quoted = True
            elif char in b"{[":
                self._depth += 1
            elif char in b"}]":
                self._depth -= 1
                if self._depth == 1:
                    ends.append(place)
        self._seen = max(place, len(self.rest)) - ends[-1]
        return self._taken(ends[1:])

    def payload(self, frame: bytes) -> bytes | None:
        begin = frame.find(b"{")
        return frame[begin:] if begin >= 0 else None

    def out(self, frame: bytes) -> bytes:
        between, self._first = (b"[" if self._first else b",\r\n"), False
        return between + frame[max(frame.find(b"{"), 0) :]

    def tail(self) -> bytes:
        rest = bytes(self.rest).rstrip()
        self._open = not rest.endswith(b"]")  # the body broke off
        return rest if self._open else rest[:-1]

    def closing(self, done: bool) -> bytes:
        return b"" if self._open else b"]"

    def failed(self, error: Any) -> bytes:
        return super().failed(error) + b"]"


# The sizes of header values in AWS's messages, by type id. The type ids of strings and bytes are missing, because these
# values begin with their size.
SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class Aws(Lines):
    """AWS's event stream. In Converse, its messages are the events. In InvokeModel, its messages are chunks, and each
    chunk contains an event of the model's API."""

    as_read = False

    def split(self, data: bytes) -> Iterator[bytes]:
        self.rest += data
        while len(self.rest) >= 12:
            (size,) = struct.unpack_from(">I", self.rest)
            if not 16 <= size <= LIMIT:
                raise ValueError(f"an AWS event stream has a message with a wrong size: {size:,} bytes")
            if size > len(self.rest):
                break
            yield bytes(self.rest[:size])
            del self.rest[:size]

    def payload(self, frame: bytes) -> bytes | None:
        headers, body = _parts(frame)
        self._like = frame
        if headers.get(":message-type") != "event":
            return None
        if headers.get(":event-type") != "chunk":
            return b"{%b:%b}" % (dumps(headers.get(":event-type", "")), body)
        try:
            return base64.b64decode(json.loads(body)["bytes"])
        except (KeyError, TypeError, ValueError):
            return None

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

    _like = b""  # the last message that was read: `made` copies its headers


def _parts(frame: bytes) -> tuple[dict[str, str], bytes]:
    """Returns the headers and the payload of a message of AWS's event stream. Only headers whose value is a string are
    returned."""
    headers: dict[str, str] = {}
    try:
        total, length = struct.unpack_from(">II", frame)
        place, end = 12, min(12 + length, len(frame) - 4)
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
