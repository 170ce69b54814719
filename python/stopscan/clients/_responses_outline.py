from __future__ import annotations

from typing import Any

from stopscan.clients._objects import get, replace, sibling
from stopscan.clients._responses_cut import TEXT_DONE, item_with, within
from stopscan.finish import Finish, to_responses

PART_DONE = "response.content_part.done"
ITEM_DONE = "response.output_item.done"
COMPLETED = "response.completed"

Place = tuple[int, int]  # output_index, content_index

# The events that say something of the whole, and where they say it.
FIELDS = {
    "response.created": "response",
    "response.queued": "response",
    "response.in_progress": "response",
    "response.output_item.added": "item",
    ITEM_DONE: "item",
    "response.content_part.added": "part",
    PART_DONE: "part",
    "response.output_text.annotation.added": "annotation",
}


class Outline:
    """What the events have told of the response, to make of it the events that close it."""

    def __init__(self) -> None:
        self.response: Any = None
        self.items: dict[int, Any] = {}
        self.parts: dict[Place, Any] = {}
        self.annotations: dict[Place, list[Any]] = {}

    def learn(self, event: Any, kind: str) -> None:
        field = FIELDS.get(kind)
        if field == "response":
            self.response = get(event, field)
        elif field == "item":
            self.items[get(event, "output_index")] = get(event, field)
        elif field == "part":
            self.parts[place_of(event)] = get(event, field)
        elif field == "annotation":
            self.annotations.setdefault(place_of(event), []).append(get(event, field))

    def text_done(self, event: Any, place: Place, cut: Any, finish: Finish) -> list[Any]:
        """The events from the end of a text on, which ``cut`` has; ``event`` is the one before them."""
        fields = {"text": get(cut, "text"), "logprobs": get(cut, "logprobs")}
        done = _next(event, "TextDone", TEXT_DONE, **_where(event, place), **fields)
        return [done, *self.part_done(done, place, cut, finish)]

    def part_done(self, event: Any, place: Place, cut: Any, finish: Finish) -> list[Any]:
        part = self.parts.get(place)
        if part is None:
            part = sibling(event, "ResponseOutputText", "OutputText", type="output_text", text="", annotations=[])
        fields: dict[str, Any] = {"text": get(cut, "text")}
        if get(cut, "logprobs"):
            fields["logprobs"] = get(cut, "logprobs")
        if place in self.annotations:
            fields["annotations"] = within(self.annotations[place], get(cut, "text"))
        part = replace(part, **fields)
        done = _next(event, "ContentPartDone", PART_DONE, **_where(event, place), part=part)
        return [done, *self.item_done(done, place, part, finish)]

    def item_done(self, event: Any, place: Place, part: Any, finish: Finish) -> list[Any]:
        index, last = place
        item = self.items.get(index)
        if item is None:
            fields = {"type": "message", "role": "assistant", "status": "in_progress"}
            item = sibling(event, "ResponseOutputMessage", id=get(event, "item_id"), content=[], **fields)
        before = [self.parts[index, number] for number in range(last) if (index, number) in self.parts]
        item = item_with(item, [*before, part])
        done = _next(event, "OutputItemDone", ITEM_DONE, output_index=index, item=item)
        return [done, *self.completed(done, index, item, finish)]

    def completed(self, event: Any, index: int, item: Any, finish: Finish) -> list[Any]:
        response = self.response
        if response is None:
            response = sibling(event, "ResponsesAPIResponse", "Response", object="response", usage=None)
        output = [self.items[number] for number in sorted(self.items) if number < index]
        response = replace(response, output=[*output, item], **to_responses(finish))
        return [_next(event, "Completed", COMPLETED, response=response)]


def place_of(event: Any) -> Place:
    return get(event, "output_index") or 0, get(event, "content_index") or 0


def _where(event: Any, place: Place) -> dict[str, Any]:
    return {"item_id": get(event, "item_id"), "output_index": place[0], "content_index": place[1]}


def _next(event: Any, name: str, kind: str, **fields: Any) -> Any:
    """An event of this kind with the sequence number after that of ``event``. LiteLLM's classes have other names."""
    number = get(event, "sequence_number")
    if number is not None:
        fields["sequence_number"] = number + 1
    return sibling(event, f"Response{name}Event", f"Output{name}Event", f"{name}Event", type=kind, **fields)
