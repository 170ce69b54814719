"""The state machine that cuts a stream of events at stops. It works on parsed JSON, does no I/O, and takes everything
about an API from its row in ``apis.TABLE``.

Its methods return the events to send, each as a pair ``(event, source)``. ``source`` is what the caller passed together
with the event, even if the machine has cut the event. It is ``None`` for an event that the machine has made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from stopscan import StopMatch, StopScanner, StopSet
from stopscan.finish import Finish
from stopscan_clients.apis import api_of_event, is_error, is_ping
from stopscan_clients.beside import Token
from stopscan_clients.paths import Path, dotted, get, index, items, members, named, only, put, without
from stopscan_clients.wire_format import Run, WireFormat

Out: TypeAlias = list[tuple[Any, Any]]

SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Returns the text with U+FFFD instead of each lone surrogate: JSON can contain one, but UTF-8 cannot."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


@dataclass(frozen=True)
class ScanOptions:
    """The stops and options by which a stream or an answer is cut."""

    stops: StopSet
    include_stop: bool = False
    drain: bool = False
    begin: Mapping[str, Any] = field(default_factory=dict)  # `StopScanner` options: the region in which the text begins
    choices: int = 1  # how many choices the request asks for
    echoed: tuple[int, ...] = ()  # the lengths of the prompts that the choices repeat at their start
    min_tokens: int = 0  # no stop fires in this many tokens at the start of a choice
    hides_tokens: bool = False  # drop the logprobs of a whole answer: the client did not ask for them

    def __post_init__(self) -> None:
        if type(self.drain) is not bool:
            raise TypeError(f"drain must be True or False, not {self.drain!r}")

    def scanner(self) -> StopScanner:
        return StopScanner(self.stops, include_stop=self.include_stop, **self.begin)

    def echo(self, choice: int) -> int:
        """Returns how many characters at the start of a choice repeat its prompt, because the request has ``echo``. If
        a request has several prompts, the choices belong to the prompts in order, and each prompt has equally many
        choices."""
        at = choice * len(self.echoed) // self.choices
        return self.echoed[at] if at < len(self.echoed) else 0

    def truncate(self, text: str) -> tuple[str, StopMatch | None]:
        if self.min_tokens:  # a text does not show where its first `min_tokens` tokens end, so it is not cut
            return text, None
        return self.stops.truncate(text, include_stop=self.include_stop, **self.begin)


class Passage:
    """One text of a stream: the text of a choice, of a content block, or of a part of an item. Keeps the held text, and
    the entries (such as logprobs) of the tokens in it."""

    def __init__(self, place: Path, options: ScanOptions, matches: dict[int, StopMatch], repeated: bool) -> None:
        self.place = place  # the index of the choice, then the indexes of the block, or of the item and the part
        self._repeated = repeated  # whether later events repeat the text and the entries of its tokens
        self.scanner = options.scanner()
        self.match: StopMatch | None = None
        self.held = ""
        self.sent: list[str] = []  # the texts that were sent
        self.entries: list[Any] = []  # the entries (logprobs) of the sent tokens; kept only if later events repeat them
        self.event: Any = None  # the event with the last text of the passage; `unit` is the choice in that event
        self.unit: Unit | None = None
        self.finished = False  # whether the API has ended the passage
        self.whole = ""  # for APIs that send all text so far in each event: that text
        self.echoed = options.echo(place[0])  # remaining characters of the repeated prompt, which are not scanned
        self.unarmed = options.min_tokens  # how many tokens are still to come in which no stop fires
        self.begun = False  # whether an event of the passage has come
        self._matches, self._options = matches, options
        self._tokens: list[Token] = []  # the tokens of the held text, with their offsets in that text

    @property
    def unsettled(self) -> bool:
        """Whether the end of the text would change the output. This is so if text is held, because the end releases it.
        It is also so if a pattern such as ``END$`` would match at the end."""
        stops = self._options.stops
        visible = stops.visible_patterns or (self._options.include_stop and stops.patterns)
        if self.held or not visible or self.match is not None:
            return self.held != ""
        ended = self.scanner.copy()
        ended.flush()
        return ended.match is not None

    def within(self, place: Path) -> bool:
        """Returns whether an event with the indexes ``place`` may belong to the passage. It does if ``place`` is a
        prefix of the passage's own indexes. For example, an event may have only the index of the item."""
        return self.place[1 : 1 + len(place)] == place

    def feed(self, text: str, tokens: Sequence[Token] = (), fed: str | None = None) -> tuple[str, list[Any]]:
        """Scans the next ``text`` of the passage. Returns the text that is safe to send, and the entries of its tokens,
        such as logprobs. ``fed`` is the scanner's output if the scanner has read ``text`` already."""
        safe = self._safe(text, tokens) if fed is None else fed
        if not (tokens or self._tokens):  # the usual case
            return self._out(safe, [])
        tokens = [*self._tokens, *((len(self.held) + begin, token) for begin, token in tokens)]
        self._tokens = [(begin - len(safe), token) for begin, token in tokens if begin >= len(safe)]
        return self._out(safe, [token for begin, token in tokens if begin < len(safe)])

    def _safe(self, text: str, tokens: Sequence[Token]) -> str:
        if not (self.echoed or self.unarmed):
            return self.scanner.feed(text)
        begin = min(self.echoed, len(text))
        self.echoed -= begin
        safe = self.scanner.bypass(text[:begin]) if begin else ""
        armed = begin
        if self.unarmed and begin < len(text):
            begins = [place for place, _ in tokens if place >= begin]
            armed = begins[self.unarmed] if len(begins) > self.unarmed else len(text)
            safe += self.scanner.feed(text[begin:armed], armed=False)
            self.count_tokens(len(begins))
        return safe + self.scanner.feed(text[armed:])

    def count_tokens(self, entries: int) -> None:
        """Counts the tokens of an event for ``min_tokens``: one for each entry (logprobs). An event without entries
        counts as one token. If it has more tokens, stops are ignored for longer than the caller asked, but no text is
        lost."""
        self.unarmed = max(self.unarmed - (entries or 1), 0)

    def flush(self, confirms: bool = True) -> tuple[str, list[Any]]:
        """Ends the text. Returns the held text and the entries of its tokens. With ``confirms``, the text is complete
        and did not break off, so a pattern such as ``END$`` may match at its end."""
        tokens, self._tokens = self._tokens, []
        safe = self.scanner.flush() if confirms else self.scanner.bypass("")
        return self._out(safe, [token for _, token in tokens])

    def _out(self, text: str, entries: list[Any]) -> tuple[str, list[Any]]:
        self.held, self.match = self.scanner.held, self.scanner.match
        if self.match is not None:
            self._matches[self.place[0]] = self.match
        if text:
            self.sent.append(text)
        self.entries += entries if self._repeated else ()
        return text, entries


@dataclass(slots=True)
class Unit:
    """One choice of an event or, if the API has no choices, the event."""

    json: Any
    runs: list[Run]
    passage: Passage
    finished: bool = False
    behind: bool = False  # whether a stop in an earlier event has ended this choice
    outs: list[str] = field(default_factory=list)  # the safe text of each run that was scanned
    entries: list[Any] = field(default_factory=list)  # the entries (logprobs) of the tokens in `outs`
    given: list[Any] = field(default_factory=list)  # the entries that the event had when it came

    @property
    def text(self) -> str:
        return self.runs[0].text if len(self.runs) == 1 else "".join(run.text for run in self.runs)


@dataclass(slots=True)
class End:
    """An event by which the API ends one or more passages (texts of the stream). If text of a passage is held, the
    event waits together with this text, because later events may continue the passage."""

    event: Any
    source: Any
    passages: list[Passage]
    units: list[Unit] = field(default_factory=list)  # the choices of the event, if the API has choices
    behind: Out = field(default_factory=list)  # comments and pings that came later: they are sent after the event


class Machine:
    """Takes the events of an API's stream, and returns those to pass on. When ``ended`` is true, the caller closes the
    stream."""

    _PASSAGE = Passage

    def __init__(self, row: WireFormat, options: ScanOptions, matches: dict[int, StopMatch] | None = None) -> None:
        self.row, self.options, self._memory = row, options, row.memory(row)
        self.matches = {} if matches is None else matches
        self.ended = False  # stops have ended all choices
        self.passages: dict[Path, Passage] = {}
        self.current: Passage | None = None  # the passage (a text of the stream) that got the last text
        self._source: Any = None  # the `source` that the caller passed with the event that is now read
        self._openings: Out = []  # events that wait for the first text of a passage: its opening event, and later ones
        self._ends: list[End] = []
        self._unclosed: dict[int, Passage] = {}  # with `drain`: passages whose closing events have not been sent yet

    @property
    def held(self) -> dict[int, str]:
        """The held text of each choice."""
        held: dict[int, str] = {}
        for (choice, *_), passage in self.passages.items():
            if passage.held:
                held[choice] = held.get(choice, "") + passage.held
        return held

    @property
    def calm(self) -> bool:
        """Whether the fast path may be used: no event waits, no text is held, and no stop has fired. The fast path
        sends an event unchanged if its text is safe, and if the last event was sent unchanged and differs only in the
        text."""
        passage, waits = self.current, self._openings or self._ends or self.matches
        return passage is not None and not (passage.held or passage.echoed or passage.unarmed or waits)

    def sole(self, event: Any) -> tuple[Path, str] | None:
        """Returns the path of the text in ``event``, and the text. The fast path may then be used for later events that
        differ from this one only in the text. Call it only with an event that the machine has sent unchanged.

        Returns ``None`` if the event does not suit the fast path: if it has no text, a second text, logprobs or a call,
        begins a passage, or ends a choice.
        """
        row, passage = self.row, self.current
        if passage is None or passage.unit is None or passage.event is not event or row.cumulative:
            return None
        unit, (run, *others) = passage.unit, passage.unit.runs
        several = others or len(run.paths) != 1 or len(row.units(event)) != 1
        if several or run.ended or unit.given or unit.finished or row.kind(event) in row.opens:
            return None
        return ((row.each, 0) if row.each else ()) + run.paths[0], run.text

    def passes(self, other: Any, source: Any) -> Out:
        """Returns the output for a comment or a ping. If earlier events wait, the comment or ping waits behind them,
        which keeps the order."""
        waits = self._ends[-1].behind if self._ends else self._openings
        if not waits and not self._ends:
            return [(other, source)]
        waits.append((other, source))
        return []

    def feed(self, event: Any, source: Any, fed: str | None = None) -> Out:
        """Returns the output for the next event. ``fed`` is the output of the current passage's scanner, if the scanner
        has read the event's text already."""
        self._source = source
        if is_error(event):
            return [*self.end(None), *self._memory.numbered([(event, source)])]
        if is_ping(event):
            return self.passes(only(event, self.row.names_of_events) if self.matches else event, source)
        return self._memory.numbered(self._read(event, fed))

    def _read(self, event: Any, fed: str | None) -> Out:
        raise NotImplementedError

    def end(self, confirms: bool | None = False) -> Out:
        """Returns the output at the end of the stream: the held text and, with ``drain``, the closing events that have
        not been sent yet.

        ``confirms`` says in which passages patterns such as ``END$`` may match at the end:

        - ``True``: in all passages.
        - ``False``: only in passages that the API has ended. The stream may have broken off in the others.
        - ``None``: in no passage, because the source has failed.
        """
        out = self._resolved(set(), confirms is not None)
        for passage in [*self.passages.values()]:
            if passage.place[0] not in self.matches and passage.unsettled:
                flushed = self._flushed(passage, confirms is not None and (confirms or passage.finished))
                out += [*self._released(), *flushed] if passage.match is None else self._stopped(passage, flushed)
        out += self._released()
        for passage in [*self._unclosed.values()]:
            out += self._closings(passage)
        return self._memory.numbered(out)

    def _resolved(self, goes_on: Set[Passage], confirms: bool = True, of: Set[Passage] | None = None) -> Out:
        """Releases the waiting events, by which the API has ended passages (texts of the stream). Returns these events
        and the held text of their passages. If ``of`` is given, releases only events that end a passage in ``of``. A
        passage in ``goes_on`` keeps its held text, because more of its text has come."""
        out: Out = []
        ends, self._ends = self._ends, []
        for end in ends:
            if of is not None and of.isdisjoint(end.passages):
                self._ends.append(end)
            else:
                out += [*self._ended(end, goes_on, confirms), *end.behind]
        return out

    def _ended(self, end: End, goes_on: Set[Passage], confirms: bool) -> Out:
        raise NotImplementedError

    def _stopped(self, passage: Passage, out: Out) -> Out:
        """Returns ``out`` and, after it, the closing events for the stop in ``passage``. With ``drain``, returns only
        ``out``. The closing events are then sent later, when the API ends the choice."""
        if self.options.drain:
            self._unclosed[passage.place[0]] = passage
            return out
        return out + self._closings(passage)

    def _closings(self, passage: Passage) -> Out:
        """Returns the closing events at the stop of this passage."""
        raise NotImplementedError

    def _released(self) -> Out:
        openings, self._openings = self._openings, []
        return openings

    def _flushed(self, passage: Passage, confirms: bool = True) -> Out:
        text, entries = passage.flush(confirms)
        return [(self._piece(passage, text, entries), None)] if text else []

    def passage(self, place: Path) -> Passage:
        if place not in self.passages:
            self.passages[place] = self._PASSAGE(place, self.options, self.matches, bool(self.row.repeats))
        return self.passages[place]

    def _scan(self, unit: Unit, event: Any, early: Out, fed: str | None = None) -> None:
        """Feeds the texts of ``unit`` (``event``, or one choice of it) to its scanner, up to a stop. Held text that has
        to come before ``event`` is added to ``early``, as an event of its own."""
        passage = self.current = unit.passage
        tokens = self.row.beside.tokens.read(unit.json, unit.text)
        unit.given = [entry for _, entry in tokens]
        # For `min_tokens`, an event without text, such as reasoning, counts too. The first event of a choice is an
        # exception, because it has only the role.
        if passage.begun and not unit.runs:
            passage.count_tokens(len(tokens))
        passage.begun = True
        if unit.text:
            passage.event, passage.unit = event, unit
        elif not unit.runs and tokens and passage.held:  # half a character adds no text: its tokens wait with held text
            passage.feed("", tokens)
        elif not unit.runs:
            unit.entries = unit.given
        begin = 0
        for run in unit.runs:
            end = begin + len(run.text)
            of_run = [(place - begin, entry) for place, entry in tokens if begin <= place < end] if tokens else ()
            safe, entries = passage.feed(clean(run.text), of_run, fed)
            begin = end
            unit.entries += entries
            unit.outs.append(safe)
            if run.ended and passage.match is None:
                self._end_text(unit, early)
            if passage.match is not None:
                break

    def _end_text(self, unit: Unit, early: Out, confirms: bool = True) -> None:
        """Ends the text of a choice or event (``unit``). Appends the held text to the last text in ``unit``. If
        ``unit`` has no text, the held text needs an event, which is added to ``early``."""
        rest, entries = unit.passage.flush(confirms)
        if rest and unit.outs and unit.runs[len(unit.outs) - 1].paths:
            unit.outs[-1] += rest
            unit.entries += entries
        elif rest:
            early.append((self._piece(unit.passage, rest, entries), None))

    def _edited(self, unit: Unit) -> Any:
        """Returns a choice or event (``unit``) with only the text that is safe to send. If a stop fired in this text,
        everything after the stop is removed."""
        passage, new, row = unit.passage, unit.json, self.row
        if row.cumulative or unit.outs != [run.text for run in unit.runs]:
            pieces = [*items(get(new, *row.text_path))]  # copied once, not for each piece
            for run, out in zip(unit.runs, unit.outs, strict=False):
                out, text = ("".join(passage.sent), passage.whole) if row.cumulative else (out, run.text)
                for path in run.paths if out != text else ():
                    if path[:-2] == row.text_path:
                        size = len(out) if path is run.paths[-1] else len(pieces[path[-2]][path[-1]])
                        pieces[path[-2]], out = put(pieces[path[-2]], out[:size], path[-1]), out[size:]
                    else:
                        new = put(new, out, *path)
            new = put(new, pieces, *row.text_path) if pieces else new
            for copy in row.copies:
                new = without(new, *dotted(copy))
        if unit.entries != unit.given:
            new = row.beside.tokens.write(new, unit.entries)
        return new if passage.match is None else self._cut(new, unit, passage)

    def _cut(self, new: Any, unit: Unit, passage: Passage) -> Any:
        """Returns ``new``, the choice or event in which the stop fired, with only the fields that the API's row
        names."""
        row, at = self.row, self.row.text_path
        paths = unit.runs[len(unit.outs) - 1].paths if unit.outs else ()
        behind = len(passage.scanner.unused)
        while len(paths) > 1 and behind >= (size := len(get(unit.json, *paths[-1]))):  # this piece is after the stop
            paths, behind = paths[:-1], behind - size
        new = only(new, row.names_of_choices, paths[-1] if paths else at)
        pieces = get(new, *at)
        if isinstance(pieces, list):
            kept = [piece for piece in pieces if not row.is_text(piece) or get(piece, row.key)] if paths else []
            new = put(new, kept, *at)
        return row.beside.cut(new, "".join(passage.sent))

    def _piece(self, passage: Passage, text: str, entries: list[Any]) -> Any:
        """Returns a new event for held text, which is ``text``. The event also has the entries of the text's tokens."""
        raise NotImplementedError


class Choices(Machine):
    """The machine for APIs in which each event has the next text of one or more choices. A field of a choice says that
    the choice ends."""

    def __init__(self, row: WireFormat, options: ScanOptions, matches: dict[int, StopMatch] | None = None) -> None:
        super().__init__(row, options, matches)
        # Whether a choice gets no more text after the API has ended it. Becomes false when such text comes.
        self._final = row.final

    def _read(self, event: Any, fed: str | None) -> Out:
        row = self.row
        units = [
            Unit(json, row.runs(json), self.passage((index(json.get(row.number), at),)))
            for at, json in enumerate(row.units(event))
        ]
        of = {unit.passage for unit in units} or None  # the ends of other choices keep waiting
        out = self._resolved({unit.passage for unit in units if unit.text}, of=of) if self._ends else []
        early: Out = []
        waits = False
        for unit in units:
            passage = unit.passage
            unit.finished = self._ends_choice(unit.json)
            self._final = self._final and not (passage.finished and unit.text)
            if row.cumulative:
                self._take_new(unit)
            passage.finished = unit.finished or (passage.finished and not unit.runs)
            if passage.match is not None:
                unit.behind = True
                continue
            self._scan(unit, event, early, fed)
            waits = waits or (unit.finished and passage.match is None and passage.unsettled)
        if not waits:
            return [*out, *early, *self._given(event, self._source, units)]
        self._ends.append(End(event, self._source, [unit.passage for unit in units], units))
        return [*out, *early]

    def _ends_choice(self, unit: Any) -> bool:
        return self.row.ends_choice(unit)

    def _take_new(self, unit: Unit) -> None:
        """For APIs that send all text so far in each event: removes from ``unit`` the text that earlier events had.
        Raises ``TypeError`` if ``unit`` does not repeat that text."""
        passage, text = unit.passage, unit.text
        if text and not text.startswith(passage.whole):
            raise TypeError(f"the text of {self.row.name} must come whole each time, but it comes in pieces")
        unit.runs = [Run(run.paths, text[len(passage.whole) :], run.ended) for run in unit.runs]
        passage.whole = text or passage.whole

    def _ended(self, end: End, goes_on: Set[Passage], confirms: bool) -> Out:
        early: Out = []
        for unit in end.units:
            if unit.finished and unit.passage.match is None and unit.passage not in goes_on:
                self._end_text(unit, early, confirms)
        return [*early, *self._given(end.event, end.source, end.units)]

    def _given(self, event: Any, source: Any, units: list[Unit]) -> Out:
        """Returns the output for an event whose texts were fed to the scanners."""
        late: Out = []
        edited = [self._given_unit(unit, late) for unit in units]
        new = event
        if any(json is not unit.json for json, unit in zip(edited, units, strict=True)):
            kept = [json for json in edited if json is not None]
            tells_usage = self.options.drain and not self._unclosed and self.row.tells_usage(event)
            if self.row.each:
                new = {**event, self.row.each: kept} if kept or tells_usage else None
            else:
                new = kept[0] if kept else None
        if self.matches:
            self._count()
            if new is not None and self.row.each:
                new = only(new, self.row.names_of_events)
        return [*([] if new is None else [(new, source)]), *late]

    def _given_unit(self, unit: Unit, late: Out) -> Any:
        passage = unit.passage
        if unit.behind:
            if not unit.finished or self._unclosed.pop(passage.place[0], None) is None:
                return None
            return self.row.ended(self._made(passage, unit.json, "", [], whole=not self.row.each), passage.match)
        new = self._edited(unit)
        if passage.match is None:
            return new
        if unit.finished:
            return self.row.ended(new, passage.match)
        late += self._stopped(passage, [])
        return new

    def _count(self) -> None:
        over = [at in self.matches or (passage.finished and self._final) for (at, *_), passage in self.passages.items()]
        self.ended = all(over) and len(over) >= self.options.choices and not (self._unclosed or self._ends)

    def _closings(self, passage: Passage) -> Out:
        self._unclosed.pop(passage.place[0], None)
        self._count()
        return [(self._piece(passage, "", [], ends=True), None)]

    def _piece(self, passage: Passage, text: str, entries: list[Any], ends: bool = False) -> Any:
        unit = self._made(passage, passage.unit and passage.unit.json, text, entries)
        unit = self.row.ended(unit, passage.match) if ends else unit
        if not self.row.each:
            return unit
        return {**only(passage.event, named(self.row.about)), self.row.each: [unit]}

    def _made(self, passage: Passage, unit: Any, text: str, entries: list[Any], whole: bool = False) -> Any:
        """Returns a new choice with ``text``. Copies the fields of the choice ``unit`` that the row names, such as the
        index. With ``whole``, also copies the fields about the whole stream, such as the usage."""
        row = self.row
        made = only(members(unit), named((*row.keeps, *row.usage) if whole else row.keeps))
        made = {**made, **{name: value for name, value in row.goes_on.items() if name in unit}}
        text = "".join(passage.sent) if row.cumulative else text
        if text or row.without_text is None:
            made = put(made, text, *(dotted(row.text_at) or row.text_path))
        else:
            made = put(made, row.without_text[1], *dotted(row.without_text[0]))
        if entries:
            tokens = row.beside.tokens
            made = tokens.write(put(made, tokens.of(unit) or [], *dotted(tokens.path)), entries)
        return made


class Blocks(Machine):
    """The machine for APIs that stream one message of blocks or parts, in events of several kinds. A stop in any part
    ends the message."""

    def __init__(self, row: WireFormat, options: ScanOptions, matches: dict[int, StopMatch] | None = None) -> None:
        super().__init__(row, options, matches)
        self._opened: set[Path] = set()  # the indexes of the blocks, items and parts of which an event was sent

    def _read(self, event: Any, fed: str | None) -> Out:
        kind = self.row.kind(event) or ""
        if not self.matches:
            self._memory.learn(event, kind)
        elif kind in self.row.over:
            self._memory.learn(only(event, named(self.row.usage)), kind)
        place = self._memory.place(event)
        runs = self.row.runs(event, kind)
        if runs:
            place = self._whole_place(place)
        out = self._resolved({self.passage((0, *place))} if runs else set()) if self._ends else []
        if self.matches:
            return out if self.ended and not self.options.drain else out + self._after(event, kind)
        return [*out, *self._message(event, kind, place, runs, fed)]

    def _whole_place(self, place: Path) -> Path:
        """Returns ``place``, the indexes of a part in its message. If the API has left out the last indexes, they are
        0."""
        return (*place, *[0] * (len(self.row.places) - len(place)))

    def _message(self, event: Any, kind: Any, place: Path, runs: list[Run], fed: str | None) -> Out:
        row, new = self.row, event
        early: Out = []
        stopped = self._end_others(place, early) if runs or kind in row.opens else None
        if stopped is None and kind in row.repeats:
            stopped = self._repeated(event, kind, place)
        unit = None
        if stopped is None and runs:
            unit = Unit(event, runs, self.passage((0, *place)))
            self._scan(unit, event, early, fed)
            new = self._edited(unit)
            stopped = unit.passage if unit.passage.match is not None else None
            if stopped is not None and (unit.outs[-1] or place in self._opened):
                early.append((new, self._source))
        if stopped is not None:
            return self._stopped(stopped, early)
        if unit is not None and (unit.outs[-1] or early):
            self._open(place)
            return [*self._released(), *early, (new, self._source)]
        if kind in row.ends or kind in row.over:
            ended = [passage for passage in self.passages.values() if kind in row.over or passage.within(place)]
            for passage in ended:
                passage.finished = True
            if waits := [passage for passage in ended if passage.unsettled]:
                self._ends.append(End(event, self._source, waits))
                return early
        begins = row.begins_text(event, kind) or (runs != [] and place not in self._opened)
        return self._queued(kind, place, new, early, begins)

    def _end_others(self, place: Path, early: Out) -> Passage | None:
        """Ends all passages (texts of the message) except the one with the indexes ``place``, which an event begins or
        continues. Adds the held text of the ended passages to ``early``, as events. If a stop fires at the end of a
        passage, returns that passage."""
        for passage in self.passages.values():
            if not passage.within(place) and passage.unsettled:
                early += self._flushed(passage)
                if passage.match is not None:
                    return passage
        return None

    def _queued(self, kind: Any, place: Path, new: Any, early: Out, begins: bool) -> Out:
        """Returns the output for an event that has no text to send yet. If the event ``begins`` a passage, it waits
        until text of the passage is safe to send. Later events that may belong to the passage wait too. If a stop fires
        first, the event is never sent."""
        out = [*self._released(), *early] if early else []
        waits = self._memory.place(self._openings[0][0]) if self._openings else None
        ends = kind in self.row.ends or kind in self.row.over
        joins = waits is not None and not ends and all(a == b for a, b in zip(place, waits, strict=False))
        if not joins:
            out += self._released()
        if joins or begins:
            self._openings.append((new, self._source))
            return out
        if kind in self.row.opens:
            self._open(place)
        return [*out, (new, self._source)]

    def _released(self) -> Out:
        for event, _ in self._openings:
            self._open(self._memory.place(event))
        return super()._released()

    def _open(self, place: Path) -> None:
        self._opened.update(place[:length] for length in range(1, len(place) + 1))

    def _ended(self, end: End, goes_on: Set[Passage], confirms: bool) -> Out:
        early: Out = []
        for passage in end.passages:
            if passage not in goes_on:
                early += self._flushed(passage, confirms)
                if passage.match is not None:
                    return self._stopped(passage, early)
        return [*self._released(), *early, (end.event, end.source)]

    def _stopped(self, passage: Passage, out: Out) -> Out:
        # If the stop came before any text of the passage, the events that open the passage are dropped.
        if "".join(passage.sent):
            self._open(passage.place[1:])
            openings = self._released()
        else:
            openings = [pair for pair in super()._released() if not self._memory.place(pair[0])]
        return super()._stopped(passage, [*openings, *out])

    def _closings(self, passage: Passage) -> Out:
        # Returns the events that close the message. If the client has received events that opened a block, or an item
        # and a part, also returns the events that close these.
        self.ended = True
        self._unclosed.clear()
        write = self.row.write(Finish.of(passage.match))
        facts = {**self._facts(passage), **write, "finish": write}
        facts |= self._memory.message(passage, self._opened, write)
        return [
            (self._memory.made(template, facts), None)
            for level, template in self.row.closing
            if not level or passage.place[1 : 1 + level] in self._opened
        ]

    def _facts(self, passage: Passage) -> dict[str, Any]:
        facts = {f"place.{i}": index for i, index in enumerate(passage.place[1:])}
        facts |= {name: get(passage.event, name) for name in self.row.keeps}
        return {**facts, "sent": "".join(passage.sent), "sent_entries": passage.entries}

    def _after(self, event: Any, kind: Any) -> Out:
        """Returns the output for an event after the stop, which is read only with ``drain``. For the event that ends
        the message, the output is the closing events. An event with the usage is sent on. All other events are
        dropped."""
        if kind in self.row.over:
            return [pair for passage in [*self._unclosed.values()] for pair in self._closings(passage)]
        return [(only(event, self.row.names_of_events), self._source)] if self.row.tells_usage(event) else []

    def _repeated(self, event: Any, kind: str, place: Path) -> Passage | None:
        """Scans the whole text that an event repeats, if it differs from the text of the deltas. Deltas may be missing,
        or the stream may continue an earlier stream. Returns the passage in which a stop fires, or ``None``."""
        for at, text in self.row.texts_in(event, dotted(self.row.repeats[kind])):
            passage = self.passage((0, *self._whole_place((*place, *(key for key in at if type(key) is int)))))
            if text == "".join(passage.sent) + passage.held:
                continue
            kept, match = self.options.truncate(clean(text))
            if match is not None:
                passage.sent = [kept if match.period is None else text[: match.end]]
                passage.match, passage.event, self.matches[0] = match, event, match
                passage.entries = self.row.beside.tokens.before(get(event, *at[:-1]), text, len(passage.sent[0]))
                return passage
        return None

    def _piece(self, passage: Passage, text: str, entries: list[Any]) -> Any:
        self._open(passage.place[1:])
        return self._memory.made(self.row.piece, {**self._facts(passage), "text": text, "entries": entries})


def machine_of(event: Any, options: ScanOptions, matches: dict[int, StopMatch] | None = None) -> Machine | None:
    """Returns the machine for the API that sent ``event``, an event of a stream. The machine adds each match to
    ``matches``.

    Returns ``None`` for an event that several APIs send: a later event may show the API. Raises ``TypeError`` for an
    event of an unknown API.
    """
    row = api_of_event(event)
    return None if row is None else (Blocks if row.each is None else Choices)(row, options, matches)
