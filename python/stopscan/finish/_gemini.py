from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopscan.finish._finish import Finish
from stopscan.finish._read import Reader, either, field, finish, is_call, items, spoken

# FinishReason of google/ai/generativelanguage/v1beta/generative_service.proto: `to_dict` of google-generativeai writes
# the numbers. (Vertex's own proto has others from 6 on; its client writes names.)
NUMBERS = (
    None,
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "IMAGE_SAFETY",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
)


def from_gemini(payload: object, /) -> Finish | None:
    """Returns the finish of a response or of a chunk, or None while the stream goes on. The names are those of the wire
    or of google-genai.

    - Candidate 0 counts. If there is only one candidate, that candidate counts. You can pass another candidate alone.
    - "STOP" is "tool_calls" if the candidate has calls. Otherwise "STOP" is an "eos", because Gemini does not tell
      stops.
    - A prompt that was blocked has no candidates. The finish is a "content_filter".

    >>> from_gemini({"candidates": [{"content": {"parts": [{"text": "A"}]}, "finishReason": "MAX_TOKENS"}]}).reason
    'length'
    """
    return GEMINI.read(payload)


def _candidates(payload: object) -> Sequence[Any] | None:
    candidates = field(payload, "candidates")
    return None if candidates is None else items(candidates)


def _ended(candidate: object, payload: object) -> Finish | None:
    said = either(candidate, "finish_reason", "finishReason")
    word = spoken(NUMBERS[said] if type(said) is int and 0 <= said < len(NUMBERS) else said)
    return _blocked(payload) if word is None else finish(word)


def _content(candidate: object) -> Finish | None:
    parts = items(field(field(candidate, "content"), "parts"))
    calls = any(is_call(either(part, "function_call", "functionCall")) for part in parts)
    return Finish("tool_calls") if calls else None


def _blocked(payload: object) -> Finish | None:
    feedback = either(payload, "prompt_feedback", "promptFeedback")
    word = spoken(either(feedback, "block_reason", "blockReason"))
    return None if word is None else Finish("content_filter", raw=word)


GEMINI: Reader = Reader("Gemini finishReason", _candidates, _ended, _content)
