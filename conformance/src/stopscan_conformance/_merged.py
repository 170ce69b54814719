"""The findings of several requests as those of one case."""

from __future__ import annotations

from collections.abc import Sequence

from stopscan_conformance._promises import COLUMNS, Column, Findings


def merged(found: Sequence[Findings]) -> Findings:
    """What was first wrong with each promise."""
    together: dict[Column, str | None] = {}
    for column in COLUMNS:
        judged = [(number, one[column]) for number, one in enumerate(found, 1) if column in one]
        if judged:
            wrong = [f"{fault} (request {number} of {len(found)})" for number, fault in judged if fault]
            together[column] = wrong[0] if wrong else None
    return together
