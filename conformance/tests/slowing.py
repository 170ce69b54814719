"""Runs a case of the conformance kit on slower and slower staged servers, until it has the expected outcome."""

from __future__ import annotations

from typing import Any, Literal

from stopscan_conformance import Case, Result, Server


def slowing(case: Case, server: Server, outcome: Literal["pass", "fail"], **options: Any) -> Result:
    """Runs the case up to six times, until its result has `outcome`. Returns this result, or the last one.

    On a busy machine, a case may not see that text comes a few tokens late. A short answer may also end before the
    other requests have started. So the third and later tries use slower servers. The second try only repeats the first:
    some wrong servers answer a request wrongly only after another request.
    """
    url = server.url
    for slower in (1, 1, 2, 4, 8, 16):
        server.url = f"{url}/slower/{slower}"
        result = case.run(server, **options)
        if result.outcome == outcome:
            break
    server.url = url
    return result
