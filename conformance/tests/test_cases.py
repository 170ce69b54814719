"""The cases expect the answers that the oracle computes, and send requests in the form of each API."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from stopscan_conformance import APIS, Server, cases, generated, several
from stopscan_conformance import single as single_module
from stopscan_conformance.apis import Api, Part, Request
from stopscan_conformance.cases import IN_TURN, ONE_PROMPT, TOGETHER, named_cases
from stopscan_conformance.client import Answer
from stopscan_conformance.generated import task_of
from stopscan_conformance.judge import Findings
from stopscan_conformance.oracle import Task, recite
from stopscan_conformance.probe import Can
from stopscan_conformance.reciter import SCRIPTS, Reciter
from stopscan_conformance.several import at_once, leaving
from stopscan_conformance.single import NotSupported, single
from stopscan_conformance.space import LONG_PROMPT, PAIRS

CHECKPOINT = Reciter()
ALL = [*named_cases()]
KNOWN = {one.name: one.task for one in ALL}


def test_names_are_unique() -> None:
    assert len({(one.name, api) for one in ALL for api in one.apis or [""]}) == sum(
        len(one.apis or [""]) for one in ALL
    )
    names = [str(case) for case in cases()]
    assert len({*names}) == len(names)


def test_every_script_is_used() -> None:
    used = {one.task.script for one in ALL}
    assert {name for name in SCRIPTS if name != "harmony"} <= used


def test_cases_of_some_apis() -> None:
    extras = {"responses-with-stop", "generate"}
    assert {case.api for case in cases()} == {*APIS} - extras
    assert {(case.api, case.stream) for case in cases("anthropic")} == {("anthropic", False), ("anthropic", True)}


def test_an_api_of_lists_gets_lists_only() -> None:
    assert {"a-string", "null"} <= {case.name for case in cases("openai-chat")}
    names = {case.name for case in cases("anthropic", "ollama-chat")}
    assert not {"a-string", "null"} & names
    assert {"split", "an-empty-list", "no-stop"} <= names


def test_unknown_api() -> None:
    with pytest.raises(ValueError, match=re.escape("unknown API 'openai'; known are openai-chat, ")):
        cases("openai")


def test_a_stop_token_drops_what_its_text_held() -> None:
    pieces = (b"one ", b"tw", b"o")
    known = Task("", pieces, stop=["two!"], stop_pieces=(2,))
    recital = recite(known)
    assert (recital.text, recital.tokens, recital.reason, recital.fires) == ("one tw", 3, "stop_token", 2)


def test_the_end_of_a_script_may_be_named() -> None:
    """At an EOS, a server may report "eos". It may also report a stop token that has the id of the EOS, as sglang
    does."""
    expected = single(APIS["openai-chat"], False, KNOWN["no-stop"]).expected
    assert expected.ends == (("eos", None), ("stop_token", CHECKPOINT.eos_token_id))
    tokens = len(KNOWN["no-stop"].pieces) + 1
    assert expected.tokens == (tokens, tokens - 1)


def test_an_answer_says_each_breach_of_its_form_once() -> None:
    answer, end = Answer(), Part(end=("eos", None))
    for part in (Part("one"), end, end, Part("two"), Part(reasoning="three"), end):
        answer.add(part)
    assert answer.faults == ["a second finish reason", "text after the finish reason"]


def test_stops_that_a_case_must_not_contain() -> None:
    """The cases named `stream…` test at what time text comes. So their texts must not contain a `<`: a server may hold
    it, because `<think>` may begin there."""
    assert not [one.name for one in ALL if one.name.startswith("stream") and "<" in recite(one.task).text]


def test_a_refusal_waits_for_the_other_requests() -> None:
    over = []

    async def refused(server: Server) -> Findings:
        raise NotSupported("422")

    async def late(server: Server) -> Findings:
        await asyncio.sleep(0.01)
        over.append("late")
        raise NotSupported("404")

    with pytest.raises(NotSupported, match="422"):
        asyncio.run(at_once([refused, late])(Server("http://127.0.0.1:9")))
    assert over == ["late"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_several_requests_ask_for(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    asked: list[tuple[Request, int]] = []

    async def ask(
        server: Server, api: Api, request: Request, *, leave: int = 0, kept: httpx.AsyncClient | None = None
    ) -> Answer:
        asked.append((request, leave))
        return Answer()

    async def probe(server: Server, api: Api) -> Can:
        return Can()

    for module in (single_module, several, generated):
        monkeypatch.setattr(module, "ask", ask)
    for module in (single_module, several):
        monkeypatch.setattr(module, "probe", probe)
    monkeypatch.setattr(single_module, "judge", lambda *answer, **how: {})

    def requests(*names: str, stream: bool = stream) -> list[tuple[Any, ...]]:
        known = [single(APIS["openai-chat"], stream, KNOWN[name]).request for name in names]
        return [(one.prompt, one.stops, one.max_tokens, stream, 0, True) for one in known]

    plain = requests("no-stop")
    expected = {
        "at-once": requests(*TOGETHER),
        "at-once-mixed": requests(*TOGETHER[:4]) + requests(*TOGETHER[4:], stream=not stream),
        "one-prompt": requests(*ONE_PROMPT),
        "in-turn": requests(*IN_TURN),
        "twice-the-same": plain * 2,
        "prompt-tokens": [*plain, (LONG_PROMPT + plain[0][0], *plain[0][1:])],
    }
    for case in cases("openai-chat"):
        if case.stream == stream and case.name in expected:
            asked.clear()
            asyncio.run(case._run(Server("http://127.0.0.1:9", model="reciter")))
            said = [(one.prompt, one.stops, one.max_tokens, one.stream, leave, one.usage) for one, leave in asked]
            assert sorted(said, key=str) == sorted(expected.pop(case.name), key=str), case.name
    assert expected == {}


def test_requests_for_one_prompt_have_different_stops() -> None:
    requests = [single(APIS["openai-chat"], True, KNOWN[name]).request for name in ONE_PROMPT]
    assert len({request.prompt for request in requests}) == 1
    assert len({str((request.stops, request.max_tokens)) for request in requests}) == len(requests)


def test_requests_of_a_pair_differ_in_one_field_alone() -> None:
    for name, pair in PAIRS.items():
        limits = {} if "limit" in name else {"max_tokens": 80}
        one, other = (
            APIS["openai-chat"].body("m", single(APIS["openai-chat"], point.stream, asked).request)
            for point in pair
            for asked in [replace(task_of(point), **limits)]
        )
        fields = {key for key in one | other if one.get(key) != other.get(key)} - {"stream_options"}
        assert len(fields) == 1, (name, fields)


def test_leaving_an_ended_answer_tests_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The case must not pass if the answer is complete before the client leaves. It is "not supported", because it has
    tested nothing."""

    async def ask(server: Server, api: Api, request: Request, *, leave: int) -> Answer:
        return Answer(end=("length", None))

    monkeypatch.setattr(several, "ask", ask)
    left = leaving(single(APIS["openai-chat"], True, KNOWN["streams"]))
    with pytest.raises(NotSupported, match="not tested: the server answers too fast"):
        asyncio.run(left(Server("http://127.0.0.1:9", model="reciter")))
