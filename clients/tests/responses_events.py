"""The events of a Responses stream, as OpenAI and as llama.cpp send them."""

from __future__ import annotations

from typing import Any

import wire
from events import field

CLOSING = ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
NAMED = "'matched_stop': 'END'"


def kinds(events: Any) -> list[str]:
    return [field(event, "type").removeprefix("response.") for event in events]


def answer(*parts: list[str]) -> list[Any]:
    stream = wire.ResponsesStream()
    stream.item({"id": "rs", "type": "reasoning", "summary": []})
    stream.message(*parts)
    stream.message(["later"])
    return stream.completed()


def llama_cpp(*deltas: str) -> list[Any]:
    """Returns events as llama.cpp sends them (`to_json_oaicompat_resp_final`): no event has an index, and all `done`
    events come at the end."""
    text = "".join(deltas)
    thought = {"id": "rs", "type": "reasoning", "summary": [], "content": [], "status": "in_progress"}
    call = {"call_id": "fc_1", "type": "function_call", "name": "f", "arguments": "{}", "status": "completed"}
    message = wire.output_message([wire.output_text(text)])
    named = {"item_id": "msg_1"}
    response = {"id": "resp_1", "object": "response", "status": "in_progress"}
    pairs: list[tuple[str, dict[str, Any]]] = [
        ("created", {"response": response}),
        ("output_item.added", {"item": thought}),
        ("reasoning_text.delta", {"item_id": "rs", "delta": "END"}),
        ("output_item.added", {"item": wire.output_message([], "in_progress")}),
        ("content_part.added", {**named, "part": {"type": "output_text", "text": ""}}),
        *[("output_text.delta", {**named, "delta": delta}) for delta in deltas],
        ("output_item.added", {"item": call}),
        ("function_call_arguments.delta", {"item_id": "fc_1", "delta": "{}"}),
        ("output_item.done", {"item": thought}),
        ("output_text.done", {**named, "text": text}),
        ("content_part.done", {**named, "part": wire.output_text(text)}),
        ("output_item.done", {"item": message}),
        ("output_item.done", {"item": call}),
        ("completed", {"response": {**response, "status": "completed", "output": [thought, message, call]}}),
    ]
    return [{"type": f"response.{kind}", **fields} for kind, fields in pairs]
