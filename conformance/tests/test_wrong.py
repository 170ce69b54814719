"""The kit finds each wrong server: the case that is meant for it fails, and names the promise that is broken."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from every import BY_NAME
from slowing import slowing
from staged.wrong import WRONG, forms, reports, state
from staged.wrong.table import Wrong

from stopscan_conformance import Server, cases

ENDLESS = [*forms.ENDLESS, *state.ENDLESS]


def test_there_are_enough() -> None:
    assert len({one.name for one in WRONG}) == len(WRONG) >= 400
    assert len(reports.REPORTS) >= 30


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_wrong_server_fails(staged_url: str, wrong: Wrong) -> None:
    # Most servers in `ENDLESS` do not end an answer, so the timeout ends it. 5 s are enough for the correct part of the
    # text, which comes first.
    server = Server(f"{staged_url}/{quote(wrong.name)}", model="reciter", timeout=5 if wrong in ENDLESS else 30)
    level = "usual" if wrong in reports.WRONG else "advice"
    result = slowing(BY_NAME[wrong.case], server, "fail", level=level)
    assert result.outcome == "fail"
    assert {*result.wrong} >= {*wrong.columns}, result.detail


def test_wrong_servers_of_reports_fail_a_default_run() -> None:
    assert {wrong.case for wrong in reports.WRONG} <= {str(case) for case in cases()}
