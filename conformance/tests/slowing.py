"""Runs a case of the conformance kit on slower and slower staged servers, until it has the expected outcome."""

from __future__ import annotations

from typing import Any, Literal

from stopscan_conformance import Case, Result, Server


def slowing(case: Case, server: Server, outcome: Literal["pass", "fail"], **options: Any) -> Result:
    """Returns the first result that has `outcome`, or the last result if none has it.

    On a busy machine, a case may not see that a server sends text a few tokens late, and a short answer may end before
    the other requests have started. A slower answer helps in both situations. Only the third and later tries are
    slower. The second try repeats the first, because some wrong servers answer one request wrongly only after another.
    """
    url = server.url
    for slower in (1, 1, 2, 4, 8, 16):
        server.url = f"{url}/slower/{slower}"
        result = case.run(server, **options)
        if result.outcome == outcome:
            break
    server.url = url
    return result
