"""What the Responses API says more than once: parts, items and responses, cut and made."""

from __future__ import annotations

from typing import Any

from stopscan import StopMatch
from stopscan_clients._json import get, items, number, text_at, without
from stopscan_clients._machines.logprobs import spelled
from stopscan_clients._machines.machine import Options, stopped
from stopscan.finish import to_openai, to_responses

TEXT_DONE = "response.output_text.done"
PART_DONE = "response.content_part.done"
ITEM_DONE = "response.output_item.done"
COMPLETED = "response.completed"
TEXTS = ("output_text", TEXT_DONE)  # not "reasoning_text"
CLOSING = (TEXT_DONE, PART_DONE, ITEM_DONE, COMPLETED)  # in this order

Place = tuple[int, int]  # output_index, content_index
Cut = tuple[Any, StopMatch | None]  # the very dict without a match

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


def cut_part(part: Any, options: Options) -> Cut:
    """Returns a content part, or a ``done`` event with the text of one, up to the stop."""
    if get(part, "type") not in TEXTS:
        return part, None
    whole = text_at(part, "text")
    text, match = options.truncate(whole)
    if match is None:
        return part, None
    fields: dict[str, Any] = {"text": text}
    if get(part, "logprobs"):
        fields["logprobs"] = [row for begin, row in spelled(part["logprobs"], whole) if begin < len(text)]
    if get(part, "annotations"):
        fields["annotations"] = within(part["annotations"], text)
    return {**without(part, "parsed"), **fields}, match


def within(annotations: Any, text: str) -> list[Any]:
    """Returns the annotations that are of the text as far as it goes."""
    return [annotation for annotation in items(annotations) if number(get(annotation, "end_index")) <= len(text)]


def cut_item(item: Any, options: Options) -> Cut:
    """Returns an output item up to the stop, without the content after it. Only messages are read."""
    content: list[Any] = []
    for part in items(get(item, "content")) if get(item, "type") == "message" else ():
        cut, match = cut_part(part, options)
        content.append(cut)
        if match is not None:
            return item_with(item, content), match
    return item, None


def item_with(item: Any, content: list[Any]) -> Any:
    return {**item, "content": content, **({"status": "completed"} if "status" in item else {})}


def cut_response(response: Any, options: Options) -> Cut:
    """Returns a response up to the stop, without the output after it; its usage is what it was."""
    output = []
    for item in items(get(response, "output")):
        cut, match = cut_item(item, options)
        output.append(cut)
        if match is not None:
            return {**response, "output": output, **finish_fields(match)}, match
    return response, None


def finish_fields(match: StopMatch) -> dict[str, Any]:
    """The status of a response that a stop has ended, and which it was: a field that servers have for chat."""
    named = {key: value for key, value in to_openai(stopped(match)).items() if key == "matched_stop"}
    return {**to_responses(stopped(match)), **named}


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
        if type(index) is not int:
            names = get(event, "item_id"), get(event, "item", "id"), get(event, "item", "call_id")
            name = next((name for name in names if isinstance(name, str) and name), None)
            last = len(self._named)
            index = self._named.setdefault(name, last) if name else max(last - 1, 0)
        return index, number(get(event, "content_index"))

    def learn(self, event: Any, kind: Any) -> None:
        field = FIELDS.get(kind) if isinstance(kind, str) else None
        told = get(event, field) if field else None
        if not isinstance(told, dict):
            return
        if field == "response":
            self.response = told
        elif field == "item":
            self.items[self.place_of(event)[0]] = told
        elif field == "part":
            self.parts[self.place_of(event)] = told
        else:
            self.annotations.setdefault(self.place_of(event), []).append(told)

    def after(self, event: Any, kind: str, place: Place, match: StopMatch) -> list[Any]:
        """The events that close the response after this closing event of its."""
        if kind not in CLOSING[:-1]:
            return []
        cut = {TEXT_DONE: event, PART_DONE: get(event, "part"), ITEM_DONE: get(event, "item")}[kind]
        return self.close(event, CLOSING[CLOSING.index(kind) + 1], place, cut, match)

    def close(self, event: Any, first: str, place: Place, cut: Any, match: StopMatch) -> list[Any]:
        """The closing events from this kind on. ``event`` is the one before them, ``cut`` the text, part or item."""
        index, part = place
        where = {"item_id": get(event, "item_id"), "output_index": index, "content_index": part}
        number = get(event, "sequence_number")
        out = []
        for kind in CLOSING[CLOSING.index(first) :]:
            fields: dict[str, Any]
            if kind == TEXT_DONE:
                fields = {**where, "text": cut["text"], "logprobs": items(get(cut, "logprobs"))}
            elif kind == PART_DONE:
                cut = self._part(place, cut)
                fields = {**where, "part": cut}
            elif kind == ITEM_DONE:
                cut = self._item(event, place, cut)
                fields = {"output_index": index, "item": cut}
            else:
                before = [self.items[at] for at in sorted(self.items) if at < index]
                response = self.response or {"object": "response"}
                fields = {"response": {**response, "output": [*before, cut], **finish_fields(match)}}
            if isinstance(number, int):
                number += 1
                fields["sequence_number"] = number
            out.append({"type": kind, **fields})
        return out

    def _part(self, place: Place, cut: Any) -> Any:
        part = self.parts.get(place) or {"type": "output_text", "annotations": []}
        fields: dict[str, Any] = {"text": cut["text"]}
        if get(cut, "logprobs"):
            fields["logprobs"] = cut["logprobs"]
        if place in self.annotations:
            fields["annotations"] = within(self.annotations[place], cut["text"])
        return {**part, **fields}

    def _item(self, event: Any, place: Place, part: Any) -> Any:
        index, last = place
        item = self.items.get(index)
        if item is None:
            item = {"type": "message", "role": "assistant", "status": "in_progress", "id": get(event, "item_id")}
        before = [self.parts[index, number] for number in range(last) if (index, number) in self.parts]
        return item_with(item, [*before, part])
