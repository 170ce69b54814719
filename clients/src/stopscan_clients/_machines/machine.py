from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from stopscan import StopMatch, StopScanner, StopSet
from stopscan_clients._json import get
from stopscan.finish import Finish

Fields: TypeAlias = Callable[[Any], dict[str, Any]]  # an event or a part of it as a dict: at most what an object has
Sole: TypeAlias = Callable[[Any], "tuple[Any, str] | None"]
Token = tuple[int, Any]  # where it begins, in code points, and what the API says of it

# What the first look at an event raises if it has not the form of most: something is null or missing, or the text has
# half of a surrogate pair.
OTHERWISE = (AttributeError, KeyError, TypeError, ValueError)

SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Options:
    """What a stream or an answer is to be cut by."""

    stops: StopSet
    include_stop: bool = False
    drain: bool = False
    begin: Mapping[str, Any] = field(default_factory=dict)  # the options of a scanner that say where the text begins
    choices: Callable[[], int] = lambda: 1  # how many are expected
    echoed: Callable[[int], int] = lambda index: 0  # with how many characters of the prompt a choice begins
    sent: bool = False  # the text to truncate has gone out before: every copy of a loop is in it

    def scanner(self) -> StopScanner:
        return StopScanner(self.stops, include_stop=self.include_stop, **self.begin)

    def truncate(self, text: str, echoed: int = 0) -> tuple[str, StopMatch | None]:
        text = clean(text)
        kept, match = self.stops.truncate(text[echoed:], include_stop=self.include_stop, **self.begin)
        if match is not None and match.period is not None and self.sent:
            kept = text[echoed:][: match.end]
        if echoed:
            kept = text[:echoed] + kept
            match = match and StopMatch(match.sequence, echoed + match.offset, match.pattern, match.period)
        return kept, match


def clean(text: str) -> str:
    """Returns the text with U+FFFD for each lone surrogate, which JSON can spell and UTF-8 cannot."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


class Part:
    """One text of a stream: a choice's, a content block's. It has the scanner, and for as long as text is held also
    the tokens (logprobs) of that text and the event that it came in, to copy when the text comes by itself.

    A token comes with the first of its characters, as in ``TokenScanner.tokens_kept``.
    """

    __slots__ = ("closed", "feed", "held", "over", "rows", "said", "scanner", "source", "tokens")

    def __init__(self, scanner: StopScanner) -> None:
        self.scanner = scanner
        self.feed = scanner.feed
        self.held = 0  # how many characters
        self.tokens: list[Token] = []  # begins are counted from the first held character
        self.source: Any = None
        self.over = False  # its stop has fired
        self.closed = False  # the API's own closing event has come
        self.said: list[str] | None = None  # what was fed, and the tokens of all of it, where its API says it again
        self.rows: list[Any] = []

    @property
    def match(self) -> StopMatch | None:
        return self.scanner.match

    def pass_over(self, characters: int) -> None:
        """Does not scan so many of its first characters."""

        def feed(text: str) -> str:
            nonlocal characters
            passed, rest = text[:characters], text[characters:]
            characters -= len(passed)
            if not characters:
                self.feed = self.scanner.feed
            return self.scanner.bypass(passed) + (self.scanner.feed(rest) if rest else "")

        if characters:
            self.feed = feed  # type: ignore[assignment]  # nothing here is unarmed

    def settle(self, safe: str, tokens: Iterable[Token]) -> list[Any]:
        """Returns the tokens that come with ``safe``, which the scanner gave for a text with ``tokens``."""
        tokens = [*self.tokens, *((self.held + begin, token) for begin, token in tokens)]
        self.held, out = len(self.scanner.held), len(safe)
        self.tokens = [(begin - out, token) for begin, token in tokens if begin >= out]
        return [token for begin, token in tokens if begin < out]

    def flush(self) -> tuple[str, list[Any]]:
        """Returns the held text and its tokens: the part is over, or something else comes in between."""
        tokens, self.held, self.tokens = self.tokens, 0, []
        return self.scanner.flush(), [token for _, token in tokens]

    def release(self) -> tuple[str, list[Any]]:
        """``flush`` of a part that breaks off: nothing confirms a stop."""
        tokens, self.held, self.tokens = self.tokens, 0, []
        return self.scanner.bypass(""), [token for _, token in tokens]


class Converter(Protocol):
    """What a machine asks where events are objects: their JSON, and objects of what it has made of that."""

    python_names: bool
    fields: tuple[Fields, Fields] | None  # how to get at them; None until the first text was cut for trial

    def load(self, event: Any, machine: Machine) -> Any: ...
    def give(self, event: Any, json: Any, out: list[Any]) -> list[Any]: ...
    def made(self, json: Any) -> Any: ...


def itself(event: Any) -> Any:
    return event


def never(event: Any) -> None:
    return None


class Machine:
    """Makes of one stream's events those that its reader gets. Events are parsed JSON; the machine knows nothing of
    bytes, connections or classes. Who feeds it closes the source when it has ``ended``.

    Where events are objects, ``objects`` converts those that have to be looked at: most of them never are.
    """

    API: ClassVar[str]

    def __init__(self, options: Options, objects: Converter | None = None) -> None:
        self.options = options
        self.objects = objects
        stops = options.stops
        # Whether a text that comes back whole has no stop in it: of a hidden one a character is missing.
        self._all_hidden = not (options.include_stop or stops.visible or stops.repeat is not None)
        self.parts: dict[Any, Part] = {}
        self.matches: dict[int, StopMatch] = {}
        self.ended = False  # stops have fired and no choice is left
        # Fields are called as in the Python client, not as on the wire.
        self.python_names = objects is not None and objects.python_names
        fields = (itself, itself) if objects is None else objects.fields
        self.sole: Sole = never if fields is None else self.reader(*fields)

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        """Returns a function of an event: the part to which the event brings text, and the text, if the event brings
        nothing that ends the part. Most events do so, and are done with when the scanner gives the very text back. For
        the others the function gives ``None`` or raises one of ``OTHERWISE``.

        ``top`` gives the fields of an event, ``below`` those of what is in it.
        """
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

    def released(self) -> list[Any]:
        """The held text, where the stream has failed: that confirms no stop."""
        raise NotImplementedError

    def broken_off(self) -> list[Any]:
        """What comes out when the stream has failed: behind the stops, the closing events; else the held text."""
        return self.end() if self.ended else self.released()

    def rest(self) -> list[Any]:
        """``end``, as objects where the events are objects."""
        return self.end() if self.objects is None else [self.objects.made(json) for json in self.end()]

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
                part = self.parts.get(place) or self._begun(place)
                safe = part.feed(text)
        except OTHERWISE:
            part = None
        if part is None:
            return self._looked_at(event)
        if part.said is not None:
            part.said.append(text)
        if safe is text and not part.held and (self._all_hidden or part.scanner.match is None):
            return None
        return self._looked_at(event) if part.over else self._looked_at(event, part, text, safe)

    def _looked_at(self, event: Any, part: Part | None = None, text: str = "", safe: str = "") -> list[Any] | None:
        json, sole = event, self.sole
        if self.objects is not None:
            json = self.objects.load(event, self)
            if self.sole is not sole:  # the first text: from now on most events are read as they are
                return self.feed(event)
        if part is not None:
            out = self.changed(json, part, text, safe)
        else:
            out = [*self.broken_off(), json] if _is_error(json) else self.read(json)
        return out if self.objects is None else self.objects.give(event, json, out)

    def _begun(self, place: Any) -> Part:
        if any(type(index) is not int for index in (place if isinstance(place, tuple) else (place,))):
            raise TypeError("a part is called otherwise than in the API")
        return self.part(place)

    def part(self, place: Any) -> Part:
        return self.parts.setdefault(place, Part(self.options.scanner()))


def _is_error(event: Any) -> bool:
    """Whether this is an event of a stream that has failed."""
    return get(event, "type") == "error" or (bool(get(event, "error")) and not get(event, "choices"))


def stopped(match: StopMatch) -> Finish:
    if match.period is not None:
        return Finish("repetition", offset=match.offset)
    return Finish("stop_sequence", match.sequence, match.offset)


def fates(out: Iterable[Any], source: Any) -> Iterator[tuple[Any, Literal["same", "cut", "new"]]]:
    """Returns the events that a machine gave for ``source``, each with what it is: the source itself; the source cut,
    so that what else stands with it is still true; a new one."""
    found = False
    for event in out:
        # Bedrock's events have their name for a key.
        near = get(event, "type") == get(source, "type") and not event.keys().isdisjoint(source)
        yield event, "same" if event is source else "cut" if near and not found else "new"
        found = found or event is source or near
