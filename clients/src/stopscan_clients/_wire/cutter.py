"""The body of an answer, cut: bytes in, bytes out."""

from __future__ import annotations

import json
from typing import Any

from stopscan import StopMatch
from stopscan_clients._json import get, items
from stopscan_clients._machines.apis import answer_machine_of, has_no_text, machine_of
from stopscan_clients._machines.machine import OTHERWISE, Options, fates
from stopscan_clients._wire.framing import BOM, Array, Framing, Lines, Sse, dumps
from stopscan_clients._wire.template import Template, split_at

TRIES = 5  # templates for a stream
SSE = (b"data:", b"event:", b"id:", b"retry:", b":")


class Cutter:
    """A stream's body: ``feed`` returns what comes out for a piece of it, ``end`` what comes when it has ended.
    ``ended`` says that nothing more of it is wanted, ``matches`` is filled as stops fire."""

    def __init__(
        self, framing: Framing, options: Options, matches: dict[int, StopMatch], strict: bool = True, fast: bool = True
    ) -> None:
        self.framing = framing
        self.ended = False
        self._options = options
        self._matches = matches
        self._strict = strict
        self._machine: Any = None
        self._tries = TRIES if fast else 0
        self._rest = framing.rest
        self._template: Any = None  # of the stream's text events, until a stop has fired
        self._at_once = False  # whether a piece that fits goes out as it is
        self._part: Any = None  # to which events of the template bring text

    def feed(self, data: bytes) -> bytes:
        if self._at_once and not self._rest:
            out = self._fast(data)  # what fits is one frame: no text and no hole has the end of one
            if out is not None:
                return out
        pieces = []
        for frame in self.framing.split(data):
            pieces.append(self._fed(frame))
            if self.ended:
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def end(self) -> bytes:
        if self.ended:
            return b""
        last = bytes(self.framing.rest)
        out = self._fed(last) if self.framing.payload(last) else self.framing.tail()
        return out if self.ended else out + self._held() + self.framing.closing(False)

    def _fed(self, frame: bytes) -> bytes:
        out = self._fast(frame) if self._template is not None else None
        return self._slow(frame) if out is None else out

    def _fast(self, frame: bytes) -> bytes | None:
        """What comes out for a frame that fits the template: itself for most. ``None`` for one that does not fit."""
        quoted, part = self._template.text(frame), self._part
        if quoted is None:
            return None
        try:
            text = quoted.decode()
            if "\\" in text:
                text = json.loads(f'"{text}"')
            safe = part.feed(text)
        except ValueError:  # half of a surrogate pair, or of a character
            return None
        if part.said is not None:
            part.said.append(text)
        if safe is text and not part.held and part.scanner.match is None:
            return frame if self._at_once else self.framing.out(frame)
        event = json.loads(self.framing.payload(frame) or b"")
        return self._written(frame, event, self._machine.changed(event, part, text, safe))

    def _slow(self, frame: bytes) -> bytes:
        payload = self.framing.payload(frame)
        if payload == b"[DONE]":
            return self._held() + frame
        try:
            event = json.loads(payload) if payload is not None else None
        except (RecursionError, ValueError):
            event = None
        if not isinstance(event, dict):
            if payload and self._machine is None and self._strict and len(self._options.stops):
                raise TypeError(f"no event of an API that is known here: {payload[:40]!r}")
            return (self.broken_off() if self.framing.fails(frame) else b"") + self.framing.out(frame)
        machine = self._machine or self._known(event)
        if machine is None:
            return self.framing.out(frame)
        out = machine.feed(event)
        written = self.framing.out(frame) if out is None else self._written(frame, event, out)
        if self._tries:
            self._learn(frame, event)
        return written

    def _known(self, event: Any) -> Any:
        try:
            machine = machine_of(event)
        except TypeError:
            if self._strict and len(self._options.stops):
                raise
            return None
        if machine is not None:
            self._machine = machine(self._options)
            self._machine.matches = self._matches
        return self._machine

    def _learn(self, frame: bytes, event: Any) -> None:
        """Makes a template of a text event, if events that differ in the text alone can be told by their bytes."""
        machine = self._machine
        place, text = self._sole(event) or (None, "")
        head, tail = self.framing.margins
        halves = split_at(frame[head : len(frame) - tail], text) if len(text) > 2 else None
        if halves is None or place not in machine.parts:
            return
        self._tries -= 1
        before, after = halves
        other = self.framing.payload(self.framing.like(frame, before + b'"?"' + after))
        if other is not None and self._sole(json.loads(other)) == (place, "?"):
            part = machine.parts[place]
            if self._template is None or part is not self._part or not self._template.widen(before, after):
                self._template = Template(before, after, (head, tail))
            self._part = part
            self._at_once = self.framing.written_as_read

    def _sole(self, event: Any) -> tuple[Any, str] | None:
        try:
            sole = self._machine.sole(event) if self._machine is not None else None
            hash(sole)
        except OTHERWISE:
            return None
        return sole if sole is not None and isinstance(sole[1], str) else None

    def broken_off(self) -> bytes:
        """What comes where the stream has failed."""
        return self._framed(self._machine.broken_off() if self._machine is not None else [])

    def _held(self) -> bytes:
        """What the machine has left when the source has ended."""
        return self._framed(self._machine.end() if self._machine is not None else [])

    def _framed(self, events: list[Any]) -> bytes:
        return b"".join([self.framing.out(self.framing.made(event)) for event in events])

    def _written(self, frame: bytes, source: Any, events: list[Any]) -> bytes:
        if self._matches:  # what follows a stop is another matter
            self._template, self._tries, self._at_once = None, 0, False
        framing, out = self.framing, []
        for event, fate in fates(events, source):
            made = frame if fate == "same" else framing.changed(frame, event) if fate == "cut" else framing.made(event)
            out.append(framing.out(made))
        if self._machine.ended and not self._options.drain:
            self.ended = True
            out.append(framing.closing(self._machine.API in ("chat", "completions")))
        return b"".join(out)


def cut_answer(body: bytes, options: Options, matches: dict[int, StopMatch], strict: bool = True) -> bytes:
    """Returns the body of a whole answer up to the stop, the very bytes if there is none.

    ``TypeError`` for an answer of no API that is known here.
    """
    try:
        answer = json.loads(body)
    except (RecursionError, ValueError):
        return body
    if not isinstance(answer, dict) or get(answer, "error") or get(answer, "type") == "error":
        return body
    machine = answer_machine_of(answer)
    if machine is None:
        if strict and len(options.stops) and not has_no_text(answer):
            raise TypeError(f"no answer of an API that is known here: it has the keys {', '.join(answer)}")
        return body
    cutter = machine(options)
    cutter.matches = matches
    cut = cutter.whole(answer)
    return body if cut is answer else dumps(cut)


def sniffed(head: bytes, streamed: bool, ended: bool = False) -> type[Framing] | bool | None:
    """Returns how the events stand in a body that begins so; ``False`` if it has none, ``None`` if more of it must
    come, which it does not if it has ``ended``."""
    head = head.removeprefix(BOM).lstrip()
    if not ended and (BOM.startswith(head) or any(start.startswith(head) for start in SSE[:-1])):
        return None
    if head.startswith(SSE):
        return Sse
    if head.startswith(b"["):
        return Array
    if not head.startswith(b"{") or not streamed:
        return False
    line, end, _ = head.partition(b"\n")
    if not end and not ended:
        return None
    try:
        event = json.loads(line)
    except (RecursionError, ValueError):
        return False  # an answer over several lines
    return False if _is_answer(event) else Lines


def _is_answer(event: Any) -> bool:
    """Whether this is an answer that came at once, and not the first event of a stream."""
    choices = items(get(event, "choices"))
    messages = any(get(choice, "message") is not None for choice in choices)
    return messages or get(event, "type") == "message" or get(event, "output") is not None
