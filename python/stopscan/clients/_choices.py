from __future__ import annotations

from typing import Any

from stopscan.clients._machine import Machine, Options, stopped
from stopscan.clients._objects import get, replace, without
from stopscan.clients._part import Part, Token
from stopscan.finish import Finish


class ChoiceMachine(Machine):
    """A stream whose every event brings the next text of some choices, and the reason when one ends.

    A subclass says how its API writes a choice. ``rows`` are the API's entries for tokens, ``[]`` without logprobs.
    """

    def __init__(self, event: Any, options: Options) -> None:
        super().__init__(event, options)
        self._early: list[Any] = []  # held text, to come before the event that is fed
        self._late: list[Any] = []  # closing events, to come after it

    def choices(self, event: Any) -> Any:
        return get(event, "choices") or ()

    def with_choices(self, event: Any, choices: list[Any]) -> Any:
        return replace(event, choices=choices)

    def bare(self, event: Any) -> Any:
        """The event without what is said of the whole stream so far."""
        return without(event, "usage")

    def index(self, choice: Any) -> int:
        return get(choice, "index") or 0

    def look(self, choice: Any) -> tuple[Any, Any]:
        """The text that the choice brings, and whether something in it ends that text."""
        raise NotImplementedError

    def finished(self, choice: Any) -> bool:
        raise NotImplementedError

    def tokens(self, choice: Any, text: str) -> list[Token]:
        raise NotImplementedError

    def with_text(self, choice: Any, text: str, rows: list[Any]) -> Any:
        raise NotImplementedError

    def cut(self, choice: Any, text: str, rows: list[Any]) -> Any:
        """The choice with what is before the stop: nothing that comes after its text."""
        return self.with_text(choice, text, rows)

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        """A choice that brings this text and nothing else."""
        raise NotImplementedError

    def with_finish(self, choice: Any, finish: Finish) -> Any:
        raise NotImplementedError

    def changed(self, event: Any, part: Part, text: str, safe: str) -> list[Any]:
        choice = self.choices(event)[0]
        new = self._changed(event, choice, part, text, safe, False)
        return self._out(event, [new], new is not choice)

    def read(self, event: Any) -> list[Any]:
        kept, changed = [], False
        for choice in self.choices(event):
            new = self.scan(event, choice)
            changed = changed or new is not choice
            if new is not None:
                kept.append(new)
        return self._out(event, kept, changed)

    def _out(self, event: Any, kept: list[Any], changed: bool) -> list[Any]:
        out, self._early = self._early, []
        if kept or not changed:
            out.append(self.with_choices(event, kept) if changed else event)
        elif self.options.drain and self.bare(event) is not event and all(part.closed for part in self.parts.values()):
            out.append(self.with_choices(event, []))  # OpenRouter's usage, in a choice that has ended
        out += self._late
        self._late = []
        if self.matches:
            parts = self.parts.values()
            over = all(part.over or part.closed for part in parts)
            self.ended = over and len(parts) >= self.options.asked()
        return out

    def scan(self, event: Any, choice: Any) -> Any:
        """What becomes of the choice: itself, a copy, or ``None`` when nothing of it comes out."""
        index = self.index(choice)
        part = self.parts.get(index)
        if part is None:
            part = self.part(index)
        if part.over:
            return self._after(choice, part)
        text, closes = self.look(choice)
        if text:
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
        self.matches[self.index(choice)] = part.match
        part.over = True
        new = self.cut(choice, safe, rows)
        if self.finished(choice):
            new = self.with_finish(new, stopped(part.match))
        elif not self.options.drain:
            part.closed = True
            self._late.append(self._closing(part))
        return new

    def _after(self, choice: Any, part: Part) -> Any:
        if part.closed or not self.finished(choice):
            return None
        assert part.match is not None
        part.closed = True
        return self.with_finish(self.cut(choice, "", []), stopped(part.match))

    def _piece(self, part: Part, text: str, rows: list[Any]) -> Any:
        event, choice = part.source
        return self.with_choices(self.bare(event), [self.piece(choice, text, rows)])

    def _closing(self, part: Part) -> Any:
        event, choice = part.source
        assert part.match is not None
        return self.with_choices(self.bare(event), [self.with_finish(self.piece(choice, "", []), stopped(part.match))])

    def end(self) -> list[Any]:
        out = []
        for index, part in self.parts.items():
            held, rows = part.flush()
            if held:
                out.append(self._piece(part, held, rows))
            if part.match is not None and not part.closed:
                self.matches[index] = part.match
                if part.source is not None:  # some text of it was touched
                    out.append(self._closing(part))
        return out

    @property
    def held(self) -> dict[int, str]:
        return {index: part.scanner.held for index, part in self.parts.items() if part.held}
