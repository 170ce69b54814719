"""What came over the wire, as it came, and the events that it holds."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

from anyio import CancelScope

LINE_END = re.compile(r"\r\n|\n|\r")  # no other character ends a line of an event stream


class Event(NamedTuple):
    """A server-sent event, or a line of JSON. `data` is what its JSON says, the text itself if it is none."""

    name: str | None
    data: Any


@dataclass
class Wire:
    """`status` is None until an answer begins."""

    status: int | None = None
    media_type: str = ""
    body: bytearray = field(default_factory=bytearray)
    now: float = 0.0  # when the part came that is read at the moment
    at_once: bool = True  # all is read as it comes, and then looked at
    limit: CancelScope | None = None  # how long the answer may take
    endless: bool = False  # it took longer; what came until then is read

    async def tap(self, response: Any) -> None:
        """An httpx hook: takes a copy of all that is read of the response."""
        self.status = response.status_code
        self.media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.body.clear()
        read = response.aiter_bytes

        async def aiter_bytes(chunk_size: int | None = None) -> AsyncIterator[bytes]:
            if not self.at_once:
                async for part in read(chunk_size):
                    self.body += part
                    yield part
                return
            # What a client makes of a part takes time, in which others would wait.
            parts: list[tuple[float, bytes]] = []
            failed: Exception | None = None
            try:
                with self._limited() as limit:
                    async for part in read(chunk_size):
                        parts.append((perf_counter(), part))
                        self.body += part
                if limit.cancelled_caught:
                    self.endless = True
                    failed = TimeoutError("no end of the answer")
            except Exception as error:
                failed = error
            for self.now, part in parts:
                yield part
            if failed is not None:
                raise failed

        response.aiter_bytes = aiter_bytes

    def _limited(self) -> CancelScope:
        """The rest of the answer's time: what this process makes of it afterwards is none of it."""
        deadline = inf
        if self.limit is not None:
            deadline, self.limit.deadline = self.limit.deadline, inf
        return CancelScope(deadline=deadline)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8-sig", errors="replace")

    def json(self) -> Any:
        """What the body says, None if that is no JSON."""
        return _json(self.text, None)

    def events(self) -> Iterator[Event]:
        """The server-sent events, comments left out; one that no empty line ends is none."""
        name: str | None = None
        data: list[str] = []
        *lines, _ = LINE_END.split(self.text)
        for line in lines:
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if not line:
                if data:
                    joined = "\n".join(data)
                    yield Event(name, _json(joined, joined))
                name, data = None, []
            elif key == "data":
                data.append(value)
            elif key == "event":
                name = value

    def lines(self) -> Iterator[Event]:
        """The lines of JSON."""
        for line in self.text.split("\n"):
            if line.strip():
                yield Event(None, _json(line, line))


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return otherwise
