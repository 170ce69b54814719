"""The recorded events as the official clients make them, without a network; and what they say, whatever they are."""

from __future__ import annotations

from typing import Any

import ollama
import pytest
from anthropic._models import construct_type as anthropic_object
from anthropic.types import RawMessageStreamEvent
from openai._models import construct_type as openai_object
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from stopscan_clients._machines.apis import machine_of
from stopscan_clients._machines.machine import Options
from stopscan_clients._objects.events import Objects, json_of

types = pytest.importorskip("google.genai.types", reason="google-genai is not installed")

MAKERS: dict[str, Any] = {
    "chat": lambda event: openai_object(value=event, type_=ChatCompletionChunk),
    "completions": lambda event: openai_object(value=event, type_=Completion),
    "responses": lambda event: openai_object(value=event, type_=ResponseStreamEvent),
    "anthropic": lambda event: anthropic_object(value=event, type_=RawMessageStreamEvent),
    "gemini": types.GenerateContentResponse.model_validate,
    "ollama": ollama.ChatResponse.model_validate,
    "generate": ollama.GenerateResponse.model_validate,
    "bedrock": lambda event: event,  # boto3 gives dicts
}


def field(obj: Any, *names: str | int) -> Any:
    """What is at the end of a path; None where it breaks off."""
    for name in names:
        if isinstance(name, int):
            obj = obj[name] if obj and len(obj) > name else None
        else:
            obj = obj.get(name) if isinstance(obj, dict) else getattr(obj, name, None)
    return obj


def text_of(api: str, event: Any) -> str | None:
    """The text that an event brings; None for an event that is of another kind."""
    if api == "chat":
        return field(event, "choices", 0, "delta", "content")
    if api == "completions":
        return field(event, "choices", 0, "text")
    if api == "responses":
        return field(event, "delta") if field(event, "type") == "response.output_text.delta" else None
    if api == "anthropic":
        return field(event, "delta", "text") if field(event, "type") == "content_block_delta" else None
    if api == "gemini":
        part = field(event, "candidates", 0, "content", "parts", 0)
        return None if field(part, "thought") else field(part, "text")
    if api == "ollama":
        return field(event, "message", "content")
    if api == "generate":
        return field(event, "response")
    return field(event, "contentBlockDelta", "delta", "text")


def machine_for(event: Any, options: Options) -> Any:
    """The machine for a stream that begins with this event, a dict or an object."""
    machine = machine_of(json_of(event))
    assert machine is not None
    return machine(options, None if type(event) is dict else Objects(event, machine.API))
