from __future__ import annotations

from typing import Any

from stopscan import StopMatch
from stopscan.clients._logprobs import spelled
from stopscan.clients._machine import Machine, Options, stopped
from stopscan.clients._objects import get, replace, sibling
from stopscan.clients._part import Part
from stopscan.clients._responses_cut import TEXT_DONE, cut_item, cut_part, cut_response
from stopscan.clients._responses_outline import COMPLETED, ITEM_DONE, PART_DONE, Outline, Place, of_item
from stopscan.finish import Finish, to_responses

DELTA = "response.output_text.delta"
OVER = (COMPLETED, "response.incomplete", "response.failed", "response.cancelled")


class Responses(Machine):
    """OpenAI's Responses. A text comes in deltas and then four times whole, in the events that close the text, its
    part, its item and the response. A stop in one text ends the response."""

    def __init__(self, event: Any, options: Options) -> None:
        super().__init__(event, options)
        self.outline = Outline()
        self._said: dict[Place, tuple[list[str], list[Any]]] = {}  # the deltas of open texts, and their logprobs
        self._place: Place = (0, 0)  # where a stop fired
        self._open: list[Any] = []  # the closing events after it that have not come out

    def sole(self, event: Any) -> tuple[Any, str] | None:
        told = self.fields(event)
        if self.matches or told.get("type") != DELTA:
            return None
        text = told.get("delta")
        if not text:
            return None
        if not text.isascii():
            text.encode()  # a lone surrogate is refused before anything of it is kept
        index = told.get("output_index")
        place = self.outline.place_of(event) if index is None else (index, told.get("content_index") or 0)
        deltas, rows = self._said.get(place) or self._said.setdefault(place, ([], []))
        deltas.append(text)
        rows += told.get("logprobs") or ()
        return place, text

    def read(self, event: Any) -> list[Any]:
        kind = get(event, "type")
        if self.matches:
            return self._after(event, kind)
        if kind in (TEXT_DONE, PART_DONE, ITEM_DONE, *OVER):
            return self._done(event, kind)
        self.outline.learn(event, kind)
        return [event]

    def changed(self, event: Any, part: Part, text: str, safe: str) -> list[Any]:
        before = part.held
        rows = part.settle(safe, spelled(get(event, "logprobs") or (), text))
        part.source = event
        out = [event if safe == text and not before else self._copy(event, safe, rows)]
        if part.match is not None:
            place = self.outline.place_of(event)
            out += self._matched(part.match, place, self._stopped(part, event, place))
        return out

    def _stopped(self, part: Part, event: Any, place: Place) -> list[Any]:
        """The events that close the response after ``event``, a delta of the text that a stop has ended."""
        assert part.match is not None
        cut, _ = cut_part(self._whole(place), self.options)
        return self.outline.text_done(event, place, cut, stopped(part.match))

    def _whole(self, place: Place) -> dict[str, Any]:
        deltas, rows = self._said[place]
        return {"type": TEXT_DONE, "text": "".join(deltas), "logprobs": rows}

    def _copy(self, event: Any, text: str, rows: list[Any]) -> Any:
        fields: dict[str, Any] = {"delta": text}
        if get(event, "logprobs") is not None:
            fields["logprobs"] = rows
        return replace(event, **fields)

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
        return [*held, cut, *self._matched(match, place, self._rest(cut, kind, place, stopped(match)))]

    def _rest(self, cut: Any, kind: str, place: Place, finish: Finish) -> list[Any]:
        """The events that close the response after this one."""
        if kind == TEXT_DONE:
            return self.outline.part_done(cut, place, cut, finish)
        if kind == PART_DONE:
            return self.outline.item_done(cut, place, get(cut, "part"), finish)
        return self.outline.completed(cut, place[0], get(cut, "item"), finish) if kind == ITEM_DONE else []

    def _repeated(self, event: Any, kind: str) -> tuple[Any, StopMatch | None]:
        """The event up to the stop that is in the text it repeats."""
        if kind == TEXT_DONE:
            return cut_part(event, self.options)
        if kind == PART_DONE:
            name, (cut, match) = "part", cut_part(get(event, "part"), self.options)
        elif kind == ITEM_DONE:
            name, (cut, match) = "item", cut_item(get(event, "item"), self.options)
        else:
            return self._over(event)
        return event if match is None else replace(event, **{name: cut}), match

    def _over(self, event: Any) -> tuple[Any, StopMatch | None]:
        response, match = cut_response(get(event, "response"), self.options)
        match = match or self.matches.get(0)
        if match is None:
            return event, None
        response = replace(response, **to_responses(stopped(match)))
        if get(event, "type") == COMPLETED:
            return replace(event, response=response), match
        number = get(event, "sequence_number")
        return sibling(
            event, "ResponseCompletedEvent", type=COMPLETED, response=response, sequence_number=number
        ), match

    def _close(self, event: Any, kind: str) -> list[Any]:
        """The held text of the texts that this event closes."""
        out = []
        for place in self._closed(event, kind):
            out += self._flush(self.parts[place])
            self._said.pop(place, None)
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

    def _after(self, event: Any, kind: str) -> list[Any]:
        """After a match, when the stream is read on: the API's own closing events, cut, and what belongs to no item."""
        if kind in OVER:
            self._open = []
            return [self._over(event)[0]]
        if kind not in (DELTA, TEXT_DONE, PART_DONE) and not of_item(event):
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
                    out += self._stopped(part, part.source, place)
                return [*out, *self._matched(part.match, place, [])]
        return out

    @property
    def held(self) -> dict[int, str]:
        held = "".join(part.scanner.held for part in self.parts.values())
        return {0: held} if held else {}
