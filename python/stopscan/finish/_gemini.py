from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopscan.finish._finish import Finish
from stopscan.finish._read import field, finish, first, items, spoken, unfinished


def from_gemini(payload: object, /) -> Finish | None:
    """Returns the finish of candidate 0 of a response or a chunk, in the names of the wire or of google-genai. "STOP"
    is "tool_calls" if the candidate holds calls, else an "eos": Gemini does not tell stops.

    Another candidate can be passed by itself. A prompt that was blocked has no candidates: that is a "content_filter".

    >>> from_gemini({"candidates": [{"content": {"parts": [{"text": "A"}]}, "finishReason": "MAX_TOKENS"}]}).reason
    'length'
    """
    candidates = field(payload, "candidates")
    candidate = payload if candidates is None else first(candidates)
    word = spoken(_either(candidate, "finish_reason", "finishReason"))
    if word is not None:
        report = finish(word)
        return Finish("tool_calls", raw=word) if report.reason == "eos" and _calls(candidate) else report
    if candidate is not None and candidate is not payload:
        return None  # most chunks
    return _blocked(payload) or unfinished("Gemini finishReason", payload)


def _blocked(payload: object) -> Finish | None:
    word = spoken(_either(_either(payload, "prompt_feedback", "promptFeedback"), "block_reason", "blockReason"))
    return None if word is None else Finish("content_filter", raw=word)


def _calls(candidate: object) -> bool:
    parts = items(field(field(candidate, "content"), "parts"))
    return any(_either(part, "function_call", "functionCall") is not None for part in parts)


def _either(part: object, name: str, on_the_wire: str) -> Any:
    if isinstance(part, Mapping):
        return part.get(name, part.get(on_the_wire))
    return getattr(part, name if hasattr(part, name) else on_the_wire, None)
