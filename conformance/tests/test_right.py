"""Servers that are correct pass the kit, even if they are unusual. Official clients read the same text from an unusual
answer as from a plain one.

Each server gets a part of the kit's cases, or all of them with `--thorough` (ci/kit-thorough).
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from urllib.parse import quote

import pytest
from every import BY_NAME, EVERY
from slowing import slowing
from staged.right import FAILURES, REFUSALS, RIGHT, Right

from stopscan_conformance import APIS, COLUMNS, Case, Result, Server
from stopscan_conformance.apis import Request
from stopscan_conformance.client import ask

APART = [case for case in EVERY if not case.timed]
PATIENT = 120  # the time limit of a request in seconds; long, because the machine may be busy
# Cases that compare times. What they test does not depend on the API, so most of them run only for `openai-chat`. Those
# with the topic "pace" run for three APIs.
TIMED = [
    case
    for case in EVERY
    if case.timed and (case.api == "openai-chat" or (case.topic == "pace" and case.api in ("anthropic", "ollama-chat")))
]


def named(value: Right | str) -> str:
    return value if isinstance(value, str) else value.staged.name


def part(every: list[Case], listed: int, generated: int) -> list[Case]:
    """Returns a part of the cases. With `listed=3` and `generated=9`, returns a ninth of the cases with the topic
    "generated", which take long, and a third of all others."""
    made = [case for case in every if case.topic == "generated"]
    return [case for case in every if case.topic != "generated"][::listed] + made[::generated]


def results_of(server: Server, chosen: list[Case]) -> dict[str, Result]:
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(map(str, chosen), pool.map(lambda case: case.run(server, level="advice"), chosen), strict=True))


def test_right_server_passes(staged_url: str, thorough: bool) -> None:
    server = Server(f"{staged_url}/right", timeout=PATIENT)
    results = results_of(server, APART if thorough else part(APART, 3, 9))
    results |= {str(case): slowing(case, server, "pass") for case in TIMED}
    assert {name: result for name, result in results.items() if result.outcome != "pass"} == {}
    assert {column for result in results.values() for column in result.columns} == {*COLUMNS}


@pytest.mark.parametrize(("right", "api"), [(one, api) for one in RIGHT for api in one.apis], ids=named)
def test_unusual_right_server_passes(staged_url: str, thorough: bool, right: Right, api: str) -> None:
    server = Server(f"{staged_url}/{quote(right.staged.name)}", model="reciter", timeout=PATIENT)
    every = [case for case in APART if case.api == api]
    # The last case has 63 stops. A server that refuses 63 stops must be judged "not supported", not wrong.
    results = results_of(server, every if thorough else [*part(every, 23, 80), BY_NAME[f"{api}-whole-sixty-three"]])
    may = {"pass", "not supported"} if right.lacks else {"pass"}
    assert {name: result for name, result in results.items() if result.outcome not in may} == {}
    assert "pass" in {result.outcome for result in results.values()}


@pytest.mark.parametrize("api", ["openai-chat", "anthropic", "generate"])
def test_a_line_separator_does_not_end_a_line(staged_url: str, api: str) -> None:
    server = Server(f"{staged_url}/as%20they%20are", model="reciter", timeout=PATIENT)
    names = [f"{api}-stream-line-separators", f"{api}-stream-separator-stop"]
    assert [BY_NAME[name].run(server).outcome for name in names] == ["pass", "pass"]


@pytest.mark.parametrize("status", REFUSALS + FAILURES)
def test_only_a_refusal_is_not_a_failure(staged_url: str, status: int) -> None:
    result = BY_NAME["openai-chat-whole-split"].run(Server(f"{staged_url}/stops%20are%20a%20{status}", model="reciter"))
    assert result.outcome == ("not supported" if status in REFUSALS else "fail")
    assert f"{status}: " in result.detail
    assert "stop is not supported" in result.detail


@pytest.mark.parametrize("name", ["split", "at-once", "null"])
def test_a_server_that_stays_busy_is_not_judged(staged_url: str, name: str) -> None:
    result = BY_NAME[f"openai-chat-whole-{name}"].run(Server(f"{staged_url}/always%20busy", model="reciter"))
    assert (result.outcome, result.detail[:4]) == ("not supported", "503:")


def test_a_first_delta_may_lack_its_role(staged_url: str) -> None:
    result = BY_NAME["openai-chat-stream-split"].run(Server(f"{staged_url}/no%20role"), level="documented")
    assert (result.outcome, [*result.broken]) == ("pass", ["usual-form"])


def test_exact_usage_after_a_speculative_step_is_an_advice(staged_url: str) -> None:
    server = Server(f"{staged_url}/a%20speculative%20step%20behind%20a%20stop")
    results = [BY_NAME[f"openai-chat-{name}"].run(server) for name in ("whole-split", "stream-stop-in-the-last-token")]
    assert [(result.outcome, [*result.broken]) for result in results] == [("pass", ["cost-of-a-stop"]), ("pass", [])]


@pytest.mark.parametrize(("right", "api"), [(one, api) for one in RIGHT if one.alike for api in one.apis], ids=named)
def test_clients_get_the_right_answer(staged_url: str, right: Right, api: str) -> None:
    """The kit and the official client read the same text from an unusual answer as from a plain one."""
    for prompt, stream in product(("[think]", "[emoji]"), (False, True)):
        request = Request(prompt, stream, {"stop": ["5", "END"]})
        texts = []
        for name in (right.staged.name, "right"):
            server = Server(f"{staged_url}/{quote(name)}", model="reciter", clients=True)
            answer = asyncio.run(ask(server, APIS[api], request))
            assert (answer.error, answer.read_again, answer.unread) == (None, True, None)
            texts.append((answer.text, answer.reasoning))
        assert texts[0] == texts[1]


def test_there_are_enough() -> None:
    assert len({one.staged.name for one in RIGHT}) == len(RIGHT) >= 60
