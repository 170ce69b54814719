"""Finds the stops in the body of an answer: ``Body`` takes bytes and returns bytes, and does no I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from stopscan import StopMatch
from stopscan_clients.framing import BOM, LIMIT, Array, Aws, Lines, Sse, dumps
from stopscan_clients.machine import Machine, Passage, ScanOptions, machine_of
from stopscan_clients.paths import has, put
from stopscan_clients.whole import cut

AWS = "application/vnd.amazon.eventstream"
EVENTS = ("text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl", AWS)  # media types
SSE = (b"data:", b"event:", b"id:", b"retry:", b":")
DONE = b"[DONE]"
BLANK = BOM + b" \t\r\n"  # the bytes that may be before a body


def loads(data: bytes | None) -> Any:
    """Returns the parsed JSON, or ``None`` if the data is not JSON."""
    try:
        return None if data is None else json.loads(data)
    except (RecursionError, ValueError):
        return None


class Alike:
    """Fast path for events that differ only in their text. Remembers the bytes before and after the text of an event:
    an event with the same bytes around its text needs no parsing."""

    # At most this many events are remembered, one after another. If not only their texts differ, each event of the
    # stream probably has its own id or number.
    TRIES = 5

    def __init__(self) -> None:
        self.passage: Passage | None = None  # the text of the stream to which the remembered event belongs
        self._before = self._behind = b""
        self._tries = self.TRIES

    def learn(self, frame: bytes, event: Any, framing: Lines, machine: Machine) -> None:
        """Remembers the bytes around the text of an event that the state machine has returned unchanged."""
        sole = machine.sole(event) if self._tries > 0 else None
        self._tries, self.passage = self._tries - 1, None
        if sole is None:
            return
        path, text = sole
        for quoted in (json.dumps(text, ensure_ascii=False).encode(), json.dumps(text).encode()):
            before, middle, behind = frame.partition(quoted)
            probe = loads(framing.payload(before + b'"\\u0000?"' + behind)) if middle else None
            if probe is not None and probe == put(event, "\0?", *path):
                self.passage, self._before, self._behind = machine.current, before + b'"', b'"' + behind

    def text(self, frame: bytes) -> str | None:
        """Returns the text of a frame (the bytes of an event) if only this text differs from the remembered event,
        otherwise ``None``."""
        begin, end = len(self._before), len(frame) - len(self._behind)
        if begin >= end or not frame.endswith(self._behind) or not frame.startswith(self._before):
            return None
        quoted = frame[begin:end]
        try:
            if b"\\" not in quoted and b'"' not in quoted:
                text = quoted.decode()
                return text if text.isprintable() else json.loads(f'"{text}"')
            text = json.loads(frame[begin - 1 : end + 1])
            return text if type(text) is str else None
        except ValueError:
            return None


@dataclass(frozen=True)
class Plan:
    """What to do with a request: which options cut its answer, and which body to send to the server."""

    options: ScanOptions
    streamed: bool = False
    own: bool = False  # whether the request itself has stops
    body: bytes | None = None  # the body to send; ``None``: the request's own body
    bare: bytes | None = None  # the body to send if the server refuses the stops in ``body``


class Body:
    """The body of one answer.

    Call ``feed`` with each piece of the body. After the last piece, call ``end``. If reading fails, call ``fail``
    instead. If all of the body is there at once, call only ``whole``.

    These methods return bytes for the client. Pass the bytes to ``emit``, which calls ``on_match`` for each new match
    and yields the bytes. After the last bytes, ``emit`` raises ``error``.
    """

    def __init__(
        self, plan: Plan, media: str, strict: bool = True, on_match: Callable[[int, StopMatch], object] | None = None
    ) -> None:
        self.matches: dict[int, StopMatch] = {}
        self.error: Exception | None = None  # what ``emit`` raises after the last bytes for the client
        self.ended = False  # stops or an error have ended the answer, so the rest is not needed
        self.over = False  # the body was read to its end
        self._options, self._on_match = plan.options, on_match
        self._strict = strict and len(plan.options.stops) > 0
        self._refuses = self._strict and (plan.own or media in EVENTS)  # a body that is not understood raises an error
        self._streamed, self._media = plan.streamed or media in EVENTS, media
        self._head = bytearray()  # the beginning of a body whose framing is not known yet
        self._whole = False  # whether the body is one whole answer
        self._raw = False  # whether the body is passed on unchanged
        self._framed = media == AWS  # whether the framing is known
        self._framing: Lines = Aws() if media == AWS else Lines()
        self._machine: Machine | None = None
        self._alike = Alike()
        self._calm = False  # whether the fast path may be tried: no text is held, and no event waits
        self._reported: set[int] = set()

    def feed(self, data: bytes) -> bytes:
        out = self._fast(data) if self._calm and not self._framing.rest else None  # most pieces are exactly one frame
        return self._joined(self._split(data)) if out is None else out

    def _joined(self, pieces: Iterable[bytes]) -> bytes:
        """Returns the bytes that the iterator ``pieces`` yields, joined. If ``pieces`` raises an error, ends the body
        with ``fail``."""
        out = []
        try:
            for piece in pieces:
                out.append(piece)
        except Exception as error:
            out.append(self.fail(error))
        return b"".join(out)

    def _split(self, data: bytes) -> Iterator[bytes]:
        if not self._framed:
            if self._raw:
                yield data
                return
            # Blanks before the body are passed on at once. In `_head`, they would be read again with each piece of the
            # body.
            if not self._head:
                rest = data.lstrip(BLANK)
                yield data[: len(data) - len(rest)]
                data = rest
            goes_on = self._head[:1] == b"{" and b"\n" not in data  # a whole line is needed to recognize an event
            self._head += data
            if len(self._head) > LIMIT:
                raise ValueError(f"the answer has more than {LIMIT:,} bytes")
            if self._whole or goes_on:
                return
            framing = sniffed(bytes(self._head), self._streamed, self._media)
            self._raw, self._whole = framing == "raw", framing == "whole"
            if self._raw:
                self._not_understood()
                yield bytes(self._head)
            if isinstance(framing, str):
                return
            self._framing, self._framed, data = framing(), True, bytes(self._head)
        for frame in self._framing.split(data):
            yield self._frame(frame)
            if self.ended:
                return

    def end(self) -> bytes:
        self.over = True
        return self._joined(self._rest())

    def _rest(self) -> Iterator[bytes]:
        framing, last = self._framing, bytes(self._framing.rest)
        if self._raw or self.ended:
            return
        if not self._framed:
            yield self.whole(bytes(self._head))
            return
        payload = framing.payload(last) if framing.as_read else None  # in `Array` and `Aws`, no whole event is left
        if self._machine is not None and payload != DONE and loads(payload) is None:  # `last` is no whole event
            tail = framing.tail()
            yield self._held_events(False)
            yield tail + framing.closing(False)
            return
        out = self._frame(last) if payload else framing.tail()
        yield out
        held = b"" if self.ended else self._held_events(False)
        gap = framing.gap if held and out and framing.as_read and not out.endswith(framing.gap) else b""
        yield gap + held
        if not self.ended:
            yield framing.closing(False)

    def fail(self, error: Exception) -> bytes:
        """Ends the body with an error, which ``emit`` raises after the last bytes. Returns, as bytes, the events that
        the machine still holds."""
        self.error, self.ended = self.error or error, True
        return self._held_events(None)

    def whole(self, data: bytes) -> bytes:
        """Returns a whole answer up to its stop."""
        self.over = True
        framing = sniffed(data, self._streamed, self._media, ended=True)
        if not isinstance(framing, str):
            self._framing, self._framed = framing(), True
            return self.feed(data) + self.end()
        answer = loads(data)
        if not isinstance(answer, dict):
            if data.strip(BLANK):
                self._not_understood()
            return data
        try:
            kept = cut(self._options, answer, self.matches)
        except TypeError:
            if self._refuses:
                raise
            return data
        return data if kept is answer else dumps(kept)

    def _not_understood(self) -> None:
        if self._refuses:
            raise TypeError("the body of the answer is neither JSON nor a stream of events")

    def failed(self, error: Any) -> bytes:
        """Returns the bytes of a last event that reports ``error``. Returns no bytes if the body has not been
        recognized as a stream of events."""
        return self._framing.failed(error) if self._framed else b""

    def emit(self, out: bytes) -> Iterator[bytes]:
        for choice, match in self.matches.items():
            if self._on_match is not None and choice not in self._reported:
                self._reported.add(choice)
                try:
                    self._on_match(choice, match)
                except Exception as error:
                    self.error = self.error or error
        if out:
            yield out
        if self.error is not None and (self.over or self.ended):
            wrong, self.error = self.error, None
            try:
                raise wrong
            finally:
                del wrong  # otherwise the traceback of the error would keep the answer in memory

    def _fast(self, frame: bytes) -> bytes | None:
        """Fast path: returns the output for a frame (the bytes of an event) that differs from the remembered frame only
        in its text. Returns ``None`` for any other frame."""
        text, passage = self._alike.text(frame), self._alike.passage
        if not text or passage is None:
            return None
        try:
            safe = passage.scanner.feed(text)
        except UnicodeEncodeError:  # half of a surrogate pair
            return None
        if safe != text or passage.scanner.match is not None:
            return self._event(frame, safe)
        passage.sent.append(text)
        return frame

    def _frame(self, frame: bytes) -> bytes:
        out = self._fast(frame) if self._calm else None
        return self._event(frame) if out is None else out

    def _event(self, frame: bytes, fed: str | None = None) -> bytes:
        framing = self._framing
        payload = framing.payload(frame)
        if payload == DONE:
            held = self._held_events(True)
            return held if self.ended else held + frame
        event = loads(payload)
        if not isinstance(event, dict):
            return self._other(frame, payload)
        if self._machine is None and len(self._options.stops):
            try:
                self._machine = machine_of(event, self._options, self.matches)
            except TypeError:
                if self._strict:
                    raise
        machine, alike = self._machine, self._alike
        if machine is None:
            return framing.out(frame)
        out = machine.feed(event, (event, frame), fed)
        touched = len(out) != 1 or out[0][0] is not event
        if not touched and framing.as_read:
            alike.learn(frame, event, framing, machine)
        self._calm = machine.calm and machine.current is alike.passage
        return self._written(out)

    def _other(self, frame: bytes, payload: bytes | None) -> bytes:
        """Returns the bytes to send for a frame without an event, such as a comment or an exception from AWS."""
        framing, machine = self._framing, self._machine
        if payload and machine is None and self._strict:
            raise TypeError(f"not an event of a known API: {payload[:40]!r}")
        if framing.fails(frame):
            return self._held_events(None) + framing.out(frame)
        if machine is None:
            return framing.out(frame)
        other: dict[str, Any] = {}
        return self._written(machine.passes(other, (other, frame)))

    def _held_events(self, confirms: bool | None) -> bytes:
        """Returns, as bytes, the events that the machine still holds when the body has ended or reading it has failed.
        ``confirms`` is passed to ``Machine.end``."""
        return self._written(self._machine.end(confirms)) if self._machine is not None else b""

    def _written(self, events: list[tuple[Any, Any]]) -> bytes:
        """Returns the events as bytes. An unchanged event keeps the bytes in which it came."""
        framing, machine = self._framing, self._machine
        assert machine is not None
        out = []
        for event, source in events:
            if source is None:
                frame = framing.made(event)
            else:
                frame = source[1] if event is source[0] else framing.changed(source[1], event, bool(self.matches))
            out.append(framing.out(frame))
        if machine.ended and not self._options.drain and not self.ended:
            self.ended = True
            out.append(framing.closing(machine.row.done))
        return b"".join(out)


def sniffed(
    head: bytes, streamed: bool, media: str, ended: bool = False
) -> type[Lines] | Literal["more", "whole", "raw"]:
    """Returns the framing of a body that begins with ``head``. Many servers send a wrong content type. So the content
    type (``media``) is used only if ``head`` does not show the framing.

    Returns ``"more"`` if ``head`` is too short to tell, ``"whole"`` for one whole answer, and ``"raw"`` for a body that
    is neither a stream nor an answer.
    """
    head = head.lstrip(BLANK)
    if not ended and any(start.startswith(head) for start in SSE[:-1]):
        return "more"
    if head.startswith(SSE):
        return Sse
    if head.startswith(b"[") and streamed:  # no API sends a whole answer as an array, so this is a stream
        return Array
    if not head.startswith(b"{"):
        return Sse if media == EVENTS[0] and head else "raw"
    if not streamed:
        return "whole"
    line, end, _ = head.partition(b"\n")
    if not end and not ended:
        return "more"
    event = loads(line)
    answer = any(has(event, sign) for sign in ("choices.*.message", "type=message", "output"))
    return "whole" if answer or event is None else Lines
