"""The bytes of an answer with the times at which they came, and the events in them."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LINE_END = re.compile(rb"\r\n|\n|\r")  # the only line ends of an event stream
BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """A server-sent event, a line of JSON or a whole answer. `data` is the parsed JSON. If the data is not JSON, it is
    the text. `time` is the time at which the last byte of the event came."""

    name: str | None
    data: Any
    time: float = 0.0


@dataclass
class Wire:
    """The bytes of an answer. `status` is None until the answer begins. The body comes in parts: for each part, `came`
    has the length of the body after this part, and the time at which the part came."""

    status: int | None = None
    media_type: str = ""
    body: bytearray = field(default_factory=bytearray)
    came: list[tuple[int, float]] = field(default_factory=list)
    retry_after: str | None = None  # the header of this name

    def add(self, part: bytes, time: float) -> None:
        self.body += part
        self.came.append((len(self.body), time))

    @property
    def text(self) -> str:
        return self.body.decode("utf-8-sig", errors="replace")

    def json(self) -> Any:
        """Returns the parsed body, or None if it is not JSON."""
        return _json(self.text, None)

    def whole(self) -> Iterator[Event]:
        """Yields the body as one event."""
        yield Event(None, self.json(), self._time(len(self.body)))

    def events(self) -> Iterator[Event]:
        """Yields the server-sent events, without comments. An event without an empty line at its end is left out."""
        name: str | None = None
        data: list[str] = []
        for raw, end in self._lines(LINE_END):
            line = raw.decode(errors="replace")
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if not line:
                if data:
                    joined = "\n".join(data)
                    yield Event(name, _json(joined, joined), self._time(end))
                name, data = None, []
            elif key == "data":
                data.append(value)
            elif key == "event":
                name = value

    def lines(self) -> Iterator[Event]:
        """Yields the lines of JSON."""
        ended = self.body + b"\n"
        for raw, end in Wire(body=ended)._lines(re.compile(b"\n")):
            line = raw.decode(errors="replace")
            if line.strip():
                yield Event(None, _json(line, line), self._time(min(end, len(self.body))))

    def _lines(self, ends: re.Pattern[bytes]) -> Iterator[tuple[bytes, int]]:
        """Yields the complete lines, each with the offset of the next one."""
        begin = len(BOM) if self.body.startswith(BOM) else 0
        for end in ends.finditer(self.body):
            if end.start() >= begin:
                yield bytes(self.body[begin : end.start()]), end.end()
                begin = end.end()

    def _time(self, end: int) -> float:
        """Returns the time at which the body had `end` bytes."""
        at = bisect_left(self.came, (end, 0.0))
        return self.came[min(at, len(self.came) - 1)][1] if self.came else 0.0


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return otherwise
