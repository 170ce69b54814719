from __future__ import annotations

from dataclasses import replace
from typing import Any

from stopscan import StopMatch
from stopscan_clients._json import get, items, only, put, text_at
from stopscan_clients._machines.closing import ClosingMachine
from stopscan_clients._machines.logprobs import spelled
from stopscan_clients._machines.machine import Fields, Part, Sole, clean
from stopscan_clients._machines.outline import (
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

DELTA = "response.output_text.delta"
OVER = (COMPLETED, "response.incomplete", "response.failed", "response.cancelled")


class Responses(ClosingMachine):
    """OpenAI's Responses. A text comes in deltas and then four times whole, in the events that close the text, its
    part, its item and the response. A stop in one text ends the response."""

    API = "responses"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outline = Outline()
        self._sent = replace(self.options, sent=True)  # for events that repeat what the deltas had
        self._place: Place = (0, 0)  # where a stop fired

    def part(self, place: Place) -> Part:
        part = super().part(place)
        part.said = []  # the text comes again, whole
        return part

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            told = top(event)
            if told["type"] != DELTA:
                return None
            text = told["delta"]
            place = told["output_index"], told.get("content_index") or 0
            return (place, text) if text and not told.get("logprobs") else None

        return sole

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
        part = self.parts.get(place) or self.part(place)
        assert part.said is not None
        part.said.append(text)
        part.rows += items(get(event, "logprobs"))
        return self.changed(event, part, text, part.feed(text))

    def rows(self, event: Any, text: str) -> list[Any]:
        return spelled(get(event, "logprobs"), text)

    def cut(self, event: Any, text: str, rows: list[Any]) -> Any:
        return {**event, "delta": text, **({} if get(event, "logprobs") is None else {"logprobs": rows})}

    def closing(self, event: Any, part: Part) -> list[Any]:
        self._place = self.outline.place_of(event)
        told = {"type": TEXT_DONE, "text": "".join(part.said or ()), "logprobs": part.rows}
        cut, match = cut_part(told, self._sent)
        assert match is not None
        return self.outline.close(event, TEXT_DONE, self._place, cut, match)

    def _done(self, event: Any, kind: str) -> list[Any]:
        cut, match = self._repeated(event, kind)
        if match is None:
            self.outline.learn(event, kind)
            return [*self._close(event, kind), event]
        # The end of the text has completed a pattern. Or no delta had the stop: they were left out, or the stream is
        # the rest of one that was broken off; then what is held is not before the stop.
        held = self._close(event, kind) if self._completes(event, kind) else []
        self._place = self.outline.place_of(cut)
        return [*held, cut, *self.matched(match, self.outline.after(cut, kind, self._place, match))]

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
        response = {**(response if isinstance(response, dict) else {}), **finish_fields(match)}
        return {**event, "type": COMPLETED, "response": response}, match

    def _close(self, event: Any, kind: str) -> list[Any]:
        """The held text of the texts that this event closes."""
        out = []
        for part in self._closed(event, kind):
            out += self.flush(part)
            part.said, part.rows = [], []
        return out

    def _closed(self, event: Any, kind: str) -> list[Part]:
        """The texts that this event closes."""
        index, _ = here = self.outline.place_of(event)
        within = (at for at in self.parts if kind in OVER or at == here or (kind == ITEM_DONE and at[0] == index))
        return [self.parts[at] for at in within]

    def _completes(self, event: Any, kind: str) -> bool:
        """Whether the end of one of these texts completes a stop."""
        copies = [part.scanner.copy() for part in self._closed(event, kind)]
        return any(copy.flush() is not None and copy.match is not None for copy in copies)

    def _after(self, event: Any, kind: Any) -> list[Any]:
        """After a match, when the stream is read on: the API's own closing events, cut, and what belongs to no item."""
        if kind in OVER:
            return self._ended(event)
        of_item = any(get(event, name) is not None for name in ("output_index", "item_id", "item"))
        if kind not in (DELTA, TEXT_DONE, PART_DONE) and not of_item:
            return [event]
        index, part = self.outline.place_of(event)
        if get(event, "content_index") is None:
            part = self._place[1]
        if (index, part) == self._place and kind in (TEXT_DONE, PART_DONE, ITEM_DONE):
            self.open = [closing for closing in self.open if get(closing, "type") != kind]
            return [self._repeated(event, kind)[0]]
        return [event] if (index, part) < self._place else []

    def _ended(self, event: Any) -> list[Any]:
        """The end of the response, behind a stop. One that failed, or that does not repeat its output, is closed as if
        nothing had come."""
        closing, self.open = self.open, []
        response = get(event, "response")
        if cut_response(response, self._sent)[1] is not None or not closing:
            return [self._over(event)[0]]
        last = {**closing[-1], **only(event, "sequence_number")}
        usage = get(response, "usage")
        return [*closing[:-1], last if usage is None else put(last, usage, "response", "usage")]

    def whole(self, answer: Any) -> Any:
        cut, match = cut_response(answer, self.options)
        if match is not None:
            self.matches[0] = match
        return cut
