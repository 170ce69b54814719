"""Runs a case of the conformance kit on slower and slower staged servers, until it has the expected outcome."""

from __future__ import annotations

from typing import Any, Literal

from stopscan_conformance import Case, Result, Server


def slowing(case: Case, server: Server, outcome: Literal["pass", "fail"], **options: Any) -> Result:
    """Returns the first result that has `outcome`, or the last result if none has it.

    On a busy machine, a defect that delays text by a few tokens cannot be seen among other delays, and short answers
    may be over before other requests start. With slower answers, both can be seen. The second try is as fast as the
    first, because some defects change the state of the server, so that only the next request shows them.
    """
    url = server.url
    for slower in (1, 1, 2, 4, 8, 16):
        server.url = f"{url}/slower/{slower}"
        result = case.run(server, **options)
        if result.outcome == outcome:
            break
    server.url = url
    return result
