"""Payloads of real servers, in a file for each kind of server. Each payload has its source and its meaning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from finish_harness import as_object, outcome

from stopscan.finish import Reading

CASES = [
    pytest.param(case["api"], case["payload"], case["report"], id=f"{path.stem}:{number} {case['source']}")
    for path in sorted(Path(__file__).with_name("payloads").glob("*.jsonl"))
    for number, case in enumerate(map(json.loads, path.read_text(encoding="utf-8").splitlines()), 1)
]


@pytest.mark.parametrize(("api", "payload", "report"), CASES)
def test_a_payload_of_a_real_server_is_read(api: Any, payload: dict[str, Any], report: list[Any] | None) -> None:
    reason, stop = [*(report or [None]), None][:2]
    expected = None if reason is None else (reason, stop)
    assert outcome(api, payload) == expected
    assert outcome(api, as_object(payload)) == expected
    finish = Reading(api).feed(payload)
    assert (finish and (finish.reason, finish.matched_stop)) == expected


def test_there_are_many() -> None:
    assert len(CASES) >= 170
