"""The items of a Responses answer, whole and as the events of a stream: a message, reasoning or a function call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from parts import Kind, Part

Named = tuple[str, dict[str, Any]]  # an event's name without `response.`, and what it has
TEXTS = {"answer": "output_text", "reasoning": "reasoning_text"}


class Item:
    def __init__(self, kind: Kind, index: int, reply: str) -> None:
        self._kind = kind
        self._index = index
        self._id = f"item_{reply}_{index}"
        self._text = ""
        self._call: dict[str, Any] = {}

    def takes(self, part: Part) -> bool:
        """Whether the part belongs to this item; a call has one of its own."""
        return part.call is None and part.kind == self._kind

    def begun(self, part: Part) -> Iterator[Named]:
        if part.call is not None:
            self._call = {"call_id": part.call.id, "name": part.call.name}
        item = self.whole("in_progress")
        if self._kind == "tool_call":
            yield "output_item.added", {"output_index": self._index, "item": item}
            return
        (content,) = item["content"]
        yield "output_item.added", {"output_index": self._index, "item": {**item, "content": []}}
        yield "content_part.added", {**self._place(), "part": content}

    def delta(self, part: Part) -> Named:
        text = part.call.json if part.call is not None else part.text
        self._text += text
        if self._kind == "tool_call":
            place = {"item_id": self._id, "output_index": self._index}
            return "function_call_arguments.delta", {**place, "delta": text}
        return f"{TEXTS[self._kind]}.delta", {**self._place(), **self._logprobs(), "delta": text}

    def done(self, status: str) -> Iterator[Named]:
        item = self.whole(status)
        if self._kind == "tool_call":
            place = {"item_id": self._id, "output_index": self._index}
            whole = {"name": self._call["name"], "arguments": self._text}
            yield "function_call_arguments.done", {**place, **whole}
        else:
            (content,) = item["content"]
            yield f"{TEXTS[self._kind]}.done", {**self._place(), **self._logprobs(), "text": self._text}
            yield "content_part.done", {**self._place(), "part": content}
        yield "output_item.done", {"output_index": self._index, "item": item}

    def whole(self, status: str) -> dict[str, Any]:
        item: dict[str, Any] = {"id": self._id, "status": status}
        if self._kind == "tool_call":
            return {**item, "type": "function_call", **self._call, "arguments": self._text}
        if self._kind == "reasoning":
            content = [{"type": "reasoning_text", "text": self._text}]
            return {**item, "type": "reasoning", "summary": [], "content": content}
        part = {"type": "output_text", "text": self._text, "annotations": [], "logprobs": []}
        return {**item, "type": "message", "role": "assistant", "content": [part]}

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._id, "output_index": self._index, "content_index": 0}

    def _logprobs(self) -> dict[str, Any]:
        return {"logprobs": []} if self._kind == "answer" else {}


def items_of(parts: Iterable[Part], reply: str) -> list[Item]:
    """The items that the parts make."""
    items: list[Item] = []
    for part in parts:
        if not items or not items[-1].takes(part):
            items.append(Item(part.kind, len(items), reply))
            list(items[-1].begun(part))
        items[-1].delta(part)
    return items
