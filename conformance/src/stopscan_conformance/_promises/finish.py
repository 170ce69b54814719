"""The reason why an answer ended is the right one, and names the stop where the API can."""

from __future__ import annotations

from stopscan_conformance._answer import Answer
from stopscan_conformance._apis import End
from stopscan_conformance._promises._expected import Expected


def fault(answer: Answer, expected: Expected) -> str | None:
    if answer.end in expected.ends:
        return None
    unnamed = answer.end == ("eos", None) and expected.ends[0][1] is not None and expected.unnamed
    return f"ended by {_words(answer.end)}, not {_words(expected.ends[0])}" + (f": {unnamed}" if unnamed else "")


def _words(end: End | None) -> str:
    if end is None:
        return "nothing"
    return end[0] if end[1] is None else f"{end[0]} {end[1]!r}"
