"""What Responses says of an answer: its events say each text four more times, whole, in what closes the text, its part,
its item and the response. So the events that a stop makes need all that the stream has said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopscan_clients.api import Memory
from stopscan_clients.paths import Path, get, items

# Where an event has an answer, an item or a part.
NODES = {
    "response.created": "response",
    "response.queued": "response",
    "response.in_progress": "response",
    "response.completed": "response",
    "response.incomplete": "response",
    "response.failed": "response",
    "response.output_item.added": "item",
    "response.output_item.done": "item",
    "response.content_part.added": "part",
    "response.content_part.done": "part",
}
LEVELS = {"response": 0, "item": 1, "part": 2}
BELOW = ("output", "content")


class Outline(Memory):
    def __init__(self, api: Any) -> None:
        super().__init__(api)
        self._nodes: dict[Path, Any] = {}  # what was said of the answer, its items and their parts
        self._numbers: dict[Any, int] = {}  # of items whose events have no index, as they came

    def place(self, event: Any) -> Path:
        """The indexes of the item and the part. llama.cpp says only of which item an event is (llama.cpp#20607)."""
        index, part = event.get("output_index"), event.get("content_index")
        if type(index) is not int:
            names = event.get("item_id"), get(event, "item", "id"), get(event, "item", "call_id")
            name = next((name for name in names if isinstance(name, str) and name), None)
            if name is None and type(part) is not int:
                return ()
            last = len(self._numbers)
            index = max(last - 1, 0) if name is None else self._numbers.setdefault(name, last)
        return (index, part) if type(part) is int else (index,)

    def learn(self, event: Any, kind: str) -> None:
        number = event.get("sequence_number")
        if type(number) is int and kind not in self.api.over:
            self.facts["sequence_number"] = number
        elif type(number) is int:  # of an event in whose place others come
            self.facts.setdefault("sequence_number", number - 1)
        name = NODES.get(kind)
        if name is not None and isinstance(event.get(name), dict):
            self._nodes[(*self.place(event), 0, 0)[: LEVELS[name]]] = event[name]
        elif kind == "response.output_text.annotation.added":
            place = (*self.place(event), 0, 0)[:2]
            part = self._nodes.get(place, {"type": "output_text"})
            self._nodes[place] = {**part, "annotations": [*items(part.get("annotations")), event.get("annotation")]}

    def made(self, template: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:
        made = super().made(template, facts)
        number = self.facts.get("sequence_number")
        if number is not None:  # held text has the number of the event in whose place it comes
            made["sequence_number"] = self.facts["sequence_number"] = number + ("delta" not in template)
        return made

    def message(self, part: Any, opened: set[Path], write: Mapping[str, Any]) -> Mapping[str, Any]:
        """The part, its item and the response as they are at the stop."""
        item_at, part_at = part.place[1], part.place[1:]
        item_id = get(self._nodes.get((item_at,)), "id") or get(part.event, "item_id")
        text = "".join(part.said)
        told = {"type": "output_text", "annotations": [], **(self._nodes.get(part_at) or {}), "text": text}
        if part.rows or "logprobs" in told:
            told["logprobs"] = part.rows
        told = self.api.beside_piece.cut(told, text)
        item = self._with(
            self._nodes.get((item_at,)) or {"type": "message", "role": "assistant", "id": item_id},
            (item_at,),
            1,
            [told] if text or part_at in opened else [],
            part_at[1],
        )
        item["status"] = "completed"
        response = self._nodes.get(()) or {"object": "response"}
        response = self.api.beside_answer.cut(response, text)
        response = self._with(response, (), 0, [item] if text or (item_at,) in opened else [], item_at)
        if response.get("error") is not None:  # behind the stop
            response["error"] = None
        return {"item_id": item_id, "part": told, "item": item, "response": {**response, **write}}

    def _with(self, node: Any, at: Path, level: int, last: list[Any], count: int) -> Any:
        """The node with what came before its last child, and that child."""
        said = items(node.get(BELOW[level]))
        before = [self._nodes.get((*at, i)) or (said[i] if i < len(said) else None) for i in range(count)]
        return {**node, BELOW[level]: [*(child for child in before if child is not None), *last]}
