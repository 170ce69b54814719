"""The APIs whose messages come in blocks with events of their own: Anthropic, Bedrock's Converse, Cohere's v2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from stopscan_clients._json import get, items, put, text_at, without
from stopscan_clients._machines.closing import ClosingMachine
from stopscan_clients._machines.logprobs import spelled
from stopscan_clients._machines.machine import Fields, Part, Sole, clean, stopped
from stopscan.finish import Finish, to_anthropic, to_bedrock


def to_cohere(finish: Finish) -> dict[str, str]:
    return {"finish_reason": "STOP_SEQUENCE" if finish.reason == "stop_sequence" else "COMPLETE"}


class BlockMachine(ClosingMachine):
    """A stream of one message, whose blocks come one after the other. A stop in one of them ends the message.

    A subclass is the table of its API. What is no text of a text block passes unread.
    """

    BLOCK_START: ClassVar[str]
    DELTA: ClassVar[str]
    BLOCK_END: ClassVar[str]
    MESSAGE_END: ClassVar[str]  # has the reason, and the usage or the place before it
    INDEX: ClassVar[str] = "index"
    TEXT: ClassVar[tuple[str, ...]]  # where a delta has its text
    START_TEXT: ClassVar[tuple[str, ...]]  # where the start of a block has its text
    CONTENT: ClassVar[tuple[str, ...]]  # where a whole answer has its blocks
    FINISH: ClassVar[tuple[str, ...]]  # where the end of a message has its reason
    write_finish: ClassVar[Callable[[Finish], Any]]

    def kind(self, event: Any) -> str | None:
        kind: str | None = get(event, "type")
        return kind

    def index(self, event: Any) -> int | None:
        index = get(event, self.INDEX)
        return index if type(index) is int else None

    def event(self, kind: str, index: int | None = None, **fields: Any) -> Any:
        """An event of this kind, of a block or of the message."""
        return {"type": kind, **({} if index is None else {self.INDEX: index}), **fields}

    def message_end(self, finish: Finish) -> list[Any]:
        """The events that end the message; without usage."""
        return [put(self.event(self.MESSAGE_END), {**type(self).write_finish(finish)}, *self.FINISH)]

    def with_finish(self, event: Any, finish: Finish) -> Any:
        """The API's own end of the message, with another reason."""
        told = get(event, *self.FINISH)
        return put(event, {**(told if isinstance(told, dict) else {}), **type(self).write_finish(finish)}, *self.FINISH)

    def read(self, event: Any) -> list[Any]:
        kind = self.kind(event)
        if self.matches:
            return self._after(event, kind)
        text = self.text(event, kind)
        if text:
            part = self.parts.get(self.index(event)) or self.part(self.index(event))
            text = clean(text)
            return self.changed(event, part, text, part.feed(text))
        return self._closing(event, kind) if kind in (self.BLOCK_END, self.MESSAGE_END) else [event]

    def text(self, event: Any, kind: str | None) -> str:
        return text_at(event, *self._path(kind))

    def _path(self, kind: str | None) -> tuple[str, ...]:
        return self.TEXT if kind == self.DELTA else self.START_TEXT if kind == self.BLOCK_START else ("",)

    def _closing(self, event: Any, kind: str | None) -> list[Any]:
        """Held text comes before the event that closes its block, and some patterns complete there."""
        out: list[Any] = []
        for index, part in self.parts.items():
            if kind == self.BLOCK_END and index != self.index(event):
                continue
            out += self.flush(part)
            if part.match is not None:
                finish = stopped(part.match)
                if kind == self.BLOCK_END:
                    return [*out, event, *self.matched(part.match, self.message_end(finish))]
                # Without the end of the block; what follows it is the API's own if its stream is read on.
                rest = [] if self.options.drain else self.message_end(finish)[1:]
                return [*out, self.with_finish(event, finish), *self.matched(part.match, rest)]
        return [*out, event]

    def cut(self, event: Any, text: str, rows: list[Any]) -> Any:
        return put(event, text, *self._path(self.kind(event)))

    def piece(self, event: Any, text: str, rows: list[Any]) -> Any:
        return put(self.event(self.DELTA, self.index(event)), text, *self.TEXT)

    def closing(self, event: Any, part: Part) -> list[Any]:
        assert part.match is not None
        return [self.event(self.BLOCK_END, self.index(event)), *self.message_end(stopped(part.match))]

    def _after(self, event: Any, kind: str | None) -> list[Any]:
        """The API's own closing events, when its stream is read on: of the others, those that belong to no block."""
        if kind == self.BLOCK_END and self.open and self.index(event) == self.index(self.open[0]):
            self.open.pop(0)
            return [event]
        if kind == self.MESSAGE_END:
            before = [ours for ours in self.open if self.kind(ours) == self.BLOCK_END]
            self.open = []
            return [*before, self.with_finish(event, stopped(self.matches[0]))]
        return [] if self.index(event) is not None else [event]

    def whole(self, answer: Any) -> Any:
        blocks = items(get(answer, *self.CONTENT))
        for number, block in enumerate(blocks):
            if get(block, "type") not in (None, "text"):
                continue
            text, match = self.options.truncate(text_at(block, "text"))
            if match is not None:
                self.matches[0] = match
                cut = {**without(block, "parsed_output"), "text": text}
                return self.with_whole_finish(put(answer, [*blocks[:number], cut], *self.CONTENT), stopped(match))
        return answer

    def with_whole_finish(self, answer: Any, finish: Finish) -> Any:
        return {**answer, **type(self).write_finish(finish)}


class Anthropic(BlockMachine):
    """Anthropic's messages, also beta, on Bedrock and on Vertex."""

    API = "anthropic"
    BLOCK_START, DELTA, BLOCK_END = "content_block_start", "content_block_delta", "content_block_stop"
    MESSAGE_END = "message_delta"
    TEXT, START_TEXT, CONTENT, FINISH = ("delta", "text"), ("content_block", "text"), ("content",), ("delta",)
    write_finish = to_anthropic

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            told = top(event)
            if told["type"] != "content_block_delta":
                return None
            delta = below(told["delta"])
            text = delta["text"]
            return (told["index"], text) if text and delta["type"] == "text_delta" else None

        return sole

    def text(self, event: Any, kind: str | None) -> str:
        path = self._path(kind)
        return text_at(event, *path) if get(event, path[0], "type") in ("text", "text_delta") else ""

    def piece(self, event: Any, text: str, rows: list[Any]) -> Any:
        return self.event(self.DELTA, self.index(event), delta={"type": "text_delta", "text": text})

    def message_end(self, finish: Finish) -> list[Any]:
        # The schema and the client's own accumulation want the count of tokens. It is null: nobody knows it.
        (end,) = super().message_end(finish)
        return [{**end, "usage": {"output_tokens": None}}, {"type": "message_stop"}]


class Bedrock(BlockMachine):
    """Bedrock's Converse: each event is a dict with its name as the only key."""

    API = "bedrock"
    BLOCK_START, DELTA, BLOCK_END = "contentBlockStart", "contentBlockDelta", "contentBlockStop"
    MESSAGE_END = "messageStop"
    INDEX = "contentBlockIndex"
    TEXT, START_TEXT, CONTENT = (DELTA, "delta", "text"), ("",), ("output", "message", "content")
    FINISH = (MESSAGE_END,)
    write_finish = to_bedrock

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            told = event["contentBlockDelta"]
            text = told["delta"]["text"]
            return (told["contentBlockIndex"], text) if text else None

        return sole

    def kind(self, event: Any) -> str | None:
        return next(iter(event), None)

    def index(self, event: Any) -> int | None:
        return super().index(next(iter(event.values()), None))

    def event(self, kind: str, index: int | None = None, **fields: Any) -> Any:
        return {kind: {**({} if index is None else {self.INDEX: index}), **fields}}


class Cohere(BlockMachine):
    """Cohere's v2 chat."""

    API = "cohere"
    BLOCK_START, DELTA, BLOCK_END, MESSAGE_END = "content-start", "content-delta", "content-end", "message-end"
    TEXT = START_TEXT = ("delta", "message", "content", "text")
    CONTENT, FINISH = ("message", "content"), ("delta",)

    write_finish = to_cohere

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            told = top(event)
            if told["type"] != "content-delta":
                return None
            text = below(below(below(told["delta"])["message"])["content"])["text"]
            return (told["index"], text) if text and not told.get("logprobs") else None

        return sole

    def rows(self, event: Any, text: str) -> list[Any]:
        return spelled([event["logprobs"]] if isinstance(get(event, "logprobs"), dict) else [], text)

    def cut(self, event: Any, text: str, rows: list[Any]) -> Any:
        cut = super().cut(event, text, rows)
        return {**cut, "logprobs": rows[0]} if rows else without(cut, "logprobs")

    def with_whole_finish(self, answer: Any, finish: Finish) -> Any:
        answer = super().with_whole_finish(answer, finish)
        return put(answer, without(answer["message"], "tool_calls"), "message")
