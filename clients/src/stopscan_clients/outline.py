"""Remembers what a stream of OpenAI's Responses API has sent, because the closing events must repeat it.

A text, its part, its item and the response each end with a closing event that contains the text again. At a stop, these
events are made from what was remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopscan_clients.paths import Path, get, index, items, members, only, put
from stopscan_clients.wire_format import Memory

# The field in which an event has its item or part. The keys are kinds of events without the last word. For example,
# `response.output_item.added` has the item in the field `item`. Events of all other kinds have the response, in the
# field `response`.
NODES = {"response.output_item": "item", "response.content_part": "part"}


class Outline(Memory):
    def __init__(self, api: Any) -> None:
        super().__init__(api)
        self._answer: Any = {"object": "response"}  # the response so far
        self._last: int | None = None  # the `sequence_number` of the last event that was sent
        self._sent = 0  # the `sequence_number` of the last event that was sent and that the API itself made
        self._numbers: dict[Any, int] = {}  # from the id of an item to its index, for events without an index

    def place(self, event: Any) -> Path:
        """Returns the indexes of the item and the part to which an event belongs. llama.cpp sends the id of the item
        without an index (llama.cpp#20607). For such events, the items are counted here."""
        item, part = index(event.get("output_index")), index(event.get("content_index"))
        if item is None:
            names = event.get("item_id"), get(event, "item", "id"), get(event, "item", "call_id")
            name = next((name for name in names if isinstance(name, str) and name), None)
            if name is None and part is None:
                return ()
            last = len(self._numbers)
            item = max(last - 1, 0) if name is None else self._numbers.setdefault(name, last)
        return (item,) if part is None else (item, part)

    def learn(self, event: Any, kind: str) -> None:
        number = event.get("sequence_number")
        if self._last is None and type(number) is int:
            self._last = self._sent = number - 1
        name = NODES.get(kind.rpartition(".")[0], "response")
        node = event.get(name)
        item, part, *_ = *self.place(event), 0, 0
        at: Path = ("output", item, "content", part)
        if kind == "response.output_text.annotation.added":
            content = members(get(self._answer, *at)) or {"type": "output_text"}
            node = {**content, "annotations": [*items(content.get("annotations")), event.get("annotation")]}
            self._answer = put(self._answer, node, *at)
        elif name == "response" and isinstance(node, dict):
            self._answer = {**self._answer, **node, "output": node.get("output") or items(self._answer.get("output"))}
        elif isinstance(node, dict):
            self._answer = put(self._answer, node, *(at[:2] if name == "item" else at))

    def numbered(self, out: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Gives a ``sequence_number`` to each event that the machine has made. Events of the API keep their numbers,
        because a client that resumes the stream sends the API the last number that it got. A delta that the machine has
        made must not shift these numbers, so it gets the same number as the API's next event."""
        for event, source in out:
            number = event.get("sequence_number")
            if source is None and self._last is not None:
                self._last = (self._sent if "delta" in event else self._last) + 1
                event["sequence_number"] = self._last
            elif type(number) is int:
                self._last = self._sent = number
        return out

    def message(self, passage: Any, opened: set[Path], write: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what the closing events must repeat: the part in which the stop fired, its item, and the response.
        Their text ends at the stop."""
        _, item_at, part_at = passage.place
        text, at = "".join(passage.sent), ("output", item_at, "content", part_at)
        item = {"type": "message", "role": "assistant", **members(get(self._answer, *at[:2])), "status": "completed"}
        item["id"] = item.get("id") or get(passage.event, "item_id")
        part = {"type": "output_text", "annotations": [], **members(get(item, *at[2:])), "text": text}
        part = self.api.beside_piece.cut({**part, "logprobs": passage.entries}, text)
        # An error that the API reports after the stop is left out, because the answer is complete.
        answer = put({**put(self._answer, item, *at[:2]), "error": None}, part, *at)
        answer["usage"] = answer.get("usage") or self.facts["usage"]
        answer = only(answer, self.api.names_of_events, at)
        item, part = get(answer, *at[:2]), get(answer, *at)
        item["content"] = _without_missing(item["content"], (item_at, part_at) in opened)
        answer["output"] = _without_missing(answer["output"], (item_at,) in opened)
        return {"item_id": item["id"], "part": part, "item": item, "response": {**answer, **write}}


def _without_missing(nodes: list[Any], last: bool) -> list[Any]:
    """Returns the items or parts in ``nodes`` of which the client has received an event. ``None`` in ``nodes`` stands
    for an item or part that never came. The client has received an event of the last one only if ``last`` is true."""
    return [node for node in (nodes if last else nodes[:-1]) if node is not None]
