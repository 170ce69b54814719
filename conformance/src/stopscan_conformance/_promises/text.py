"""The text and the reasoning are those that the model's script has before the stop."""

from __future__ import annotations

from stopscan_conformance._answer import Answer
from stopscan_conformance._promises._expected import Expected


def fault(answer: Answer, expected: Expected) -> str | None:
    if (answer.text, answer.reasoning) in expected.answers:
        return None
    text, reasoning = expected.answers[0]
    if answer.text not in [text for text, _ in expected.answers]:
        return f"text {_short(answer.text, text)}, not {_short(text, answer.text)}"
    return f"reasoning {_short(answer.reasoning, reasoning)}, not {_short(reasoning, answer.reasoning)}"


def _short(text: str, other: str) -> str:
    """The text, or of a long one what is around the first difference."""
    if len(text) <= 200:
        return repr(text)
    same = next((i for i, pair in enumerate(zip(text, other, strict=False)) if len({*pair}) > 1), len(other))
    return f"...{text[max(0, same - 20) : same + 40]!r} ({len(text)} characters)"
