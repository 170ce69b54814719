from __future__ import annotations

from typing import Any

from stopscan import StopMatch
from stopscan_clients._machines.machine import Machine, Part, never


class ClosingMachine(Machine):
    """A stream whose texts are closed by events of their own. A stop in one text ends them all."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.open: list[Any] = []  # after a match: the closing events that have not come out

    def rows(self, event: Any, text: str) -> list[Any]:
        """The tokens of an event, each with its place in the text."""
        return []

    def cut(self, event: Any, text: str, rows: list[Any]) -> Any:
        """The event with this text."""
        raise NotImplementedError

    def piece(self, event: Any, text: str, rows: list[Any]) -> Any:
        """An event of its own with this text, for the part of ``event``."""
        return self.cut(event, text, rows)

    def closing(self, event: Any, part: Part) -> list[Any]:
        """The events that close everything after ``event``, a text of the part that a stop has ended."""
        raise NotImplementedError

    def changed(self, event: Any, part: Part, text: str, safe: str) -> list[Any]:
        before = part.held
        rows = part.settle(safe, self.rows(event, text))
        part.source = event
        out = [event if safe == text and not before else self.cut(event, safe, rows)]
        return out if part.match is None else [*out, *self.matched(part.match, self.closing(event, part))]

    def flush(self, part: Part) -> list[Any]:
        held, rows = part.flush()
        return [self.piece(part.source, held, rows)] if held else []

    def matched(self, match: StopMatch, closing: list[Any]) -> list[Any]:
        self.matches[0] = match
        self.ended = True
        self.sole = never
        self.open = closing
        return [] if self.options.drain else self.end()

    def released(self) -> list[Any]:
        return [self.piece(part.source, *part.release()) for part in self.parts.values() if part.held]

    def end(self) -> list[Any]:
        if self.matches:
            out, self.open = self.open, []
            return out
        out = []
        for part in self.parts.values():
            out += self.flush(part)
            if part.match is not None:
                if part.source is not None:  # some text of it was touched
                    out += self.closing(part.source, part)
                return [*out, *self.matched(part.match, [])]
        return out
