from __future__ import annotations

from typing import Any

from stopscan.clients._blocks import BlockMachine
from stopscan.finish import Finish, to_bedrock


class Bedrock(BlockMachine):
    """Bedrock's Converse, as boto3 gives it: each event is a dict with its name as the only key."""

    BLOCK_START = "contentBlockStart"
    DELTA = "contentBlockDelta"
    BLOCK_END = "contentBlockStop"
    MESSAGE_END = "messageStop"

    def sole(self, event: Any) -> tuple[int, str] | None:
        delta = event.get(self.DELTA)
        text = delta["delta"].get("text") if delta and not self.matches else None
        return (delta["contentBlockIndex"], text) if text else None

    def kind(self, event: Any) -> str | None:
        return next(iter(event), None)

    def index(self, event: Any) -> int | None:
        fields: dict[str, Any] = next(iter(event.values()), {})
        return fields.get("contentBlockIndex")

    def text(self, event: Any) -> str:
        return ""  # the start of a block has a tool's name, or nothing

    def with_text(self, event: Any, text: str) -> Any:
        return self.delta(event, text)

    def delta(self, event: Any, text: str) -> Any:
        return {self.DELTA: {**event[self.DELTA], "delta": {"text": text}}}

    def block_end(self, event: Any) -> Any:
        return {self.BLOCK_END: {"contentBlockIndex": self.index(event)}}

    def message_end(self, event: Any, finish: Finish) -> list[Any]:
        return [{self.MESSAGE_END: {**to_bedrock(finish)}}]

    def with_finish(self, event: Any, finish: Finish) -> Any:
        return {self.MESSAGE_END: {**event[self.MESSAGE_END], **to_bedrock(finish)}}
