from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stopscan import StopMatch, StopScanner, StopSet
from stopscan.clients._objects import fields_of
from stopscan.clients._part import Part
from stopscan.finish import Finish


@dataclass(frozen=True, slots=True)
class Options:
    """What ``scan_events`` was asked for."""

    stops: StopSet
    include_stop: bool = False
    drain: bool = False
    whole: bool = False  # an event is a whole response, and ends every choice in it
    asked: Callable[[], int] = lambda: 1  # how many choices the request asks for


class Machine:
    """Makes of one stream's events those that its reader gets. It does no input or output of its own: the sync and
    the async iterator feed it, and close the source when it has ``ended``.
    """

    def __init__(self, event: Any, options: Options) -> None:
        self.fields = fields_of(event)
        self.options = options
        self.parts: dict[Any, Part] = {}
        self.matches: dict[int, StopMatch] = {}
        self.ended = False  # stops have fired and no choice is left

    def sole(self, event: Any) -> tuple[Any, str] | None:
        """The part to which an event brings text, and the text, if it brings nothing that ends the part. Most events do
        so, and are done with when the scanner gives the very text back. ``None`` where there is more to look at."""
        raise NotImplementedError

    def changed(self, event: Any, part: Part, text: str, safe: str) -> list[Any]:
        """What comes out for such an event when the scanner has made ``safe`` of its text."""
        raise NotImplementedError

    def read(self, event: Any) -> list[Any]:
        """What comes out for any other event."""
        raise NotImplementedError

    def end(self) -> list[Any]:
        """What comes out when the source has ended: held text, and closing events that never came."""
        raise NotImplementedError

    @property
    def held(self) -> dict[int, str]:
        """The text that each choice withholds."""
        raise NotImplementedError

    def feed(self, event: Any) -> list[Any] | None:
        """Returns what comes out for the next event of the source, ``None`` if it is the event itself and no more."""
        try:
            sole = self.sole(event)
        except (AttributeError, TypeError):  # null, or an object of another kind, where most events have one of theirs
            sole = None
        if sole is None:
            return self.read(event)
        place, text = sole
        part = self.parts.get(place)
        if part is None:
            part = self.part(place)
        elif part.over:
            return self.read(event)
        safe = part.feed(text)
        if safe is text and not part.held and part.scanner.match is None:
            return None
        return self.changed(event, part, text, safe)

    def part(self, place: Any) -> Part:
        part = Part(StopScanner(self.options.stops, include_stop=self.options.include_stop))
        self.parts[place] = part
        return part


def stopped(match: StopMatch) -> Finish:
    return Finish("stop_sequence", match.sequence, match.offset)
