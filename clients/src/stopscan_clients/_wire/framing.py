"""How events stand in the bytes of a body: server-sent events, lines of JSON, a JSON array. AWS's form: ``aws.py``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from stopscan_clients._json import get

LIMIT = 1 << 26  # bytes of an event that has not ended
END = rb"(?:\r\n|\n|\r(?!\n))"
BLANK_LINE = re.compile(END + END)
BOM = b"\xef\xbb\xbf"


def dumps(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


class Framing:
    """Cuts a body into frames, and writes frames. ``payload`` is the JSON of a frame, ``None`` if it has none."""

    written_as_read = True  # a frame that is not touched needs nothing beside it
    margins = (0, 0)  # the bytes at a frame's edges that count or check the rest of it

    def __init__(self) -> None:
        self.rest = bytearray()  # the beginning of a frame that has not ended
        self._seen = 0  # where in it the search for its end goes on

    def split(self, data: bytes) -> Sequence[bytes]:
        raise NotImplementedError

    def payload(self, frame: bytes) -> bytes | None:
        return frame.strip() or None

    def changed(self, frame: bytes, event: Any) -> bytes:
        """The frame with another event."""
        return self.made(event)

    def made(self, event: Any) -> bytes:
        return dumps(event)

    def like(self, frame: bytes, core: bytes) -> bytes:
        """A frame that ``payload`` reads, with something else between the margins."""
        return core

    def out(self, frame: bytes) -> bytes:
        """What is written for a frame, with what stands between it and the one before."""
        return frame

    def fails(self, frame: bytes) -> bool:
        """Whether a frame without an event says that the stream has failed."""
        return False

    def tail(self) -> bytes:
        """What is left of the body when it has ended, if that is no frame."""
        return bytes(self.rest)

    def closing(self, done: bool) -> bytes:
        """What ends the body; ``done`` where the API has a last word that is no event."""
        return b""

    def failed(self, error: Any) -> bytes:
        """What is written when the body breaks off: an error as its last event."""
        return self.out(self.made(error))

    def _taken(self, ends: Iterable[int]) -> list[bytes]:
        frames, begin = [], 0
        for end in ends:
            frames.append(bytes(self.rest[begin:end]))
            begin = end
        del self.rest[:begin]
        if len(self.rest) > LIMIT:
            raise ValueError(f"an event of more than {LIMIT:,} bytes")
        return frames


class Sse(Framing):
    """Server-sent events, as the HTML standard reads them."""

    named = False  # whether events say their type beside their data

    def split(self, data: bytes) -> Sequence[bytes]:
        if not self.rest and data[-2:] == b"\n\n" and b"\r" not in data and data.find(b"\n\n") == len(data) - 2:
            return (data,)
        self.rest += data
        until = len(self.rest) - self.rest.endswith(b"\r")  # perhaps half of CR LF
        ends = [match.end() for match in BLANK_LINE.finditer(self.rest, self._seen, until)]
        frames = self._taken(ends)
        self._seen = max(0, len(self.rest) - 3)
        return frames

    def payload(self, frame: bytes) -> bytes | None:
        if frame[:6] == b"data: " and frame.find(b"\n") == len(frame) - 2 and b"\r" not in frame:
            return frame[6:-2]
        lines = frame.removeprefix(BOM).splitlines()
        self.named = self.named or any(line.startswith(b"event:") for line in lines)
        data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        return b"\n".join(data) if data else None

    def changed(self, frame: bytes, event: Any) -> bytes:
        lines = [line for line in frame.splitlines() if line and not line.removeprefix(BOM).startswith(b"data:")]
        kind = get(event, "type")
        if isinstance(kind, str):
            lines = [b"event: " + kind.encode() if line.startswith(b"event:") else line for line in lines]
        return b"".join(line + b"\n" for line in lines) + b"data: " + dumps(event) + b"\n\n"

    def made(self, event: Any) -> bytes:
        name = get(event, "type") if self.named else None
        return (f"event: {name}\n".encode() if name else b"") + b"data: " + dumps(event) + b"\n\n"

    def closing(self, done: bool) -> bytes:
        return b"data: [DONE]\n\n" if done else b""


class Lines(Framing):
    """A JSON object a line."""

    def split(self, data: bytes) -> Sequence[bytes]:
        if not self.rest and data[-1:] == b"\n" and data.find(b"\n") == len(data) - 1:
            return (data,)
        begin = len(self.rest)
        self.rest += data
        return self._taken([begin + match.end() for match in re.finditer(b"\n", data)])

    def made(self, event: Any) -> bytes:
        return dumps(event) + b"\n"


class Array(Framing):
    """A JSON array that comes element by element, as Gemini's without ``alt=sse``."""

    written_as_read = False
    MARK = re.compile(rb'["\\{}\[\]]')

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._quoted = False
        self._first = True
        self._open = False

    def split(self, data: bytes) -> Sequence[bytes]:
        self.rest += data
        ends, place = [], self._seen
        while (mark := self.MARK.search(self.rest, place)) is not None:
            place = mark.end()
            char = mark[0]
            if self._quoted:
                place += char == b"\\"  # and the character behind it
                self._quoted = char != b'"'
            elif char == b'"':
                self._quoted = True
            elif char in b"{[":
                self._depth += 1
            elif char in b"}]":
                self._depth -= 1
                if self._depth == 1:
                    ends.append(place)
        self._seen = max(place, len(self.rest))
        frames = self._taken(ends)
        self._seen -= sum(map(len, frames))
        return frames

    def payload(self, frame: bytes) -> bytes | None:
        begin = frame.find(b"{")
        return frame[begin:] if begin >= 0 else None

    def out(self, frame: bytes) -> bytes:
        between, self._first = (b"[" if self._first else b",\r\n"), False
        return between + frame[max(frame.find(b"{"), 0) :]

    def tail(self) -> bytes:
        left = bytes(self.rest).rstrip()
        self._open = not left.endswith(b"]")  # broken off
        return left if self._open else left[:-1]

    def closing(self, done: bool) -> bytes:
        return b"" if self._open else b"]"

    def failed(self, error: Any) -> bytes:
        return super().failed(error) + b"]"
