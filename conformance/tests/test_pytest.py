"""`stopscan_conformance.pytest`: the cases as parameters of a server's own tests."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from stopscan_conformance import Server
from stopscan_conformance import cases as every
from stopscan_conformance.pytest import cases, check


@pytest.mark.parametrize("timed", [None, False, True])
def test_each_case_is_a_parameter(timed: bool | None) -> None:
    found = cases("anthropic", timed=timed)
    assert {one.id for one in found} == {str(case) for case in every("anthropic") if timed in (None, case.timed)}
    last = [case.timed for one in found for case in one.values]
    assert last == sorted(last)


def case(name: str) -> object:
    return next(one.values[0] for one in cases("openai-chat") if one.id == f"openai-chat-whole-{name}")


def test_a_right_answer_passes(staged_url: str) -> None:
    check(case("split"), Server(f"{staged_url}/right", model="reciter"))


def test_a_failure_shows_its_rule_and_request(staged_url: str) -> None:
    server = Server(f"{staged_url}/{quote('held text is lost at EOS')}", model="reciter")
    with pytest.raises(pytest.fail.Exception, match=r"(?s)text \(\w+\): .*\ncurl -sNL .*/v1/chat/completions"):
        check(case("held-at-eos"), server)


def test_what_is_not_supported_is_skipped(staged_url: str) -> None:
    with pytest.raises(pytest.skip.Exception, match="no stop_token_ids"):
        check(case("ids"), Server(f"{staged_url}/{quote('ids are refused')}", model="reciter"))
