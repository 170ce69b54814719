"""Runs cases of the conformance kit that compare times."""

from __future__ import annotations

from stopscan_conformance import Case, Result, Server


def quietly(case: Case, server: Server) -> Result:
    """Returns the result of a case, tried up to three times: a busy machine may fail it, but hardly three times."""
    for _ in range(2):
        result = case.run(server)
        if result.outcome == "pass":
            return result
    return case.run(server)
