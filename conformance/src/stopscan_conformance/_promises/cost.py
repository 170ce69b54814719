"""The tokens of an answer are counted right. What is generated and read by nobody shows in times: see `_cost`."""

from __future__ import annotations

from stopscan_conformance._promises._expected import Expected


def fault(tokens: int, expected: Expected) -> str | None:
    return None if tokens in expected.tokens else f"{tokens} tokens counted, not {expected.tokens[0]}"
