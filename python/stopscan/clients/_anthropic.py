from __future__ import annotations

from typing import Any

from stopscan.clients._blocks import BlockMachine
from stopscan.clients._objects import get, replace, sibling
from stopscan.finish import Finish, to_anthropic

HELPER = "these events are made by MessageStream: give scan_events the MessageStream itself"


class Anthropic(BlockMachine):
    """Anthropic's messages, of the official client (beta and Bedrock's too) or as dicts."""

    BLOCK_START = "content_block_start"
    DELTA = "content_block_delta"
    BLOCK_END = "content_block_stop"
    MESSAGE_END = "message_delta"

    def sole(self, event: Any) -> tuple[Any, str] | None:
        told = self.fields(event)
        if self.matches or told.get("type") != self.DELTA:
            return None
        delta = self.fields(told.get("delta"))
        text = delta.get("text") if delta.get("type") == "text_delta" else None
        return (told.get("index"), text) if text else None

    def kind(self, event: Any) -> str | None:
        kind: str | None = get(event, "type")
        if kind == "text":
            raise TypeError(HELPER)
        return kind

    def index(self, event: Any) -> int | None:
        index: int | None = get(event, "index")
        return index

    def text(self, event: Any) -> str:
        block = get(event, "content_block")
        return get(block, "text") or "" if get(block, "type") == "text" else ""

    def with_text(self, event: Any, text: str) -> Any:
        name = "delta" if self.kind(event) == self.DELTA else "content_block"
        return replace(event, **{name: replace(get(event, name), text=text)})

    def delta(self, event: Any, text: str) -> Any:
        delta = {"type": "text_delta", "text": text}
        return _make(event, "RawContentBlockDeltaEvent", type=self.DELTA, index=get(event, "index"), delta=delta)

    def block_end(self, event: Any) -> Any:
        return _make(event, "RawContentBlockStopEvent", type=self.BLOCK_END, index=get(event, "index"))

    def message_end(self, event: Any, finish: Finish) -> list[Any]:
        # The schema and the client's own accumulation want the count of tokens. It is null: nobody knows it.
        fields = {"type": self.MESSAGE_END, "delta": to_anthropic(finish), "usage": {"output_tokens": None}}
        return [
            _make(event, "RawMessageDeltaEvent", **fields),
            _make(event, "RawMessageStopEvent", type="message_stop"),
        ]

    def with_finish(self, event: Any, finish: Finish) -> Any:
        return replace(event, delta=replace(get(event, "delta"), **to_anthropic(finish)))


def _make(event: Any, name: str, **fields: Any) -> Any:
    # The client's classes make objects of the dicts in ``fields``.
    return sibling(event, name, f"Beta{name}", **fields)
