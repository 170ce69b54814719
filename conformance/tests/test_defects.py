"""The kit passes a right server, and finds each defect by the promise that it breaks.

Right servers are asked a part of the cases here, and all of them with `--thorough` (ci/kit-thorough).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from quietly import quietly
from staged.defects import DEFECTS, isolation, other_forms
from staged.defects.defect import Defect
from staged.variants import FAILURES, REFUSALS, VARIANTS, Variant

from stopscan_conformance import APIS, COLUMNS, Case, Result, Server, cases

EVERY = cases(*APIS, deep=True)
BY_NAME = {str(case): case for case in EVERY}
APART = [case for case in EVERY if not case.timed]
PATIENT = 120  # seconds: the machine may be busy with other work for long
# Times do not depend on the form: with one API all of them, with two others how each reads a stream.
TIMED = [
    case
    for case in EVERY
    if case.timed and (case.api == "openai-chat" or (case.topic == "pace" and case.api in ("anthropic", "ollama-chat")))
]


def part(every: list[Case], listed: int, generated: int) -> list[Case]:
    """Each so-many-th of the cases: of those that a list has, and of the generated ones, which take longer."""
    by_topic: dict[bool, list[Case]] = {False: [], True: []}
    for case in every:
        by_topic[case.topic == "generated"].append(case)
    return by_topic[False][::listed] + by_topic[True][::generated]


def results_of(server: Server, chosen: list[Case]) -> dict[str, Result]:
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(map(str, chosen), pool.map(lambda case: case.run(server, level="advice"), chosen), strict=True))


def test_right_server_passes(staged_url: str, thorough: bool) -> None:
    server = Server(f"{staged_url}/right", timeout=PATIENT)
    results = results_of(server, APART if thorough else part(APART, 3, 9))
    results |= {str(case): quietly(case, server) for case in TIMED}
    assert {name: result for name, result in results.items() if result.outcome != "pass"} == {}
    assert {column for result in results.values() for column in result.columns} == {*COLUMNS}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.staged.name)
def test_other_right_server_passes(staged_url: str, thorough: bool, variant: Variant) -> None:
    server = Server(f"{staged_url}/{quote(variant.staged.name)}", model="reciter", timeout=PATIENT)
    every = [case for case in APART if case.api in variant.apis]
    many = [BY_NAME[f"{api}-whole-sixty-three"] for api in variant.apis]  # stops, more than some servers take
    results = results_of(server, every if thorough else [*part(every, 11, 40), *many])
    assert {name: result for name, result in results.items() if result.outcome not in variant.outcomes} == {}
    assert "pass" in {result.outcome for result in results.values()} <= variant.outcomes


@pytest.mark.parametrize("api", ["openai-chat", "anthropic", "generate"])
def test_a_line_separator_within_a_text_does_not_end_a_line(staged_url: str, api: str) -> None:
    server = Server(f"{staged_url}/as%20they%20are", model="reciter", timeout=PATIENT)
    names = [f"{api}-stream-line-separators", f"{api}-stream-separator-stop"]
    assert [BY_NAME[name].run(server).outcome for name in names] == ["pass", "pass"]


@pytest.mark.parametrize("status", REFUSALS + FAILURES)
def test_only_a_refusal_is_not_a_failure(staged_url: str, status: int) -> None:
    result = BY_NAME["openai-chat-whole-split"].run(Server(f"{staged_url}/stops%20are%20a%20{status}", model="reciter"))
    assert result.outcome == ("not supported" if status in REFUSALS else "fail")
    assert f"{status}: " in result.detail
    assert "stop is not supported" in result.detail


def test_there_are_defects_enough() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 100


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_defect(staged_url: str, defect: Defect) -> None:
    case = BY_NAME[f"{defect.api}-{'stream' if defect.stream else 'whole'}-{defect.case}"]
    # What is right of an endless answer has to come before, on a busy machine, too.
    seconds = 5 if defect in other_forms.ENDLESS else 10
    server = Server(f"{staged_url}/{quote(defect.name)}", model="reciter", timeout=seconds)
    result = case.run(server, level="advice")
    # On a busy machine requests miss each other, and what takes longer than it should is lost in what all take.
    for _ in range(4 if case.timed or defect in isolation.DEFECTS else 0):
        if result.outcome == "pass":
            result = case.run(server, level="advice")
    assert result.outcome == "fail"
    assert {*result.wrong} >= {*defect.columns}, result.detail
