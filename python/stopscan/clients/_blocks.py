from __future__ import annotations

from typing import Any, ClassVar

from stopscan import StopMatch
from stopscan.clients._machine import Machine, Options, stopped
from stopscan.clients._objects import get, replace, without
from stopscan.clients._part import Part
from stopscan.finish import Finish


class BlockMachine(Machine):
    """A stream of one message, whose blocks come one after the other. A stop in one of them ends the message.

    A subclass says how its API writes the events. What is no text of a text block passes unread.
    """

    BLOCK_START: ClassVar[str]
    DELTA: ClassVar[str]
    BLOCK_END: ClassVar[str]
    MESSAGE_END: ClassVar[str]  # has the reason, and the usage or the place before it

    def __init__(self, event: Any, options: Options) -> None:
        super().__init__(event, options)
        self._open: list[Any] = []  # after a match: the closing events that have not come out

    def kind(self, event: Any) -> str | None:
        raise NotImplementedError

    def index(self, event: Any) -> int | None:
        raise NotImplementedError

    def text(self, event: Any) -> str:
        """The text that the start of a block brings."""
        raise NotImplementedError

    def with_text(self, event: Any, text: str) -> Any:
        raise NotImplementedError

    def delta(self, event: Any, text: str) -> Any:
        """A delta of this text, for the block of ``event``."""
        raise NotImplementedError

    def block_end(self, event: Any) -> Any:
        raise NotImplementedError

    def message_end(self, event: Any, finish: Finish) -> list[Any]:
        """The events that end the message of ``event``; without usage."""
        raise NotImplementedError

    def with_finish(self, event: Any, finish: Finish) -> Any:
        """The API's own end of the message, with another reason."""
        raise NotImplementedError

    def read(self, event: Any) -> list[Any]:
        kind = self.kind(event)
        if self.matches:
            return self._after(event, kind)
        if kind == self.BLOCK_START:
            text = self.text(event)
            return self._scan(event, text) if text else [event]
        if kind in (self.BLOCK_END, self.MESSAGE_END):
            return self._closing(event, kind)
        return [event]

    def _closing(self, event: Any, kind: str | None) -> list[Any]:
        """Held text comes before the event that closes its block, and some patterns complete there."""
        out: list[Any] = []
        for index, part in self.parts.items():
            if kind == self.BLOCK_END and index != self.index(event):
                continue
            out += self._flush(part)
            if part.match is not None:
                finish = stopped(part.match)
                if kind == self.BLOCK_END:
                    return [*out, event, *self._matched(part, self.message_end(event, finish))]
                # Without the end of the block; what follows it is the API's own if its stream is read on.
                rest = [] if self.options.drain else self.message_end(event, finish)[1:]
                return [*out, self.with_finish(event, finish), *self._matched(part, rest)]
        return [*out, event]

    def _scan(self, event: Any, text: str) -> list[Any]:
        part = self.parts.get(self.index(event)) or self.part(self.index(event))
        return self.changed(event, part, text, part.feed(text))

    def changed(self, event: Any, part: Part, text: str, safe: str) -> list[Any]:
        before = part.held
        part.settle(safe, ())
        part.source = event
        out = [event if safe == text and not before else self.with_text(event, safe)]
        if part.match is not None:
            out += self._matched(part, [self.block_end(event), *self.message_end(event, stopped(part.match))])
        return out

    def _matched(self, part: Part, closing: list[Any]) -> list[Any]:
        assert part.match is not None
        self.matches[0] = part.match
        self.ended = True
        self._open = closing
        return [] if self.options.drain else self.end()

    def _after(self, event: Any, kind: str | None) -> list[Any]:
        """The API's own closing events, when its stream is read on: of the others, those that belong to no block."""
        if kind == self.BLOCK_END and self._open and self.index(event) == self.index(self._open[0]):
            self._open.pop(0)
            return [event]
        if kind == self.MESSAGE_END:
            before = [ours for ours in self._open if self.kind(ours) == self.BLOCK_END]
            self._open = []
            return [*before, self.with_finish(event, stopped(self.matches[0]))]
        return [] if self.index(event) is not None else [event]

    def _flush(self, part: Part) -> list[Any]:
        held, _ = part.flush()
        return [self.delta(part.source, held)] if held else []

    def end(self) -> list[Any]:
        if self.matches:
            out, self._open = self._open, []
            return out
        out = []
        for part in self.parts.values():
            out += self._flush(part)
            if part.match is not None:
                source, finish = part.source, stopped(part.match)
                if source is not None:  # some text of it was touched
                    out += [self.block_end(source), *self.message_end(source, finish)]
                return [*out, *self._matched(part, [])]
        return out

    @property
    def held(self) -> dict[int, str]:
        held = "".join(part.scanner.held for part in self.parts.values())
        return {0: held} if held else {}


def cut_blocks(blocks: list[Any], options: Options) -> tuple[list[Any], StopMatch | None]:
    """Returns the blocks of a whole message up to the first stop that is in the text of one."""
    for number, block in enumerate(blocks):
        text = get(block, "text")
        if isinstance(text, str) and get(block, "type") in (None, "text"):
            text, match = options.stops.truncate(text, include_stop=options.include_stop)
            if match is not None:
                return [*blocks[:number], replace(without(block, "parsed_output"), text=text)], match
    return blocks, None
