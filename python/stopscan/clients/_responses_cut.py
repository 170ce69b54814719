"""Cutting what repeats a text whole: the parts, items and responses of the Responses API."""

from __future__ import annotations

from typing import Any

from stopscan import StopMatch
from stopscan.clients._logprobs import spelled
from stopscan.clients._machine import Options, stopped
from stopscan.clients._objects import get, has, replace, without
from stopscan.finish import to_responses

TEXT_DONE = "response.output_text.done"
TEXTS = ("output_text", TEXT_DONE)  # not "reasoning_text"

Cut = tuple[Any, StopMatch | None]  # the very object without a match


def cut_part(part: Any, options: Options) -> Cut:
    """Returns a content part, or a ``done`` event with the text of one, up to the stop."""
    if get(part, "type") not in TEXTS:
        return part, None
    text, match = options.stops.truncate(get(part, "text") or "", include_stop=options.include_stop)
    return (part, None) if match is None else (part_with(part, text), match)


def part_with(part: Any, text: str) -> Any:
    """Returns the part with the beginning ``text`` of its text, and what is said of that."""
    fields: dict[str, Any] = {"text": text}
    if get(part, "logprobs"):
        fields["logprobs"] = [
            row for begin, row in spelled(get(part, "logprobs"), get(part, "text")) if begin < len(text)
        ]
    if get(part, "annotations"):
        fields["annotations"] = within(get(part, "annotations"), text)
    return replace(without(part, "parsed"), **fields)


def within(annotations: list[Any], text: str) -> list[Any]:
    """Returns the annotations that are of the text as far as it goes."""
    return [annotation for annotation in annotations if (get(annotation, "end_index") or 0) <= len(text)]


def cut_item(item: Any, options: Options) -> Cut:
    """Returns an output item up to the stop, without the content after it. Only messages are read."""
    if get(item, "type") != "message":
        return item, None
    content = []
    for part in get(item, "content") or ():
        cut, match = cut_part(part, options)
        content.append(cut)
        if match is not None:
            return item_with(item, content), match
    return item, None


def item_with(item: Any, content: list[Any]) -> Any:
    return replace(item, content=content, **({"status": "completed"} if has(item, "status") else {}))


def cut_response(response: Any, options: Options) -> Cut:
    """Returns a response up to the stop, without the output after it; its usage is what it was."""
    output = []
    for item in get(response, "output") or ():
        cut, match = cut_item(item, options)
        output.append(cut)
        if match is not None:
            return replace(response, output=output, **to_responses(stopped(match))), match
    return response, None
