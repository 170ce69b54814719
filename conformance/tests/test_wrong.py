"""The kit finds each wrong server: the case that is meant for it fails, and names the promise that is broken."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from every import BY_NAME
from staged.wrong import WRONG, forms, reports, state
from staged.wrong.table import Wrong

from stopscan_conformance import Server, cases

DEFAULT = cases()
ENDLESS = [*forms.ENDLESS, *state.ENDLESS]


def test_there_are_enough() -> None:
    assert len({one.name for one in WRONG}) == len(WRONG) >= 400
    assert len(reports.REPORTS) >= 30


@pytest.mark.parametrize("wrong", reports.WRONG, ids=lambda wrong: wrong.name)
def test_wrong_server_of_a_report_fails_a_default_run(staged_url: str, wrong: Wrong) -> None:
    (case,) = [case for case in DEFAULT if str(case) == wrong.case]
    result = case.run(Server(f"{staged_url}/{quote(wrong.name)}", model="reciter", timeout=20))
    assert result.outcome == "fail"
    assert {*result.wrong} >= {*wrong.columns}, result.detail


@pytest.mark.parametrize("wrong", [one for one in WRONG if one not in reports.WRONG], ids=lambda wrong: wrong.name)
def test_wrong_server_fails(staged_url: str, wrong: Wrong) -> None:
    case = BY_NAME[wrong.case]
    # The timeout ends an endless answer, so it is short then, but long enough for the correct text at the beginning.
    server = Server(f"{staged_url}/{quote(wrong.name)}", model="reciter", timeout=5 if wrong in ENDLESS else 20)
    result = case.run(server, level="advice")
    # Try again if the defect did not show. What a request leaves behind shows only in the next request. On a busy
    # machine, requests may not run together as they should, and a delay may not stand out from the machine's own.
    for _ in range(12):
        if result.outcome == "pass":
            result = case.run(server, level="advice")
    assert result.outcome == "fail"
    assert {*result.wrong} >= {*wrong.columns}, result.detail
