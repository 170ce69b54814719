"""``WireFormat``: the description of an API as one row of a table. The state machine (machine.py) knows an API only
from its row, and has no code for single APIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from stopscan.finish import Finish, is_call
from stopscan_clients.beside import NOTHING, Beside
from stopscan_clients.paths import Path, counts, dotted, get, has, index, items, leaves, named, put


@dataclass(frozen=True)
class Text:
    """Where an event or a choice has its text. The value at this place is a string, or a list of pieces. Some of these
    pieces may have no text."""

    path: str
    when: tuple[str, str | bool] | None = None  # there is text only if this field of the event has this value


class Run(NamedTuple):
    """A text in an event. Neighbouring pieces of text are one run."""

    paths: tuple[Path, ...]
    text: str
    ended: bool  # whether a call or other content follows, which ends the text


class Ref(str):
    """The name of a value in the template of an event, such as ``place.0``. When an event is made from the template,
    the value replaces the name."""


class Memory:
    """Remembers facts of a stream, such as the usage, because the closing events repeat them. For some APIs, a subclass
    remembers more."""

    def __init__(self, api: WireFormat) -> None:
        self.api = api
        self.facts: dict[str, Any] = dict(api.default)

    def place(self, event: Any) -> Path:
        """Returns where in the answer an event belongs, such as (1, 0): the first content part of the second output.
        The numbers are in the fields that ``api.places`` lists."""
        inner = self.api.inner(event)
        return tuple([place for name in self.api.places if (place := index(get(inner, name))) is not None])

    def learn(self, event: Any, kind: str) -> None:
        """Remembers facts of an event, such as the usage. If a stop fires later, the closing events repeat these
        facts."""
        if kind in self.api.texts:
            return
        for name, (paths, pattern) in self.api.known.items():
            for path in paths:
                value = get(event, *dotted(path))
                if isinstance(value, dict) and pattern is not None:
                    known = {key: count for key, count in counts(value, {}).items() if count is not None}
                    known = {key: count for key, count in known.items() if re.search(pattern, key)}
                    self.facts[name] = {**self.facts.get(name, {}), **known}
                elif isinstance(value, str) and pattern is None:
                    self.facts[name] = value

    def made(self, template: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:
        """Returns an event made from ``template``. Each ``Ref`` names a fact, whose value replaces it. If there is no
        fact of that name, the field is left out."""
        return _filled(template, {**self.facts, **facts})

    def numbered(self, out: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns the output of the machine unchanged. For an API that numbers its events, a subclass numbers the
        events that the machine has made."""
        return out

    def message(self, passage: Any, opened: set[Path], write: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns values for the templates of the closing events, when a stop in ``passage`` has ended the message.
        Only subclasses have values to add."""
        return {}


def _filled(template: Any, facts: Mapping[str, Any]) -> Any:
    if isinstance(template, Ref):
        return facts.get(template)
    if not isinstance(template, Mapping):
        return template
    made = {key: _filled(value, facts) for key, value in template.items()}
    return {key: value for key, value in made.items() if value is not None or not isinstance(template[key], Ref)}


@dataclass(frozen=True, kw_only=True)
class WireFormat:
    name: str
    # How to recognize the events and answers of the API. The kind of an event is its ``type`` or its only key.
    kinds: tuple[str, ...] = ()  # prefixes of more kinds of events, which no field below lists
    signs: tuple[str, ...] = ()  # for events without kinds: each event has a value at one of these paths (``has``)
    answers: tuple[str, ...] = ()  # the paths by which a whole answer is recognized; empty: those in ``signs``
    kind_is_key: bool = False  # whether an event is a dict with its kind as the only key
    # Where an event has text.
    each: str | None = None  # the field with the choices; "" if the event is the only choice; None if events have kinds
    number: str = "index"  # the field with the index of a choice
    cumulative: bool = False  # whether each event has all of the text so far
    texts: Mapping[str | None, Text]  # by the kind of the event; the key is ``None`` if events have no kinds
    is_text: Callable[[Any], bool] = lambda piece: bool(get(piece, "type") == "text")
    key: str = "text"  # the field with the text of a piece
    is_content: Callable[[Any], bool] = lambda piece: False  # whether the piece ends the text before it
    calls: tuple[str, ...] = ()
    # What ends a text.
    words: tuple[str, ...] = ()  # the fields by which a choice says that it ends
    finished: Callable[[Any], Any] = lambda unit: True  # ``None`` if a choice goes on although one of ``words`` is set
    final: bool = True  # whether a choice gets no more text after its end
    # For each kind of event that begins a part: the path of a field, and the values that this field has if the part is
    # text.
    opens: Mapping[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    ends: tuple[str, ...] = ()  # kinds of events that end the parts to which they belong
    over: tuple[str, ...] = ()  # kinds of events that end the message
    repeats: Mapping[str, str] = field(default_factory=dict)  # kinds of events that repeat text: its path in the event
    # Fields that must be cut or dropped when the text is cut. Their paths begin at a choice or, if the API has no
    # choices, at an event.
    beside: Beside = NOTHING
    copies: tuple[str, ...] = ()  # fields that repeat the text so far: dropped if the text is changed
    # The fields that events may have from the event of the stop on: those that are listed in ``about``, ``usage`` and
    # ``names``, and those of the templates ``piece`` and ``closing``. All other fields are removed.
    about: tuple[str, ...] = ()  # fields of an event or an answer, but not those of its choices
    usage: tuple[str, ...] = ()  # more such fields, about the whole stream: events that the machine makes lack them
    names: tuple[str, ...] = ()  # fields of the choice in which the stop fired
    # The next fields are for events that the machine makes, either for held text or at a stop. A "made choice" is a
    # choice of one of these events.
    write: Callable[[Finish], Any]
    keeps: tuple[str, ...] = ()  # fields that a made choice or event copies from the last one that had text
    goes_on: Mapping[str, Any] = field(default_factory=dict)  # fields that say that a made choice has not ended
    text_at: str = ""  # the path of the text in a made choice, if ``texts`` has another path
    without_text: tuple[str, Any] | None = None  # what a made choice has instead of an empty text: a path and a value
    places: tuple[str, ...] = ()  # the fields, such as ``index``, that say to which part an event belongs
    piece: Mapping[str, Any] = field(default_factory=dict)  # template of an event with held text (if events have kinds)
    # The closing events. Each has a number and a template. The number says what the event closes: 0 is the message, 1
    # is the block or item, and 2 is the part of the item.
    closing: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    # For each name in a ``Ref``: the paths at which events have the value of this name, and a pattern. If the value is
    # a dict, only the keys that match the pattern are kept. If the value is a string, the pattern is ``None``.
    known: Mapping[str, tuple[tuple[str, ...], str | None]] = field(default_factory=dict)
    default: Mapping[str, Any] = field(default_factory=dict)
    memory: type[Memory] = Memory
    # Whole answers.
    whole: WireFormat | None = None  # the row for whole answers with choices, if they need a row of their own
    answer: str = ""  # if there are no choices: the path of the pieces of text, with ``*`` for each element of a list
    beside_answer: Beside = NOTHING
    beside_piece: Beside = NOTHING  # the fields beside the text, in the piece in which a stop fired
    settled: tuple[str, str] = ("", "")  # a field of the objects around this piece, and its value after a stop
    # Requests.
    path: str = ""  # a pattern for the paths of requests; the first row with a fitting pattern is used
    stops: str = "stop"
    choices: tuple[str, ...] = ("n",)  # the fields in which a request says how many choices it wants
    done: bool = False  # the API's server-sent events end with ``[DONE]``
    limits: str = ""  # the API's name in ``native.LIMITS``, if not ``name``; without an entry, no stops are sent
    errors: str = ""  # if errors have the form of another API: the name of that API

    def kind(self, event: Any) -> str | None:
        kind = next(iter(event), None) if self.kind_is_key else event.get("type")
        return kind if isinstance(kind, str) else None

    def inner(self, event: Any) -> Any:
        """Returns the object that has the fields of ``event``. If ``kind_is_key`` is true, this object is the value of
        the event's only key. Otherwise it is the event."""
        return next(iter(event.values()), None) if self.kind_is_key else event

    @cached_property
    def text_path(self) -> Path:
        """The path at which a choice or event has its text, or a list of pieces of the text."""
        return dotted(next(iter(self.texts.values())).path)

    @cached_property
    def all_kinds(self) -> frozenset[Any]:
        return frozenset({*self.opens, *self.ends, *self.over, *self.texts})

    @cached_property
    def names_of_events(self) -> Mapping[Any, Any]:
        return named((*self.about, *self.usage, *((self.each,) if self.each else ())))

    @cached_property
    def names_of_choices(self) -> Mapping[Any, Any]:
        of_event = () if self.each else (*self.about, *self.usage)  # the event is the choice
        return named((*self.names, *self.goes_on, *of_event))

    def tells_usage(self, event: Any) -> bool:
        return any(get(event, *dotted(path.partition(".#")[0])) for path in self.usage)

    def knows(self, event: Any) -> bool:
        if self.each is not None:
            return any(has(event, sign) for sign in self.signs)
        kind = self.kind(event)
        return kind is not None and (kind in self.all_kinds or kind.startswith(self.kinds))

    def units(self, event: Any) -> list[Any]:
        return [unit for unit in items(event.get(self.each)) if isinstance(unit, dict)] if self.each else [event]

    def texts_in(self, tree: Any, path: Path) -> Iterator[tuple[Path, str]]:
        """Yields each text at ``path`` in ``tree``, with the path that leads to the text. At ``path`` there is a
        string, or a list of pieces."""
        for at, piece in leaves(tree, path, strings=True):
            if isinstance(piece, str):
                yield at, piece
            elif self.is_text(piece) and isinstance(get(piece, self.key), str):
                yield (*at, self.key), piece[self.key]

    def ends_choice(self, unit: Any) -> bool:
        return any(get(unit, *dotted(word)) for word in self.words) and self.finished(unit) is not None

    def ended(self, unit: Any, match: Any) -> Any:
        """Returns the choice with the fields that report a stop, such as the finish reason."""
        for path, value in self.write(Finish.of(match)).items():
            unit = put(unit, value, *dotted(path))
        return unit

    def begins_text(self, event: Any, kind: Any) -> bool:
        path, values = self.opens.get(kind, ("", ()))
        return get(event, *dotted(path)) in values

    def runs(self, unit: Any, kind: Any = None) -> list[Run]:
        """Returns the texts of ``unit``, which is a choice or an event of the kind ``kind``, in order."""
        text = self.texts.get(kind)
        if text is None or (text.when is not None and get(unit, *dotted(text.when[0])) != text.when[1]):
            return []
        at = dotted(text.path)
        value = get(unit, *at)
        called = any(_has_call(get(unit, *dotted(path))) for path in self.calls)
        if isinstance(value, dict) and self.is_text(value):
            at, value = (*at, self.key), value.get(self.key)
        if isinstance(value, list):
            return [*self._pieces(value, at, called)]
        if isinstance(value, str) and value:
            return [Run((at,), value, called)]
        return [Run((), "", True)] if called else []

    def _pieces(self, pieces: list[Any], at: Path, called: bool) -> Iterator[Run]:
        paths: list[Path] = []
        text = ""
        for i, piece in enumerate(pieces):
            if isinstance(piece, dict) and self.is_text(piece) and isinstance(piece.get(self.key), str):
                paths.append((*at, i, self.key))
                text += piece[self.key]
            elif isinstance(piece, dict) and self.is_content(piece):
                yield Run(tuple(paths), text, True)
                paths, text = [], ""
        if text or called:
            yield Run(tuple(paths), text, called)


def _has_call(value: Any) -> bool:
    return any(map(is_call, value)) if isinstance(value, list) else is_call(value)
