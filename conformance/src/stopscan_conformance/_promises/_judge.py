from __future__ import annotations

from stopscan_conformance._answer import Answer
from stopscan_conformance._promises import cost, finish, form, late, text
from stopscan_conformance._promises._expected import Column, Expected, Findings


def judge(answer: Answer, expected: Expected, /, *, stream: bool) -> Findings:
    """What is wrong with `answer`, by each promise that it can be held to."""
    if answer.error is not None and not answer.timed_out and not answer.chunks and answer.end is None:
        return {"text": f"no answer: {answer.error}"}
    found: dict[Column, str | None] = {
        "text": text.fault(answer, expected),
        "finish": finish.fault(answer, expected),
        "form": form.fault(answer),
    }
    if stream and expected.recital is not None and found["text"] is None:
        found["late"] = late.lateness(answer.chunks, expected.recital)
    tokens = answer.head.get("tokens")
    if tokens is not None:
        found["cost"] = cost.fault(tokens, expected)
    return found
