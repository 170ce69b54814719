from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stopscan import StopMatch
from stopscan.clients._json import get, items, text_at
from stopscan.clients._logprobs import spelled
from stopscan.clients._machine import Machine
from stopscan.clients._outline import (
    COMPLETED,
    ITEM_DONE,
    PART_DONE,
    TEXT_DONE,
    Outline,
    Place,
    cut_item,
    cut_part,
    cut_response,
    finish_fields,
)
from stopscan.clients._part import Part, clean

DELTA = "response.output_text.delta"
OVER = (COMPLETED, "response.incomplete", "response.failed", "response.cancelled")


class Responses(Machine):
    """OpenAI's Responses. A text comes in deltas and then four times whole, in the events that close the text, its
    part, its item and the response. A stop in one text ends the response."""

    API = "responses"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outline = Outline()
        self._sent = replace(self.options, sent=True)  # for events that repeat what the deltas had
        self.said: dict[Place, tuple[list[str], list[Any]]] = {}  # the deltas of open texts, and their logprobs
        self._place: Place = (0, 0)  # where a stop fired
        self._open: list[Any] = []  # the closing events after it that have not come out

    def sole(self, event: Any) -> tuple[Any, str] | None:
        sole = self.peek(event)
        if sole is not None:
            place, text = sole
            if not text.isascii():
                text.encode()  # a lone surrogate is another way's matter, before anything of it is kept
            (self.said.get(place) or self.said.setdefault(place, ([], [])))[0].append(text)
        return sole

    def peek(self, event: Any) -> tuple[Any, str] | None:
        told = self.fields(event)
        if told["type"] != DELTA or self.matches or told.get("logprobs"):
            return None
        text = told.get("delta")
        index = told.get("output_index")
        return ((index, told.get("content_index") or 0), text) if text and index is not None else None

    def noting(self, place: Any) -> Callable[[str], None]:
        return self.said.setdefault(place, ([], []))[0].append

    def read(self, event: Any) -> list[Any]:
        kind = get(event, "type")
        if self.matches:
            return self._after(event, kind)
        if kind == DELTA and text_at(event, "delta"):
            return self._delta(event, clean(event["delta"]))
        if kind in (TEXT_DONE, PART_DONE, ITEM_DONE, *OVER):
            return self._done(event, kind)
        self.outline.learn(event, kind)
        return [event]

    def _delta(self, event: Any, text: str) -> list[Any]:
        place = self.outline.place_of(event)
        deltas, rows = self.said.setdefault(place, ([], []))
        deltas.append(text)
        rows += items(get(event, "logprobs"))
        part = self.parts.get(place) or self.part(place)
        return self.changed(event, part, text, part.feed(text))

    def changed(self, event: Any, part: Part, text: str, safe: str) -> list[Any]:
        before = part.held
        rows = part.settle(safe, spelled(get(event, "logprobs"), text))
        part.source = event
        out = [event if safe == text and not before else self._copy(event, safe, rows)]
        if part.match is not None:
            place = self.outline.place_of(event)
            out += self._matched(part.match, place, self._stopped(event, place))
        return out

    def _stopped(self, event: Any, place: Place) -> list[Any]:
        """The events that close the response after ``event``, a delta of the text that a stop has ended."""
        deltas, rows = self.said[place]
        cut, match = cut_part({"type": TEXT_DONE, "text": "".join(deltas), "logprobs": rows}, self._sent)
        assert match is not None
        return self.outline.close(event, TEXT_DONE, place, cut, match)

    def _copy(self, event: Any, text: str, rows: list[Any]) -> Any:
        return {**event, "delta": text, **({} if get(event, "logprobs") is None else {"logprobs": rows})}

    def _matched(self, match: StopMatch, place: Place, closing: list[Any]) -> list[Any]:
        self.matches[0] = match
        self.ended = True
        self._place = place
        self._open = closing
        return [] if self.options.drain else self.end()

    def _done(self, event: Any, kind: str) -> list[Any]:
        cut, match = self._repeated(event, kind)
        if match is None:
            self.outline.learn(event, kind)
            return [*self._close(event, kind), event]
        # The end of the text has completed a pattern. Or no delta had the stop: they were left out, or the stream is
        # the rest of one that was broken off; then what is held is not before the stop.
        held = self._close(event, kind) if self._completes(event, kind) else []
        place = self.outline.place_of(cut)
        return [*held, cut, *self._matched(match, place, self.outline.after(cut, kind, place, match))]

    def _repeated(self, event: Any, kind: str) -> tuple[Any, StopMatch | None]:
        """The event up to the stop that is in the text it repeats."""
        if kind == TEXT_DONE:
            return cut_part(event, self._sent)
        if kind in OVER:
            return self._over(event)
        name, cut_of = ("part", cut_part) if kind == PART_DONE else ("item", cut_item)
        cut, match = cut_of(get(event, name), self._sent)
        return event if match is None else {**event, name: cut}, match

    def _over(self, event: Any) -> tuple[Any, StopMatch | None]:
        response, match = cut_response(get(event, "response"), self._sent)
        match = match or self.matches.get(0)
        if match is None:
            return event, None
        response = {**(response or {}), **finish_fields(match)}
        return {**event, "type": COMPLETED, "response": response}, match

    def _close(self, event: Any, kind: str) -> list[Any]:
        """The held text of the texts that this event closes."""
        out = []
        for place in self._closed(event, kind):
            out += self._flush(self.parts[place])
            for said in self.said.get(place, ()):
                said.clear()  # and not dropped: `noting` has given the list away
        return out

    def _closed(self, event: Any, kind: str) -> list[Place]:
        """The texts that this event closes."""
        index, _ = here = self.outline.place_of(event)
        return [at for at in self.parts if kind in OVER or at == here or (kind == ITEM_DONE and at[0] == index)]

    def _completes(self, event: Any, kind: str) -> bool:
        """Whether the end of one of these texts completes a stop."""
        for place in self._closed(event, kind):
            scanner = self.parts[place].scanner.copy()
            scanner.flush()
            if scanner.match is not None:
                return True
        return False

    def _flush(self, part: Part) -> list[Any]:
        held, rows = part.flush()
        return [self._copy(part.source, held, rows)] if held else []

    def _after(self, event: Any, kind: Any) -> list[Any]:
        """After a match, when the stream is read on: the API's own closing events, cut, and what belongs to no item."""
        if kind in OVER:
            self._open = []
            return [self._over(event)[0]]
        of_item = any(get(event, name) is not None for name in ("output_index", "item_id", "item"))
        if kind not in (DELTA, TEXT_DONE, PART_DONE) and not of_item:
            return [event]
        index, part = self.outline.place_of(event)
        if get(event, "content_index") is None:
            part = self._place[1]
        if (index, part) == self._place and kind in (TEXT_DONE, PART_DONE, ITEM_DONE):
            self._open = [closing for closing in self._open if get(closing, "type") != kind]
            return [self._repeated(event, kind)[0]]
        return [event] if (index, part) < self._place else []

    def end(self) -> list[Any]:
        if self.matches:
            closing, self._open = self._open, []
            return closing
        out: list[Any] = []
        for place, part in self.parts.items():
            out += self._flush(part)
            if part.match is not None:
                if part.source is not None:  # some text of it was touched
                    out += self._stopped(part.source, place)
                return [*out, *self._matched(part.match, place, [])]
        return out

    def whole(self, answer: Any) -> Any:
        cut, match = cut_response(answer, self.options)
        if match is not None:
            self.matches[0] = match
        return cut
