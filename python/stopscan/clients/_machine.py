from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from stopscan import StopMatch, StopScanner, StopSet
from stopscan.clients._part import Part, clean
from stopscan.finish import Finish

Fields = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Options:
    """What a stream or an answer is to be cut by."""

    stops: StopSet
    include_stop: bool = False
    drain: bool = False
    begin: Mapping[str, Any] = field(default_factory=dict)  # the options of a scanner that say where the text begins
    choices: Callable[[], int] = lambda: 1  # how many are expected
    sent: bool = False  # the text to truncate has gone out before: every copy of a loop is in it

    def scanner(self) -> StopScanner:
        return StopScanner(self.stops, include_stop=self.include_stop, **self.begin)

    def truncate(self, text: str) -> tuple[str, StopMatch | None]:
        text = clean(text)
        kept, match = self.stops.truncate(text, include_stop=self.include_stop, **self.begin)
        if match is not None and match.period is not None and self.sent:
            kept = text[: match.end]
        return kept, match


def parsed(event: Any) -> Any:
    return event


class Machine:
    """Makes of one stream's events those that its reader gets. Events are parsed JSON; the machine knows nothing of
    bytes, connections or classes. Who feeds it closes the source when it has ``ended``.

    ``fields`` gives the fields of a part of an event as a dict, and ``load`` the JSON of an event, for those whose
    events are objects: then most of them are never made into JSON.
    """

    API: ClassVar[str]

    def __init__(self, options: Options, fields: Fields = parsed, load: Callable[[Any], Any] = parsed) -> None:
        self.options = options
        self.fields = fields
        self.load = load
        self.parts: dict[Any, Part] = {}
        self.matches: dict[int, StopMatch] = {}
        self.ended = False  # stops have fired and no choice is left
        self.python_names = False  # fields are called as in the Python client, not as on the wire

    def sole(self, event: Any) -> tuple[Any, str] | None:
        """The part to which an event brings text, and the text, if it brings nothing that ends the part. Most events do
        so, and are done with when the scanner gives the very text back. ``None`` where there is more to look at."""
        raise NotImplementedError

    def peek(self, event: Any) -> tuple[Any, str] | None:
        """``sole``, for an event that is not fed yet."""
        return self.sole(event)

    def noting(self, place: Any) -> Callable[[str], None] | None:
        """What must be told of a text that was fed to the part past ``feed``."""
        return None

    def changed(self, event: Any, part: Part, text: str, safe: str) -> list[Any]:
        """What comes out for such an event when the scanner has made ``safe`` of its text."""
        raise NotImplementedError

    def read(self, event: Any) -> list[Any]:
        """What comes out for any other event."""
        raise NotImplementedError

    def end(self) -> list[Any]:
        """What comes out when the source has ended: held text, and closing events that never came."""
        raise NotImplementedError

    def whole(self, answer: Any) -> Any:
        """An answer that came at once, up to the stop; the very dict if there is none."""
        raise NotImplementedError

    @property
    def held(self) -> dict[int, str]:
        """The text that each choice withholds."""
        held = "".join(part.scanner.held for part in self.parts.values())
        return {0: held} if held else {}

    def feed(self, event: Any) -> list[Any] | None:
        """Returns what comes out for the next event of the source, ``None`` if it is the event itself and no more."""
        part, text, safe = None, "", ""
        try:
            sole = self.sole(event)
            if sole is not None:
                place, text = sole
                part = self.parts.get(place) or self.part(place)
                safe = "" if part.over else part.feed(text)
        except (AttributeError, KeyError, TypeError, UnicodeEncodeError):
            part = None  # null, or another form where most events have one of theirs; half of a surrogate pair
        if part is None or part.over:
            return self.read(self.load(event))
        if safe is text and not part.held and part.scanner.match is None:
            return None
        return self.changed(self.load(event), part, text, safe)

    def part(self, place: Any) -> Part:
        part = Part(self.options.scanner())
        self.parts[place] = part
        return part


def stopped(match: StopMatch) -> Finish:
    if match.period is not None:
        return Finish("repetition", offset=match.offset)
    return Finish("stop_sequence", match.sequence, match.offset)
