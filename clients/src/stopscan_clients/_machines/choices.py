from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stopscan import StopMatch
from stopscan_clients._json import get, items, number, only, put, text_at, without
from stopscan_clients._machines.machine import Machine, Part, Token, clean, stopped
from stopscan.finish import Finish


def refilled(parts: list[Any], is_text: Callable[[Any], bool], text: str) -> list[Any]:
    """Returns the parts of a content with another text, which the first part of text takes whole."""
    out = []
    for part in parts:
        if is_text(part):
            part, text = {**part, "text": text}, ""
        out.append(part)
    return out


class ChoiceMachine(Machine):
    """A stream whose every event brings the next text of some choices, and the reason when one ends.

    A subclass is the table of its API: where the text is, what ends it, what goes with a stop. ``rows`` are the API's
    entries for tokens.
    """

    CHOICES: ClassVar[str] = "choices"  # where an event has them; "" where it is the only one itself
    TEXT: ClassVar[tuple[str, ...]]  # the path to the text in a choice
    MESSAGE: ClassVar[tuple[str, ...]]  # the path in the choice of a whole answer
    CALLS: ClassVar[tuple[str, ...]] = ()  # what closes the text before it, and goes with the text after a stop
    USAGE: ClassVar[tuple[str, ...]] = ("usage",)  # what an event says of the whole stream
    KEPT: ClassVar[tuple[str, ...]] = ("index", "finish_reason", "logprobs")  # what a choice without its text keeps

    read_finish: ClassVar[Callable[[object], Finish | None]]
    write_finish: ClassVar[Callable[[Finish], Any]]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._text_in(self.TEXT)
        self._early: list[Any] = []  # held text, to come before the event that is fed
        self._late: list[Any] = []  # closing events, to come after it

    def _text_in(self, path: tuple[str, ...]) -> None:
        self._path, self._above, self._name = path, path[:-1], path[-1]

    def choices(self, event: Any) -> list[Any]:
        return items(get(event, self.CHOICES)) if self.CHOICES else [event]

    def with_choices(self, event: Any, choices: list[Any]) -> Any:
        return {**event, self.CHOICES: choices} if self.CHOICES else choices[0]

    def look(self, choice: Any) -> tuple[str, Any]:
        """The text that the choice brings, and whether something in it ends that text."""
        body = get(choice, *self._above)
        return text_at(body, self._name), self.finished(choice) or any(get(body, call) for call in self.CALLS)

    def finished(self, choice: Any) -> bool:
        return type(self).read_finish(choice) is not None

    def tokens(self, choice: Any, text: str) -> list[Token]:
        return []

    def with_rows(self, choice: Any, rows: list[Any]) -> Any:
        return choice

    def with_text(self, choice: Any, text: Any, rows: list[Any]) -> Any:
        absent = text == "" and get(choice, *self._path) is None
        return self.with_rows(choice if absent else put(choice, text, *self._path), rows)

    def cut(self, choice: Any, text: str, rows: list[Any]) -> Any:
        """The choice with what is before the stop: nothing that comes after its text."""
        cut = self.with_text(choice, text, rows)
        body = get(cut, *self._above)
        return put(cut, without(body, *self.CALLS, "parsed"), *self._above) if isinstance(body, dict) else cut

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        """A choice that brings this text and nothing else."""
        body = {self._name: text} if text or not self._above else {}
        return self.with_rows({**only(choice, *self.KEPT), **put({}, body, *self._above)}, rows)

    def with_finish(self, choice: Any, finish: Finish) -> Any:
        # vLLM's own word for what ended the choice is not what ended it here.
        return {**without(choice, "stop_reason"), **type(self).write_finish(finish)}

    def changed(self, event: Any, part: Part, text: str, safe: str) -> list[Any]:
        choice = self.choices(event)[0]
        new = self._changed(event, choice, part, text, safe, False)
        return self._out(event, [new], new is not choice)

    def read(self, event: Any) -> list[Any]:
        kept, changed = [], False
        for choice in self.choices(event):
            new = self.scan(event, choice) if isinstance(choice, dict) else choice
            changed = changed or new is not choice
            if new is not None:
                kept.append(new)
        return self._out(event, kept, changed)

    def _out(self, event: Any, kept: list[Any], changed: bool) -> list[Any]:
        out, self._early = self._early, []
        if kept or not changed:
            out.append(self.with_choices(event, kept) if changed else event)
        elif self.options.drain and get(event, *self.USAGE[:1]) and all(part.closed for part in self.parts.values()):
            out.append(self.with_choices(event, []))  # OpenRouter's usage, in a choice that has ended
        out += self._late
        self._late = []
        if self.matches:
            over = all(part.over or part.closed for part in self.parts.values())
            self.ended = over and len(self.parts) >= self.options.choices()
        return out

    def scan(self, event: Any, choice: Any) -> Any:
        """What becomes of the choice: itself, a copy, or ``None`` when nothing of it comes out."""
        index = number(choice.get("index"))
        part = self.parts.get(index) or self.part(index)
        if part.over:
            return self._after(choice, part)
        text, closes = self.look(choice)
        if text:
            text = clean(text)
            new = self._changed(event, choice, part, text, part.feed(text), closes)
        elif closes:
            new = self._closing_text(event, choice, part)
        else:
            new = self._textless(choice, part) if part.held else choice
        if self.finished(choice):
            part.closed = True
        return new

    def _changed(self, event: Any, choice: Any, part: Part, text: str, safe: str, closes: Any) -> Any:
        before = part.held
        part.source = event, choice
        rows = part.settle(safe, self.tokens(choice, text))
        if closes and part.match is None:
            rest, more = part.flush()
            safe, rows = safe + rest, rows + more
        if part.match is not None:
            return self._matched(choice, part, safe, rows)
        return choice if safe == text and not before else self.with_text(choice, safe, rows)

    def _closing_text(self, event: Any, choice: Any, part: Part) -> Any:
        """A choice that ends its text and brings none: held text comes before it, and some patterns complete there."""
        held, rows = part.flush()
        if held:
            self._early.append(self._piece(part, held, rows))
        if part.match is None:
            return choice
        part.source = event, choice
        return self._matched(choice, part, "", [])

    def _textless(self, choice: Any, part: Part) -> Any:
        tokens = self.tokens(choice, "")
        if not tokens:
            return choice
        part.settle("", tokens)  # half a character, after held text: its tokens wait, too
        return self.with_text(choice, "", [])

    def _matched(self, choice: Any, part: Part, safe: str, rows: list[Any]) -> Any:
        assert part.match is not None
        self.matches[number(choice.get("index"))] = part.match
        part.over = True
        new = self.cut(choice, safe, rows)
        if self.finished(choice):
            new = self.with_finish(new, stopped(part.match))
        elif not self.options.drain:
            part.closed = True
            self._late.append(self._piece(part, "", [], part.match))
        return new

    def _after(self, choice: Any, part: Part) -> Any:
        if part.closed or not self.finished(choice):
            return None
        assert part.match is not None
        part.closed = True
        return self.with_finish(self.cut(choice, "", []), stopped(part.match))

    def _piece(self, part: Part, text: str, rows: list[Any], match: StopMatch | None = None) -> Any:
        """An event of its own: held text, or the end of a choice with this match."""
        event, choice = part.source
        piece = self.piece(choice, text, rows)
        piece = piece if match is None else self.with_finish(piece, stopped(match))
        return self.with_choices(without(event, *self.USAGE), [piece])

    def released(self) -> list[Any]:
        return [self._piece(part, *part.release()) for part in self.parts.values() if part.held]

    def end(self) -> list[Any]:
        out = []
        for index, part in self.parts.items():
            held, rows = part.flush()
            if held:
                out.append(self._piece(part, held, rows))
            if part.match is not None and not part.closed:
                self.matches[index] = part.match
                if part.source is not None:  # some text of it was touched
                    out.append(self._piece(part, "", [], part.match))
                part.closed = True
        return out

    def whole(self, answer: Any) -> Any:
        self._text_in(self.MESSAGE)
        choices = [self._whole(choice) if isinstance(choice, dict) else choice for choice in self.choices(answer)]
        return self.with_choices(answer, choices) if self.matches else answer

    def _whole(self, choice: Any) -> Any:
        text, _ = self.look(choice)
        kept, match = self.options.truncate(text, self.options.echoed(number(choice.get("index"))))
        if match is None:
            return choice
        self.matches[number(choice.get("index"))] = match
        rows = [row for begin, row in self.tokens(choice, text) if begin < len(kept)]
        return self.with_finish(self.cut(choice, kept, rows), stopped(match))

    @property
    def held(self) -> dict[int, str]:
        return {index: part.scanner.held for index, part in self.parts.items() if part.held}
