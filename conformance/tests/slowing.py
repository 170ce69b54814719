"""Runs a case of the conformance kit on slower and slower staged servers, until it has the expected outcome."""

from __future__ import annotations

from typing import Any, Literal

from stopscan_conformance import Case, Result, Server


def slowing(case: Case, server: Server, outcome: Literal["pass", "fail"], **options: Any) -> Result:
    """Returns the first result that has `outcome`, or the last result if none has it.

    On a busy machine, a delay of a few tokens does not stand out from other delays, and requests do not run together if
    their answers are short. Slower answers help. If a request leaves something behind in the server, only the next
    request shows it, so the second try is not slower.
    """
    url = server.url
    for slower in (1, 1, 2, 4, 8, 16):
        server.url = f"{url}/slower/{slower}"
        result = case.run(server, **options)
        if result.outcome == outcome:
            break
    server.url = url
    return result
