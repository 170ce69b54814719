"""For each API: a function that returns a whole answer with a given text, and the path of the text in that answer."""

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
    "tgi": ("generated_text",),
    "watsonx": ("results", 0, "generated_text"),
    "llama_on_bedrock": ("generation",),
    "sglang": ("text",),
    "dashscope": ("output", "choices", 0, "message", "content"),
    "conversations": ("outputs", 0, "content"),
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
    "tgi": wire.tgi_whole,
    "watsonx": lambda text: wire.watsonx_event(text, "max_tokens"),
    "llama_on_bedrock": lambda text: wire.llama_on_bedrock_event(text, "length"),
    "sglang": lambda text: wire.sglang_event(text, {"type": "length", "length": 5}),
    "dashscope": lambda text: wire.dashscope_event(text, "length"),
    "conversations": wire.conversations_whole,
}
