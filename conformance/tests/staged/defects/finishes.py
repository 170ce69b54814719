"""The right text, and the wrong word for why it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from staged.defects.defect import wrong
from staged.generation import Generation

End = tuple[str, Any]
STOP, LENGTH, EOS = "stop_sequence", "length", "eos"


def at(reason: str, change: Callable[[Generation], End]) -> Callable[[Generation], End]:
    """Another end where this is the reason."""
    return lambda made: change(made) if made.end[0] == reason else made.end


def put(key: str, value: Any) -> Callable[[Any], Any]:
    """A whole answer with another value in its end."""

    def changed(data: Any) -> Any:
        holder = data["choices"][0] if "choices" in data else data
        return data if key not in holder else _set(data, holder, key, value)

    return changed


def _set(data: Any, holder: Any, key: str, value: Any) -> Any:
    holder[key] = value
    return data


DEFECTS = [
    wrong(
        "the stop is not named to Anthropic", "split", "finish", "anthropic", told=at(STOP, lambda made: (EOS, None))
    ),
    wrong("the stop is not named to sglang", "split", "finish", "generate", told=at(STOP, lambda made: (EOS, None))),
    wrong("a stop without its name", "split", "finish", "anthropic", told=at(STOP, lambda made: (STOP, None))),
    wrong("the first stop is named", "first-of-three", "finish", told=at(STOP, lambda made: (STOP, made.ask.stops[0]))),
    wrong(
        "the last stop is named", "nested", "finish", "anthropic", told=at(STOP, lambda made: (STOP, made.ask.stops[0]))
    ),
    wrong(
        "the stop's index is named",
        "first-of-three",
        "finish",
        "generate",
        told=at(STOP, lambda made: (STOP, made.ask.stops.index(made.end[1]))),
    ),
    wrong(
        "the stop is named in lower case", "split", "finish", told=at(STOP, lambda made: (STOP, made.end[1].lower()))
    ),
    wrong("the stop is named trimmed", "line-break", "finish", told=at(STOP, lambda made: (STOP, made.end[1].strip()))),
    wrong(
        "a stop is named that did not fire",
        "never",
        "finish",
        told=at(EOS, lambda made: (STOP, made.ask.stops[0]) if made.ask.stops else made.end),
    ),
    wrong("a stop ends by length", "split", "finish", "ollama-chat", told=at(STOP, lambda made: (LENGTH, None))),
    wrong(
        "a stop ends by length in generate",
        "split",
        "finish",
        "ollama-generate",
        told=at(STOP, lambda made: (LENGTH, None)),
    ),
    wrong("a stop is incomplete", "split", "finish", "responses-with-stop", told=at(STOP, lambda made: (LENGTH, None))),
    wrong("the limit is a stop", "no-stop-limit", "finish", told=at(LENGTH, lambda made: (EOS, None))),
    wrong(
        "the limit is complete",
        "no-stop-limit",
        "finish",
        "responses-with-stop",
        whole=True,
        told=at(LENGTH, lambda made: (EOS, None)),
    ),
    wrong(
        "the limit is the end of a turn",
        "no-stop-limit",
        "finish",
        "anthropic",
        told=at(LENGTH, lambda made: (EOS, None)),
    ),
    wrong("EOS is the limit", "no-stop", "finish", told=at(EOS, lambda made: (LENGTH, None))),
    wrong("the token is not named", "ids", "finish", told=at("stop_token", lambda made: (EOS, None))),
    wrong("the token's text is named", "ids", "finish", told=at("stop_token", lambda made: (STOP, "5"))),
    wrong("another word", "split", "finish", whole=True, whole_answer=put("finish_reason", "stop_sequence_hit")),
    wrong(
        "another word in Anthropic",
        "no-stop",
        "form",
        "anthropic",
        whole=True,
        whole_answer=put("stop_reason", "finished"),
    ),
    wrong("no reason at the end", "no-stop", "finish form", whole=True, whole_answer=put("finish_reason", None)),
    wrong(
        "no done_reason", "no-stop-limit", "finish form", "ollama-chat", whole=True, whole_answer=put("done_reason", "")
    ),
]
