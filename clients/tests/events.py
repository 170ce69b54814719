"""Helpers that read events, which may be dicts or objects of the official clients, and that feed them to a machine."""

from __future__ import annotations

from typing import Any

from stopscan_clients.machine import Machine, ScanOptions, machine_of

# APIs whose events always have the text at one path, with that path.
OTHERS: dict[str, tuple[str | int, ...]] = {
    "watsonx": ("results", 0, "generated_text"),
    "llama_on_bedrock": ("generation",),
    "sglang": ("text",),
    "dashscope": ("output", "choices", 0, "message", "content"),
    "dashscope_text": ("output", "text"),
}


def field(obj: Any, *names: str | int) -> Any:
    """Returns the value at the end of a path, or None if the path does not exist."""
    for name in names:
        if isinstance(name, int):
            obj = obj[name] if obj and len(obj) > name else None
        else:
            obj = obj.get(name) if isinstance(obj, dict) else getattr(obj, name, None)
    return obj


def text_of(api: str, event: Any) -> str | None:
    """Returns the text of an event, or None for an event of another kind."""
    if api == "chat":
        return field(event, "choices", 0, "delta", "content")
    if api == "completions":
        return field(event, "choices", 0, "text")
    if api == "responses":
        return field(event, "delta") if field(event, "type") == "response.output_text.delta" else None
    if api == "anthropic":
        return field(event, "delta", "text") if field(event, "type") == "content_block_delta" else None
    if api == "cohere":
        return field(event, "delta", "message", "content", "text") if field(event, "type") == "content-delta" else None
    if api == "gemini":
        part = field(event, "candidates", 0, "content", "parts", 0)
        return None if field(part, "thought") else field(part, "text")
    if api == "ollama":
        return field(event, "message", "content")
    if api == "generate":
        return field(event, "response")
    if api == "llama":
        return field(event, "content")
    if api in OTHERS:
        return field(event, *OTHERS[api])
    if api == "tgi":
        return None if field(event, "token", "special") else field(event, "token", "text")
    if api == "conversations":
        content = field(event, "content")
        return field(content, "text") if isinstance(content, dict) else content
    return field(event, "contentBlockDelta", "delta", "text")


def machine_for(event: Any, options: ScanOptions) -> Machine:
    """Returns the machine for a stream that begins with this event."""
    machine = machine_of(event, options)
    assert machine is not None
    return machine


def fed(machine: Machine, event: Any) -> list[Any]:
    """Feeds an event to the machine, and returns the events that it sends on."""
    return [out for out, _ in machine.feed(event, event)]
