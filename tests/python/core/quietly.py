"""Runs cases of the conformance kit that compare times, which a busy machine can make fail."""

from __future__ import annotations

from stopscan_conformance import Case, Result, Server


def quietly(case: Case, server: Server) -> Result:
    """Returns the result of a case, tried up to three times: a busy machine hardly makes all three fail."""
    for _ in range(2):
        result = case.run(server)
        if result.outcome == "pass":
            return result
    return case.run(server)
