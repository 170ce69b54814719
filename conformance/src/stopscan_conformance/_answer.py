"""One request to a server through its official client, and all that came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import Any

from anyio import move_on_after

from stopscan_conformance._apis import Api, End, Part, Request, short
from stopscan_conformance._connection import Connection, import_clients
from stopscan_conformance._server import Server
from stopscan_conformance._wire import Wire


@dataclass
class Answer:
    """What a client has in the end. `error` says why there is no more, and `faults` are breaches of the API's form.
    `times` are when the chunks came and `last` when the finish reason did; `first` and `seconds` are how long it took
    until the first text, and until the end."""

    wire: Wire = field(default_factory=Wire)
    chunks: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    reasoning: str = ""
    end: End | None = None
    head: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    timed_out: bool = False
    faults: list[str] = field(default_factory=list)
    first: float = 0.0
    last: float = 0.0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    @property
    def refused(self) -> bool:
        """Whether the server said that it does not know what it was asked."""
        return self.wire.status in (400, 404, 405, 413, 415, 422, 501)

    def add(self, part: Part) -> None:
        # Not all clients look at what a server sends as a text.
        for text in (part.text, part.reasoning):
            if not isinstance(text, str):
                raise TypeError(f"the text is {short(text)}, not a string")
        if (part.text or part.reasoning) and self.end is not None:
            self.fault("text after the finish reason")
        if part.text:
            self.chunks.append(part.text)
            self.times.append(self.wire.now)
        self.reasoning += part.reasoning
        if part.finish is not None:
            if self.end is not None:
                self.fault("a second finish reason")
            self.end = (part.finish.reason, part.finish.matched_stop)
            self.last = self.wire.now
        self.head.update((key, value) for key, value in part.head.items() if value is not None)

    def fault(self, what: str) -> None:
        if what not in self.faults:
            self.faults.append(what)


async def ask(
    server: Server, api: Api, request: Request, /, *, leave: bool = False, kept: Connection | None = None
) -> Answer:
    """The answer of `server`, or what came of it in the server's time limit; with `leave`, the connection is closed
    when the first text has come. `kept` is a connection to use, which stays open. Raises nothing that the server can
    be the reason of.
    """
    import_clients()
    answer = Answer()
    connection = kept or Connection(server)
    connection.wire = answer.wire
    answer.wire.at_once = not leave
    began = perf_counter()
    try:
        with move_on_after(server.timeout) as limit:
            answer.wire.limit = limit
            await _read(connection, api, request, answer, leave, began)
    except Exception as error:
        answer.error = _described(error, answer.wire)
    finally:
        answer.seconds = perf_counter() - began
        if kept is None:
            await connection.close()
    if answer.wire.endless or limit.cancelled_caught:
        answer.timed_out = True
        answer.error = f"no end of the answer in {server.timeout:g} s"
    if not leave and 200 <= (answer.wire.status or 0) < 300:
        for fault in chain(_transport(answer.wire), api.form(answer.wire, request)):
            answer.fault(fault)
        if not server.has(answer.head.get("model")):
            answer.fault(f"the model is {answer.head['model']!r}, not {server.model!r}")
    return answer


def _transport(wire: Wire) -> Iterator[str]:
    if wire.status != 200:
        yield f"the status is {wire.status}, not 200"
    try:
        wire.body.decode()
    except UnicodeDecodeError as error:
        yield f"bytes that are not UTF-8: {bytes(wire.body[max(0, error.start - 8) : error.end + 8])!r}"


async def _read(connection: Connection, api: Api, request: Request, answer: Answer, leave: bool, began: float) -> None:
    async with aclosing(api.read(connection, request)) as parts:  # type: ignore[type-var]
        async for part in parts:
            answer.add(part)
            if answer.chunks and not answer.first:
                answer.first = (answer.wire.now or perf_counter()) - began
            if leave and (answer.chunks or answer.reasoning):
                return


def _described(error: Exception, wire: Wire) -> str:
    """The error in one line."""
    said = " ".join(wire.text.split())[:200] if wire.status not in (None, 200) else ""
    cause = error.__cause__ if wire.status is None else None
    parts = [str(wire.status) if said else type(error).__name__, said or str(error)[:200], str(cause or "")]
    return ": ".join(part for part in parts if part)
