"""Whole answers with a given text, as the APIs write them, and the path of the text in them."""

from __future__ import annotations

from typing import Any

import wire

PATHS: dict[str, tuple[str | int, ...]] = {
    "chat": ("choices", 0, "message", "content"),
    "completions": ("choices", 0, "text"),
    "responses": ("output", 0, "content", 0, "text"),
    "anthropic": ("content", 0, "text"),
    "gemini": ("candidates", 0, "content", "parts", 0, "text"),
    "ollama": ("message", "content"),
    "generate": ("response",),
    "bedrock": ("output", "message", "content", 0, "text"),
}
WHOLES: dict[str, Any] = {
    "chat": wire.chat_whole,
    "completions": wire.completions_whole,
    "responses": lambda text: wire.responses_whole([wire.output_message([wire.output_text(text)])]),
    "anthropic": lambda text: wire.anthropic_whole([{"type": "text", "text": text}]),
    "gemini": lambda text: wire.gemini_chunk([wire.candidate({"text": text}, finishReason="MAX_TOKENS")], 7),
    "ollama": lambda text: wire.ollama_line(done=True, message={"role": "assistant", "content": text}),
    "generate": lambda text: wire.ollama_line(done=True, response=text),
    "bedrock": lambda text: wire.bedrock_whole([{"text": text}]),
}
