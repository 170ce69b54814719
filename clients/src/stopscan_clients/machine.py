"""The state machine that cuts a stream of events at stops. It works on parsed JSON, does no I/O, and takes everything
about an API from its row in ``rows.TABLE``.

Its methods return a list of pairs: an event for the reader, which may be cut, and the ``source`` that the caller gave
with the uncut event. The ``source`` is ``None`` only for an event that the machine has made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from stopscan import StopMatch, StopScanner, StopSet
from stopscan.finish import Finish
from stopscan_clients.api import Api, Run
from stopscan_clients.beside import Token
from stopscan_clients.paths import Path, dotted, get, index, items, members, named, only, put, without
from stopscan_clients.rows import PINGS, api_of_event

Out: TypeAlias = list[tuple[Any, Any]]

SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Returns the text with U+FFFD for each lone surrogate, which JSON can spell and UTF-8 cannot."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


def is_error(event: Any) -> bool:
    """Returns whether the event reports that the stream has failed."""
    return event.get("type") == "error" or (bool(event.get("error")) and not event.get("choices"))


@dataclass(frozen=True)
class Options:
    """The stops and options by which a stream or an answer is cut."""

    stops: StopSet
    include_stop: bool = False
    drain: bool = False
    begin: Mapping[str, Any] = field(default_factory=dict)  # the scanner's options for the region at the start
    choices: int = 1  # the number of choices that are expected
    echoed: Callable[[int], int] = lambda index: 0  # the length of the echoed prompt at the start of a choice

    def __post_init__(self) -> None:
        if type(self.drain) is not bool:
            raise TypeError(f"drain must be True or False, not {self.drain!r}")

    def scanner(self) -> StopScanner:
        return StopScanner(self.stops, include_stop=self.include_stop, **self.begin)

    def truncate(self, text: str) -> tuple[str, StopMatch | None]:
        return self.stops.truncate(text, include_stop=self.include_stop, **self.begin)


class Part:
    """One text of a stream: that of a choice or of a content block. Keeps the held text and its tokens."""

    def __init__(self, place: Path, options: Options, matches: dict[int, StopMatch], repeated: bool) -> None:
        self.place = place  # the index of the choice, then the indexes of the part in the choice's message
        self._repeated = repeated  # later events repeat the text and the entries of its tokens
        self.scanner = options.scanner()
        self.match: StopMatch | None = None
        self.held = ""
        self.said: list[str] = []  # the texts that were sent
        self.rows: list[Any] = []  # the entries of the tokens of the texts that were sent, if later events repeat them
        self.event: Any = None  # the event with the last text of the part; `unit` is the choice in that event
        self.unit: Unit | None = None
        self.finished = False  # the API has ended the part
        self.seen = 0  # the length of the text so far, if events repeat it
        self.echoed = options.echoed(place[0])  # remaining characters of the prompt, which are not scanned
        self._matches, self._options = matches, options
        self._tokens: list[Token] = []  # the tokens of the held text, with offsets in it

    @property
    def unsettled(self) -> bool:
        """Whether it matters if the text ends here: text is held, or a pattern would match at the end."""
        visible = self._options.include_stop and self._options.stops.patterns
        if self.held or not visible or self.match is not None:
            return self.held != ""
        ended = self.scanner.copy()
        ended.flush()
        return ended.match is not None

    def within(self, place: Path) -> bool:
        """Returns whether an event with this place may belong to the part: whether ``place`` is a prefix of the
        part's place."""
        return self.place[1 : 1 + len(place)] == place

    def feed(self, text: str, tokens: Sequence[Token] = (), fed: str | None = None) -> tuple[str, list[Any]]:
        """Returns the safe text and its tokens. ``fed``: what the scanner returned, if it has read ``text`` already."""
        safe = self._safe(text) if fed is None else fed
        if not (tokens or self._tokens):  # the usual case
            return self._out(safe, [])
        tokens = [*self._tokens, *((len(self.held) + begin, token) for begin, token in tokens)]
        self._tokens = [(begin - len(safe), token) for begin, token in tokens if begin >= len(safe)]
        return self._out(safe, [token for begin, token in tokens if begin < len(safe)])

    def _safe(self, text: str) -> str:
        if not self.echoed:
            return self.scanner.feed(text)
        passed, text = text[: self.echoed], text[self.echoed :]
        self.echoed -= len(passed)
        return self.scanner.bypass(passed) + self.scanner.feed(text)

    def flush(self, confirms: bool = True) -> tuple[str, list[Any]]:
        """Returns the held text and its tokens. ``confirms``: the text is complete and did not break off, so that a
        pattern such as ``END$`` may match at its end."""
        tokens, self._tokens = self._tokens, []
        safe = self.scanner.flush() if confirms else self.scanner.bypass("")
        return self._out(safe, [token for _, token in tokens])

    def _out(self, text: str, rows: list[Any]) -> tuple[str, list[Any]]:
        self.held, self.match = self.scanner.held, self.scanner.match
        if self.match is not None:
            self._matches[self.place[0]] = self.match
        if text:
            self.said.append(text)
        self.rows += rows if self._repeated else ()
        return text, rows


@dataclass(slots=True)
class Unit:
    """A choice of an event, or an event with a kind, with the safe part of each of its texts."""

    json: Any
    runs: list[Run]
    part: Part
    finished: bool = False
    behind: bool = False  # its text is after a stop
    outs: list[str] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)  # the entries of the tokens, as the event had them

    @property
    def text(self) -> str:
        return self.runs[0].text if len(self.runs) == 1 else "".join(run.text for run in self.runs)


class Machine:
    """Takes the events of an API's stream, and returns those to pass on. When ``ended`` is true, the caller closes the
    stream."""

    _PART = Part

    def __init__(self, api: Api, options: Options, matches: dict[int, StopMatch] | None = None) -> None:
        self.api, self.options, self._memory = api, options, api.memory(api)
        self.matches = {} if matches is None else matches
        self.ended = False  # stops have ended all choices
        self.parts: dict[Path, Part] = {}
        self.current: Part | None = None  # the part of the last text
        self._source: Any = None  # what the caller gave with the event that is read now
        self._queue: Out = []  # events that wait for later ones
        self._ending: Any = None  # about a closing event that waits, because the next event may bring more text
        self._left: dict[int, Part] = {}  # with `drain`: parts whose closing events have not been sent yet

    @property
    def held(self) -> dict[int, str]:
        """The held text of each choice."""
        held: dict[int, str] = {}
        for (choice, *_), part in self.parts.items():
            if part.held:
                held[choice] = held.get(choice, "") + part.held
        return held

    @property
    def calm(self) -> bool:
        """Whether nothing is held and no stop has fired. Then an event that differs from the last one only in its text
        passes unchanged, as the last one did, if the new text is safe."""
        part = self.current
        return part is not None and not (part.held or part.echoed or self._queue or self.matches)

    def sole(self, event: Any) -> tuple[Path, str] | None:
        """Returns the path of the text in an unchanged event, and the text, if the event brings nothing else.

        Returns ``None`` if the event has several texts, tokens or calls, begins a part, or ends a choice.
        """
        api, part = self.api, self.current
        if part is None or part.unit is None or part.event is not event or api.cumulative:
            return None
        unit, (run, *others) = part.unit, part.unit.runs
        several = others or len(run.paths) != 1 or len(api.units(event)) != 1
        if several or run.ended or unit.sent or unit.finished or api.kind(event) in api.opens:
            return None
        return ((api.each, 0) if api.each else ()) + run.paths[0], run.text

    def passes(self, other: Any, source: Any) -> Out:
        """Returns the output for a comment or a ping, which keeps its place among the events."""
        if not self._queue:
            return [(other, source)]
        self._queue.append((other, source))
        return []

    def feed(self, event: Any, source: Any, fed: str | None = None) -> Out:
        """Returns the output for the next event. ``fed``: what the scanner of the current part returned, if it has read
        the event's text already."""
        self._source = source
        if is_error(event):
            return [*self.end(None), *self._memory.numbered([(event, source)])]
        if event.get("type") in PINGS:
            return self.passes(only(event, self.api.names_of_events) if self.matches else event, source)
        return self._memory.numbered(self._read(event, fed))

    def _read(self, event: Any, fed: str | None) -> Out:
        raise NotImplementedError

    def end(self, confirms: bool | None = False) -> Out:
        """Returns the output at the source's end: held text, and the closing events that `drain` has put off.

        ``confirms`` says in which parts patterns such as ``END$`` may match at the end. ``True``: in every part.
        ``False``: only in parts that the API has ended, because the stream may have broken off. ``None``: in no part,
        because the source has failed.
        """
        out = self._resolved(set(), confirms is not None) if self._ending else []
        for part in [*self.parts.values()]:
            if part.place[0] not in self.matches and part.unsettled:
                flushed = self._flushed(part, confirms is not None and (confirms or part.finished))
                out += [*self._released(), *flushed] if part.match is None else self._stopped(part, flushed)
        out += self._released()
        for part in [*self._left.values()]:
            out += self._closings(part)
        return self._memory.numbered(out)

    def _resolved(self, goes_on: set[Path], confirms: bool = True) -> Out:
        """Returns the output for the closing event that waits (``_ending``), with the held text of its parts. The parts
        in ``goes_on`` keep their held text, because more of their text has come."""
        raise NotImplementedError

    def _stopped(self, part: Part, out: Out) -> Out:
        """Returns ``out`` and the closing events of a stop. With `drain`, the closing events come when the API ends the
        choice."""
        if self.options.drain:
            self._left[part.place[0]] = part
            return out
        return out + self._closings(part)

    def _closings(self, part: Part) -> Out:
        """Returns the closing events at the stop of this part."""
        raise NotImplementedError

    def _released(self) -> Out:
        queue, self._queue = self._queue, []
        return queue

    def _flushed(self, part: Part, confirms: bool = True) -> Out:
        text, rows = part.flush(confirms)
        return [(self._piece(part, text, rows), None)] if text else []

    def part(self, place: Path) -> Part:
        if place not in self.parts:
            self.parts[place] = self._PART(place, self.options, self.matches, bool(self.api.repeats))
        return self.parts[place]

    def _scan(self, unit: Unit, event: Any, early: Out, fed: str | None = None) -> None:
        """Feeds the texts of a unit to its part, up to a stop. Events with held text that must come before ``event``
        are added to ``early``."""
        part = self.current = unit.part
        tokens = self.api.beside.tokens.read(unit.json, unit.text)
        unit.sent = [row for _, row in tokens]
        if unit.text:
            part.event, part.unit = event, unit
        elif not unit.runs and tokens and part.held:  # tokens of half a character: they wait with the held text
            part.feed("", tokens)
        elif not unit.runs:
            unit.rows = unit.sent
        begin = 0
        for run in unit.runs:
            end = begin + len(run.text)
            mine = [(place - begin, row) for place, row in tokens if begin <= place < end] if tokens else ()
            safe, rows = part.feed(clean(run.text), mine, fed)
            begin = end
            unit.rows += rows
            unit.outs.append(safe)
            if run.ended and part.match is None:
                self._end_text(unit, early)
            if part.match is not None:
                break

    def _end_text(self, unit: Unit, early: Out, confirms: bool = True) -> None:
        """Flushes the held text. Adds it to the unit's last text or, if the unit has no text, adds an event with the
        held text to ``early``."""
        rest, rows = unit.part.flush(confirms)
        if rest and unit.outs and unit.runs[len(unit.outs) - 1].paths:
            unit.outs[-1] += rest
            unit.rows += rows
        elif rest:
            early.append((self._piece(unit.part, rest, rows), None))

    def _edited(self, unit: Unit) -> Any:
        """Returns the unit with only its safe text. If a stop fired in it, everything after the stop is removed."""
        part, new, api = unit.part, unit.json, self.api
        if api.cumulative or unit.outs != [run.text for run in unit.runs]:
            pieces = [*items(get(new, *api.text_path))]  # copied once, not for each piece
            for run, out in zip(unit.runs, unit.outs, strict=False):
                out, text = ("".join(part.said), get(new, *api.text_path)) if api.cumulative else (out, run.text)
                for path in run.paths if out != text else ():
                    if path[:-2] == api.text_path:
                        size = len(out) if path is run.paths[-1] else len(pieces[path[-2]][path[-1]])
                        pieces[path[-2]], out = put(pieces[path[-2]], out[:size], path[-1]), out[size:]
                    else:
                        new = put(new, out, *path)
            new = put(new, pieces, *api.text_path) if pieces else new
            for copy in api.copies:
                new = without(new, *dotted(copy))
        if unit.rows != unit.sent:
            new = api.beside.tokens.write(new, unit.rows)
        return new if part.match is None else self._cut(new, unit, part)

    def _cut(self, new: Any, unit: Unit, part: Part) -> Any:
        """Returns the unit in which the stop fired with only the fields that the row names."""
        api, at = self.api, self.api.text_path
        paths = unit.runs[len(unit.outs) - 1].paths if unit.outs else ()
        behind = len(part.scanner.unused)
        while len(paths) > 1 and behind >= (size := len(get(unit.json, *paths[-1]))):  # a piece behind the stop
            paths, behind = paths[:-1], behind - size
        new = only(new, api.names_of_choices, paths[-1] if paths else at)
        pieces = get(new, *at)
        if isinstance(pieces, list):
            kept = [piece for piece in pieces if not api.is_text(piece) or get(piece, "text")] if paths else []
            new = put(new, kept, *at)
        return api.beside.cut(new, "".join(part.said))

    def _piece(self, part: Part, text: str, rows: list[Any]) -> Any:
        """Returns an event that the machine itself makes, with held text of the part and the entries of its tokens."""
        raise NotImplementedError


class Choices(Machine):
    """A stream whose events have the next text of one or more choices. A choice says in a field that it ends."""

    def _read(self, event: Any, fed: str | None) -> Out:
        api, out = self.api, []
        units = [
            Unit(json, api.runs(json), self.part((index(json.get(api.number), at),)))
            for at, json in enumerate(api.units(event))
        ]
        if self._ending is not None:
            out = self._resolved({unit.part.place for unit in units if unit.text})
        early: Out = []
        waits = False
        for unit in units:
            part = unit.part
            unit.finished = self._ends(unit.json)
            if api.cumulative:
                seen, part.seen = part.seen, max(part.seen, len(unit.text))
                unit.runs = [Run(run.paths, run.text[seen:], run.ended) for run in unit.runs]
            part.finished = unit.finished or (part.finished and not unit.runs)
            if part.match is not None:
                unit.behind = True
                continue
            self._scan(unit, event, early, fed)
            waits = waits or (unit.finished and part.match is None and part.unsettled)
        if waits:
            self._ending, self._queue = (event, self._source, units, early), [(event, self._source)]
            return out
        return [*out, *self._given(event, self._source, units, early)]

    def _ends(self, unit: Any) -> bool:
        return self.api.ends_choice(unit)

    def _resolved(self, goes_on: set[Path], confirms: bool = True) -> Out:
        (event, source, units, early), self._ending = self._ending, None
        for unit in units:
            part = unit.part
            if unit.finished and part.match is None and part.place not in goes_on:
                self._end_text(unit, early, confirms)
        return [*self._given(event, source, units, early), *self._released()[1:]]

    def _given(self, event: Any, source: Any, units: list[Unit], early: Out) -> Out:
        """Returns the output for an event whose texts were fed to the scanners."""
        late: Out = []
        told = [self._given_unit(unit, late) for unit in units]
        new = event
        if any(json is not unit.json for json, unit in zip(told, units, strict=True)):
            left = [json for json in told if json is not None]
            tells_usage = self.api.tells_usage(event) and not self._left
            if left or (self.options.drain and tells_usage):
                new = {**event, self.api.each: left} if self.api.each else (left or [None])[0]
            else:
                new = None
        if self.matches:
            self._count()
            if new is not None and self.api.each:
                new = only(new, self.api.names_of_events)
        return [*early, *([] if new is None else [(new, source)]), *late]

    def _given_unit(self, unit: Unit, late: Out) -> Any:
        part = unit.part
        if unit.behind:
            if not unit.finished or self._left.pop(part.place[0], None) is None:
                return None
            return self.api.ended(self._made(part, unit.json, "", [], whole=not self.api.each), part.match)
        new = self._edited(unit)
        if part.match is None:
            return new
        if unit.finished:
            return self.api.ended(new, part.match)
        late += self._stopped(part, [])
        return new

    def _count(self) -> None:
        over = [at in self.matches or (part.finished and self.api.final) for (at, *_), part in self.parts.items()]
        self.ended = all(over) and len(over) >= self.options.choices and not self._left

    def _closings(self, part: Part) -> Out:
        self._left.pop(part.place[0], None)
        self._count()
        return [(self._piece(part, "", [], ends=True), None)]

    def _piece(self, part: Part, text: str, rows: list[Any], ends: bool = False) -> Any:
        unit = self._made(part, part.unit and part.unit.json, text, rows)
        unit = self.api.ended(unit, part.match) if ends else unit
        if not self.api.each:
            return unit
        return {**only(part.event, self.api.names_of_made), self.api.each: [unit]}

    def _made(self, part: Part, unit: Any, text: str, rows: list[Any], whole: bool = False) -> Any:
        """Returns a made choice with this text. With ``whole``, it keeps ``api.usage``, the fields about the
        whole stream."""
        api = self.api
        made = only(members(unit), named((*api.keeps, *api.usage) if whole else api.keeps))
        made = {**made, **{name: value for name, value in api.goes_on.items() if name in unit}}
        text = "".join(part.said) if api.cumulative else text
        if text or api.without_text is None:
            made = put(made, text, *(dotted(api.text_at) or api.text_path))
        else:
            made = put(made, api.without_text[1], *dotted(api.without_text[0]))
        if rows:
            tokens = api.beside.tokens
            made = tokens.write(put(made, tokens.of(unit) or [], *dotted(tokens.path)), rows)
        return made


class Blocks(Machine):
    """A stream of one message in parts, whose events have kinds. A stop in one part ends the message."""

    def __init__(self, api: Api, options: Options, matches: dict[int, StopMatch] | None = None) -> None:
        super().__init__(api, options, matches)
        self._opened: set[Path] = set()  # the places of parts of which an event was sent

    def _read(self, event: Any, fed: str | None) -> Out:
        kind = self.api.kind(event) or ""
        if not self.matches or kind in self.api.over:
            self._memory.learn(event, kind)
        place = self._memory.place(event)
        runs = self.api.runs(event, kind)
        if runs:
            place = self._whole_place(place)
        out = self._resolved({(0, *place)} if runs else set()) if self._ending else []
        if self.matches:
            return out if self.ended and not self.options.drain else out + self._after(event, kind)
        return [*out, *self._message(event, kind, place, runs, fed)]

    def _whole_place(self, place: Path) -> Path:
        """Returns the place with all of its numbers. A number that the API leaves out is 0."""
        return (*place, *[0] * (len(self.api.places) - len(place)))

    def _message(self, event: Any, kind: Any, place: Path, runs: list[Run], fed: str | None) -> Out:
        api = self.api
        early: Out = []
        if runs or kind in api.opens:  # a part that begins or goes on ends the others
            for part in self.parts.values():
                if not part.within(place) and part.unsettled:
                    early += self._flushed(part)
                    if part.match is not None:
                        return self._stopped(part, early)
        if kind in api.repeats:
            repeated = self._repeated(event, kind, place)
            if repeated is not None:
                return self._stopped(repeated, early)
        new = event
        if runs:
            part = self.part((0, *place))
            unit = Unit(event, runs, part)
            self._scan(unit, event, early, fed)
            new = self._edited(unit)
            if part.match is not None:
                shows = unit.outs[-1] != "" or part.place[1:] in self._opened
                return self._stopped(part, [*early, *([(new, self._source)] if shows else [])])
            if unit.outs[-1] or early:
                self._open(part.place[1:])
                return [*self._released(), *early, (new, self._source)]
        if kind in api.ends or kind in api.over:
            ended = [part for part in self.parts.values() if kind in api.over or part.within(place)]
            for part in ended:
                part.finished = True
            self._ending = [part for part in ended if part.unsettled]
            if self._ending:
                self._at = len(self._queue)
                self._queue.append((event, self._source))
                return early
        begins = api.begins_text(event, kind) or (runs != [] and place not in self._opened)
        return self._queued(kind, place, new, early, begins)

    def _queued(self, kind: Any, place: Path, new: Any, early: Out, begins: bool) -> Out:
        """Returns the output for an event without safe text. An event that ``begins`` a part of text waits for the
        first text, so that a part that is empty at its stop is never sent. Later events that may belong to the part
        wait too."""
        out = [*self._released(), *early] if early else []
        waits = self._memory.place(self._queue[0][0]) if self._queue else None
        ends = kind in self.api.ends or kind in self.api.over
        joins = waits is not None and not ends and all(a == b for a, b in zip(place, waits, strict=False))
        if not joins:
            out += self._released()
        if joins or begins:
            self._queue.append((new, self._source))
            return out
        if kind in self.api.opens:
            self._open(place)
        return [*out, (new, self._source)]

    def _released(self) -> Out:
        for event, _ in self._queue:
            self._open(self._memory.place(event) if event else ())
        return super()._released()

    def _open(self, place: Path) -> None:
        self._opened.update(place[:length] for length in range(1, len(place) + 1))

    def _resolved(self, goes_on: set[Path], confirms: bool = True) -> Out:
        parts, self._ending = self._ending, None
        waits = self._queue[self._at :]
        del self._queue[self._at :]
        early: Out = []
        for part in parts:
            if part.place not in goes_on:
                early += self._flushed(part, confirms)
                if part.match is not None:
                    return [*self._stopped(part, early), *waits[1:]]
        return [*self._released(), *early, *waits]

    def _stopped(self, part: Part, out: Out) -> Out:
        # If the stop came before any text of the part, the events that open the part are dropped.
        if "".join(part.said):
            self._open(part.place[1:])
            out = [*self._released(), *out]
        else:
            waited = super()._released()
            out = [*(pair for pair in waited if not (pair[0] and self._memory.place(pair[0]))), *out]
        return super()._stopped(part, out)

    def _closings(self, part: Part) -> Out:
        # Closes the message, and those levels of the part's place (``api.places``) for which an event was sent.
        self.ended = True
        self._left.clear()
        write = self.api.write(Finish.of(part.match))
        facts = {**self._facts(part), **write, "finish": write, **self._memory.message(part, self._opened, write)}
        return [
            (self._memory.made(template, facts), None)
            for level, template in self.api.closing
            if not level or part.place[1 : 1 + level] in self._opened
        ]

    def _facts(self, part: Part) -> dict[str, Any]:
        places = {f"place.{i}": index for i, index in enumerate(part.place[1:])}
        return {"item_id": get(part.event, "item_id"), "said": "".join(part.said), "said_rows": part.rows, **places}

    def _after(self, event: Any, kind: Any) -> Out:
        """With `drain`, returns the output for an event after the stop: the closing events if the event ends the
        message, the event itself if it tells the usage, otherwise nothing."""
        part = next(part for part in self.parts.values() if part.match is not None)
        if kind in self.api.over:
            return self._closings(part) if self._left else []
        return [(only(event, self.api.names_of_events), self._source)] if self.api.tells_usage(event) else []

    def _repeated(self, event: Any, kind: str, place: Path) -> Part | None:
        """Looks for a stop in the texts that the event repeats, if the deltas did not bring the same texts: the deltas
        may be missing, or the stream may continue an earlier one. Returns the part with the stop, or ``None``."""
        for at, text in self.api.texts_in(event, dotted(self.api.repeats[kind])):
            part = self.part((0, *self._whole_place((*place, *(index for index in at if type(index) is int)))))
            if text == "".join(part.said) + part.held:
                continue
            kept, match = self.options.truncate(clean(text))
            if match is not None:
                part.said, part.match, part.event = [kept if match.period is None else text[: match.end]], match, event
                self.matches[0] = match
                part.rows = self.api.beside.tokens.before(get(event, *at[:-1]), text, len(part.said[0]))
                return part
        return None

    def _piece(self, part: Part, text: str, rows: list[Any]) -> Any:
        self._open(part.place[1:])
        facts = {**self._facts(part), "text": text, "rows": rows}
        return self._memory.made(self.api.piece, facts)


def machine_of(event: Any, options: Options, matches: dict[int, StopMatch] | None = None) -> Machine | None:
    """Returns the machine for a stream with this event. The machine adds each match to ``matches``.

    Returns ``None`` if the event does not show its API but a later event may. Raises ``TypeError`` for an event of an
    unknown API.
    """
    api = api_of_event(event)
    return None if api is None else (Blocks if api.each is None else Choices)(api, options, matches)
