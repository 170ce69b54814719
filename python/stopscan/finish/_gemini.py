from __future__ import annotations

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
    if word is None:
        return (None if candidates else _blocked(payload)) or unfinished("Gemini finishReason", payload)
    report = finish(word)
    return Finish("tool_calls", raw=word) if report.reason == "eos" and _calls(candidate) else report


def _blocked(payload: object) -> Finish | None:
    word = spoken(_either(_either(payload, "prompt_feedback", "promptFeedback"), "block_reason", "blockReason"))
    return None if word is None else Finish("content_filter", raw=word)


def _calls(candidate: object) -> bool:
    parts = items(field(field(candidate, "content"), "parts"))
    return any(_either(part, "function_call", "functionCall") is not None for part in parts)


def _either(part: object, name: str, on_the_wire: str) -> Any:
    value = field(part, name)
    return field(part, on_the_wire) if value is None else value
