"""The answer has the form of its API, which each file of `_apis` looks at, and ends in time."""

from __future__ import annotations

from stopscan_conformance._answer import Answer


def fault(answer: Answer) -> str | None:
    return "; ".join([*([answer.error] if answer.error else []), *answer.faults]) or None
