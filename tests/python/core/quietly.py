"""For cases of the conformance kit that compare times."""

from __future__ import annotations

from stopscan_conformance import Case, Result, Server


def quietly(case: Case, server: Server) -> Result:
    """The result of a case that compares times: a busy machine may fail it, hardly three times in turn."""
    for _ in range(2):
        result = case.run(server)
        if result.outcome == "pass":
            return result
    return case.run(server)
