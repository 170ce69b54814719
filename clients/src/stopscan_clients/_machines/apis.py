"""Which API an event or an answer is of."""

from __future__ import annotations

from typing import Any

from stopscan_clients._json import get, items
from stopscan_clients._machines.blocks import Anthropic, Bedrock, Cohere
from stopscan_clients._machines.choice_apis import Chat, Completions, Generate, Ollama
from stopscan_clients._machines.choices import ChoiceMachine
from stopscan_clients._machines.gemini import Gemini
from stopscan_clients._machines.machine import Machine
from stopscan_clients._machines.responses import Responses

# The machine of an event by its type; that of Responses begins with "response.".
TYPED: dict[str, type[Machine]] = {
    **{
        kind: api
        for api in (Anthropic, Cohere)
        for kind in (api.BLOCK_START, api.DELTA, api.BLOCK_END, api.MESSAGE_END)
    },
    **dict.fromkeys(("message_start", "message_stop"), Anthropic),
    **dict.fromkeys(("message-start", "citation-start", "citation-end"), Cohere),
    **dict.fromkeys(("tool-plan-delta", "tool-call-start", "tool-call-delta", "tool-call-end"), Cohere),
}
BEDROCK = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop")
GEMINI = ("candidates", "usageMetadata", "usage_metadata", "promptFeedback", "prompt_feedback")
# What tells no API: errors and signs of life, and OpenAI's and Azure's chunks without choices.
NEUTRAL_TYPES = ("error", "ping", "keepalive")
NEUTRAL_FIELDS = ("error", "choices", "usage", "done")


def machine_of(event: Any) -> type[Machine] | None:
    """Returns the machine for the stream that begins with this event, ``None`` if a later one must tell.

    ``TypeError`` for what is no event of an API that is known here.
    """
    kind = get(event, "type")
    if kind in NEUTRAL_TYPES:
        return None
    if isinstance(kind, str):
        machine = Responses if kind.startswith("response.") else TYPED.get(kind)
        if machine is None:
            raise TypeError(f"no event of an API that is known here: {_described(event)} of type {kind!r}")
        return machine
    choices = _choices(event)
    if choices is not None:
        return choices
    if any(get(event, name) is not None for name in BEDROCK):
        return Bedrock
    if isinstance(event, dict) and any(name in event for name in NEUTRAL_FIELDS):
        return None
    raise TypeError(f"no event of an API that is known here: {_described(event)}")


def answer_machine_of(answer: Any) -> type[Machine] | None:
    """Returns the machine for an answer that came at once, ``None`` if it is of no API that is known here."""
    if isinstance(get(answer, "output"), list):
        return Responses
    if isinstance(get(answer, "output", "message"), dict):
        return Bedrock
    if isinstance(get(answer, "content"), list) and get(answer, "type") == "message":
        return Anthropic
    if isinstance(get(answer, "message", "content"), list) and get(answer, "choices") is None:
        return Cohere
    return _choices(answer)


def has_no_text(answer: Any) -> bool:
    """Whether an answer is of an API that is known here, and has nothing to cut: no choice has text, as in MiniMax's
    errors, or Cohere has called tools."""
    if "choices" in answer:
        return True
    return (
        isinstance(get(answer, "message"), dict) and "finish_reason" in answer and not get(answer, "message", "content")
    )


def _choices(event: Any) -> type[ChoiceMachine] | None:
    choices = items(get(event, "choices"))
    if any(get(choice, body) is not None for choice in choices for body in ("delta", "message")):
        return Chat
    if any(isinstance(choice, dict) and "text" in choice for choice in choices):
        return Completions
    if choices:
        return None  # a choice without its text: Azure's annotations, a delta that is null
    if isinstance(event, dict) and any(name in event for name in GEMINI):
        return Gemini
    if isinstance(event, dict) and "done" in event:
        return Ollama if "message" in event else Generate if "response" in event else None
    return None


def _described(event: Any) -> str:
    if isinstance(event, dict):
        return f"a dict with the keys {', '.join(map(repr, event)) or 'of none'}"
    return f"{type(event).__module__}.{type(event).__qualname__}"
