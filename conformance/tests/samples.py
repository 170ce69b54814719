"""Results of a few cases, and what is printed of them."""

from __future__ import annotations

from stopscan_conformance import Case, Result, Server, cases
from stopscan_conformance.report import NOTHING_KNOWN, Baseline, Report, summary

EVERY = cases("anthropic", "ollama-chat")
SPLIT, STREAMED, OTHER = (
    next(case for case in EVERY if str(case) == name)
    for name in ("anthropic-whole-split", "anthropic-stream-split", "ollama-chat-whole-split")
)
PASSES = Result("pass", "", {"text": None, "finish-reason": None})
FAILS = Result("fail", "no\x1b text; no id", {"text": "no\x1b text", "finish-reason": None, "form": "no id"})
ADVISED = Result("pass", "", {"text": None, "withheld": "late"})
REFUSED = Result("not supported", "422: no stops")
RESULTS = {SPLIT: FAILS, STREAMED: PASSES, OTHER: REFUSED}


def reported(results: dict[Case, Result], known: Baseline = NOTHING_KNOWN, *, complete: bool = True) -> Report:
    server = Server("http://127.0.0.1:9/v1/", model="reciter")
    return Report(server, 7, "usual", known, [*results], results, complete=complete)


def printed(found: Report) -> list[str]:
    return [" ".join(line.split()) for line in summary(found) if line.strip()]
