"""Which API an event or a response is of."""

from __future__ import annotations

from typing import Any

from stopscan.clients._anthropic import Anthropic
from stopscan.clients._bedrock import Bedrock
from stopscan.clients._choices import ChoiceMachine
from stopscan.clients._gemini import Gemini
from stopscan.clients._machine import Machine, Options
from stopscan.clients._objects import get, has
from stopscan.clients._ollama import Ollama
from stopscan.clients._openai_chat import Chat
from stopscan.clients._openai_completions import Completions
from stopscan.clients._responses import Responses

ANTHROPIC = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
)
# Made by ChatCompletionStream and MessageStream beside the API's own events, with snapshots that nobody could cut.
HELPERS = ("chunk", "content.delta", "content.done", "refusal.delta", "text")
BEDROCK = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop")
GEMINI = ("candidates", "usageMetadata", "promptFeedback", "prompt_feedback")
# What tells no API: errors and signs of life, and OpenAI's and Azure's chunks without choices.
NEUTRAL_TYPES = ("error", "ping", "keepalive")
NEUTRAL_FIELDS = ("error", "choices", "usage", "done")


def machine_for(event: Any, options: Options) -> Machine | None:
    """Returns the machine for the stream that begins with this event, ``None`` if a later one must tell.

    ``TypeError`` for what is no event of an API that is known here.
    """
    kind = get(event, "type")
    if kind in NEUTRAL_TYPES:
        return None
    if isinstance(kind, str):
        return _typed(event, kind, options)
    cls = _choices(event)
    if cls is not None:
        return cls(event, options)
    if isinstance(event, dict) and any(name in event for name in BEDROCK):
        return Bedrock(event, options)
    if any(has(event, name) for name in NEUTRAL_FIELDS):
        return None
    raise TypeError(f"no event of an API that is known here: {_described(event)}")


def choice_machine_for(response: Any, options: Options) -> ChoiceMachine | None:
    cls = _choices(response)
    return None if cls is None else cls(response, options)


def _typed(event: Any, kind: str, options: Options) -> Machine:
    if kind.startswith("response."):
        return Responses(event, options)
    if kind in ANTHROPIC:
        return Anthropic(event, options)
    if kind in HELPERS:
        raise TypeError(f"an event {kind!r} is made by the client's stream() helper: give the helper itself")
    raise TypeError(f"no event of an API that is known here: {_described(event)} of type {kind!r}")


def _choices(event: Any) -> type[ChoiceMachine] | None:
    choices = get(event, "choices")
    if choices:
        return Chat if has(choices[0], "delta") or has(choices[0], "message") else Completions
    if any(has(event, name) for name in GEMINI):
        return Gemini
    if has(event, "done") and (has(event, "message") or has(event, "response")):
        return Ollama
    return None


def _described(event: Any) -> str:
    if isinstance(event, dict):
        return f"a dict with the keys {', '.join(map(repr, event)) or 'of none'}"
    return f"{type(event).__module__}.{type(event).__qualname__}"
