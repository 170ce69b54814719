"""What an answer should have been, and what is wrong with it, promise by promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stopscan_conformance._answer import Answer
from stopscan_conformance._apis import End
from stopscan_conformance._late import lateness
from stopscan_conformance._recital import Recital

Column = Literal["text", "finish", "form", "late", "cost"]
COLUMNS: tuple[Column, ...] = ("text", "finish", "form", "late", "cost")
Findings = Mapping[Column, str | None]  # what is wrong, by the promise; None: nothing is


@dataclass(frozen=True, eq=False)
class Expected:
    """`answers` are text and reasoning, in each way that they may be told apart; `ends` and `tokens` have what may be
    said of the end. Chunks are compared with `recital`."""

    answers: tuple[tuple[str, str], ...]
    ends: tuple[End, ...]
    tokens: tuple[int, ...]
    recital: Recital | None = None


def judge(answer: Answer, expected: Expected, /, *, stream: bool) -> Findings:
    """What is wrong with `answer`, by each promise that it can be held to."""
    if answer.error is not None and not answer.timed_out and not answer.chunks and answer.end is None:
        return {"text": f"no answer: {answer.error}"}
    found: dict[Column, str | None] = {
        "text": _text(answer, expected),
        "finish": None
        if answer.end in expected.ends
        else f"ended by {_words(answer.end)}, not {_words(expected.ends[0])}",
        "form": "; ".join([*([answer.error] if answer.error else []), *answer.faults]) or None,
    }
    tokens = answer.head.get("tokens")
    if stream and expected.recital is not None and found["text"] is None:
        found["late"] = lateness(answer.chunks, expected.recital)
    if tokens is not None:
        found["cost"] = None if tokens in expected.tokens else f"{tokens} tokens counted, not {expected.tokens[0]}"
    return found


def _text(answer: Answer, expected: Expected) -> str | None:
    if (answer.text, answer.reasoning) in expected.answers:
        return None
    text, reasoning = expected.answers[0]
    if answer.text not in [text for text, _ in expected.answers]:
        return f"text {_short(answer.text, text)}, not {_short(text, answer.text)}"
    return f"reasoning {_short(answer.reasoning, reasoning)}, not {_short(reasoning, answer.reasoning)}"


def _words(end: End | None) -> str:
    if end is None:
        return "nothing"
    return end[0] if end[1] is None else f"{end[0]} {end[1]!r}"


def _short(text: str, other: str) -> str:
    """The text, or of a long one what is around the first difference."""
    if len(text) <= 200:
        return repr(text)
    same = next((i for i, pair in enumerate(zip(text, other, strict=False)) if len({*pair}) > 1), len(other))
    return f"...{text[max(0, same - 20) : same + 40]!r} ({len(text)} characters)"
