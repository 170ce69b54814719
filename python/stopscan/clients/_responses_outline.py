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
        self._named: dict[Any, int] = {}  # the items of events that say no index, as they came

    def place_of(self, event: Any) -> Place:
        """Where the text of the event is. llama.cpp says only of which item it is (ggml-org/llama.cpp#20607)."""
        index = get(event, "output_index")
        if index is None:
            item = get(event, "item")
            name = get(event, "item_id") or get(item, "id") or get(item, "call_id")
            last = len(self._named)
            index = self._named.setdefault(name, last) if name else max(last - 1, 0)
        return index, get(event, "content_index") or 0

    def learn(self, event: Any, kind: str) -> None:
        field = FIELDS.get(kind)
        if field == "response":
            self.response = get(event, field)
        elif field == "item":
            self.items[self.place_of(event)[0]] = get(event, field)
        elif field == "part":
            self.parts[self.place_of(event)] = get(event, field)
        elif field == "annotation":
            self.annotations.setdefault(self.place_of(event), []).append(get(event, field))

    def text_done(self, event: Any, place: Place, cut: Any, finish: Finish) -> list[Any]:
        """The events from the end of a text on, which ``cut`` has; ``event`` is the one before them."""
        fields = {"text": get(cut, "text"), "logprobs": get(cut, "logprobs")}
        done = _next(event, "TextDone", TEXT_DONE, **_where(event, place), **fields)
        return [done, *self.part_done(done, place, cut, finish)]

    def part_done(self, event: Any, place: Place, cut: Any, finish: Finish) -> list[Any]:
        part = self.parts.get(place)
        if part is None:
            names = ("ResponseOutputText", "ContentPartDonePartOutputText")
            part = sibling(event, *names, type="output_text", annotations=[])
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
            names = ("ResponseOutputMessage", "GenericResponseOutputItem")
            fields = {"type": "message", "role": "assistant", "status": "in_progress"}
            item = sibling(event, *names, id=get(event, "item_id"), **fields)
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


def of_item(event: Any) -> bool:
    """Whether the event is of an item, or of the whole response."""
    return any(get(event, name) is not None for name in ("output_index", "item_id", "item"))


def _where(event: Any, place: Place) -> dict[str, Any]:
    return {"item_id": get(event, "item_id"), "output_index": place[0], "content_index": place[1]}


def _next(event: Any, name: str, kind: str, **fields: Any) -> Any:
    """An event of this kind with the sequence number after that of ``event``. LiteLLM's classes have other names."""
    number = get(event, "sequence_number")
    if number is not None:
        fields["sequence_number"] = number + 1
    return sibling(event, f"Response{name}Event", f"Output{name}Event", f"{name}Event", type=kind, **fields)
