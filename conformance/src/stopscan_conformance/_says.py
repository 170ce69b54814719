"""What a request says beside its stops, in the words of each API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Turn = tuple[str, str]  # a role and a text

CHATS = ("openai-chat", "anthropic", "ollama-chat")
OPENAI = ("openai-chat", "openai-completions")
LONG_PROMPT = "Here is what was said before, and it is long. " * 60
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
OPTIONS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "temperature": ({"temperature": 1.0}, ()),
    "greedy": ({"temperature": 0.0}, ()),
    # So little that the checkpoint recites all the same: its logits are 32 apart.
    "penalties": ({"presence_penalty": 0.01, "frequency_penalty": 0.01}, OPENAI),
    "seed": ({"seed": 7}, (*OPENAI, "ollama-chat", "ollama-generate")),
    "top-p": ({"top_p": 0.9}, ()),
    "top-k": ({"top_k": 20}, ("anthropic", "ollama-chat", "ollama-generate", "generate")),
    "response-format": ({"response_format": {"type": "text"}}, ("openai-chat",)),
    "tools": ({"tools": [TOOL], "tool_choice": "none"}, ("openai-chat",)),
    "user": ({"user": "somebody"}, OPENAI),
    "newer-limit": ({}, ("openai-chat",)),
    "both-limits": ({}, ("openai-chat",)),
    "echo": ({"echo": True}, ("openai-completions",)),
}
NEWER = "max_completion_tokens"
LIMITS: Mapping[str, tuple[str, ...]] = {"newer-limit": (NEWER,), "both-limits": ("max_tokens", NEWER)}


@dataclass(frozen=True)
class Said:
    """`options` are further fields, `before` are earlier turns, `parts`: the content comes in parts, and `limits` are
    the names of the limit in OpenAI's APIs."""

    options: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[Turn, ...] = ()
    parts: bool = False
    limits: tuple[str, ...] = ("max_tokens",)


def said(says: str, api: str, stop: str) -> Said | None:
    """What `says` is in the words of `api`; None if that has no words for it."""
    if says in OPTIONS:
        options, apis = OPTIONS[says]
        return Said(options, limits=LIMITS.get(says, Said.limits)) if not apis or api in apis else None
    if says == "logprobs":
        words = {"openai-chat": {"logprobs": True, "top_logprobs": 1}, "openai-completions": {"logprobs": 1}}
        return Said(words[api]) if api in words else None
    if says == "parts":
        return Said(parts=True) if api in ("openai-chat", "anthropic", "openai-responses") else None
    turns = _turns(says, stop)
    if not turns:
        return Said()
    return Said(before=turns) if api in CHATS or says == "long-prompt" else None


def _turns(says: str, stop: str) -> tuple[Turn, ...]:
    earlier = f"You asked for {stop} and here it is." if says.endswith("with-the-stop") else "Yes, gladly."
    if says.startswith("system"):
        return (("system", earlier),)
    if says.startswith("turns"):
        return ("user", "Do you know it?"), ("assistant", earlier)
    return (("user", LONG_PROMPT), ("assistant", "I see.")) if says == "long-prompt" else ()
