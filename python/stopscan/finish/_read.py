"""What the readers have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from stopscan.finish._finish import Finish
from stopscan.finish._words import WORDS

NO_PAYLOAD = (Sequence, int, float, complex, set, frozenset, type(None))
# KoboldCpp; sglang before 0.4
GOING_ON = ("null", "None")


def field(part: object, name: str) -> Any:
    """The field of a dict or object, None if it is not there."""
    if isinstance(part, dict):
        return part.get(name)
    value = getattr(part, name, None)
    return part.get(name) if value is None and isinstance(part, Mapping) else value


def items(value: object) -> Sequence[Any]:
    """The list, or an empty one for what is none."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def first(parts: object) -> Any:
    """The part of index 0: with several choices, each chunk may carry any one of them."""
    for part in items(parts):
        if not field(part, "index"):
            return part
    return None


def spoken(word: object) -> str | None:
    """The word as a plain string, None if there is none: so it is with those that are said while the stream goes on."""
    if isinstance(word, Enum):  # google-genai's are strings, those of the SDK before it numbers with a name
        word = word.value if isinstance(word.value, str) else word.value and word.name
    if not word or word in GOING_ON:  # "": sglang#3912, ollama#4357, spring-ai#1358
        return None
    return str(word)


def finish(word: str, stops: Iterable[object] = ()) -> Finish:
    """The report of a word; the first of `stops` that is one counts if the word may mean a stop. What follows a colon
    explains the word: "content_filter: PROHIBITED_CONTENT".
    """
    reason = WORDS.get(word.lower().partition(": ")[0], "unknown")
    if reason in ("eos", "stop_sequence"):
        for stop in stops:
            if isinstance(stop, str) and stop:
                return Finish("stop_sequence", stop, raw=word)
            if isinstance(stop, int) and not isinstance(stop, bool) and stop >= 0:
                return Finish("stop_token", stop, raw=word)
    return Finish(reason, raw=word)


def unfinished(source: str, payload: object) -> Finish | None:
    """The report of a payload without a word: an error ends the stream, anything else lets it go on. What is neither a
    dict nor an object with fields is a `TypeError`.
    """
    if not isinstance(payload, dict) and isinstance(payload, NO_PAYLOAD):
        raise TypeError(f"{source} is read from a dict or an object, not {type(payload).__name__}")
    return Finish("abort") if field(payload, "error") else None
