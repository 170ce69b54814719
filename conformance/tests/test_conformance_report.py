"""What a case makes of what it finds, and what is written of results."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples import EVERY, FAILS, OTHER, PASSES, REFUSED, SPLIT, STREAMED, printed, reported

from stopscan_conformance import Case, Result, Server, _cases, cases
from stopscan_conformance import __main__ as command
from stopscan_conformance._exchange import NotSupported
from stopscan_conformance._promises import Findings
from stopscan_conformance._select import chosen


class Staged(Server):
    """A server that is found so when it is probed, and afterwards."""

    def __init__(self, missing: str | None = None, trouble: str | None = None) -> None:
        super().__init__("http://127.0.0.1:9", model="reciter")
        self.found, self.asked = (missing, trouble), list[str]()


@pytest.fixture(autouse=True)
def staged_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def probe(server: Staged, api: Any, /) -> str | None:
        server.asked.append(f"probe {api.name}")
        return server.found[0]

    async def trouble(server: Staged, api: Any, /) -> str | None:
        server.asked.append(f"trouble {api.name}")
        return server.found[1]

    monkeypatch.setattr(_cases, "probe", probe)
    monkeypatch.setattr(_cases, "trouble", trouble)


def run(found: Findings | Exception, server: Server) -> Result:
    async def play(_: Server) -> Findings:
        await asyncio.sleep(0)
        if isinstance(found, Exception):
            raise found
        return found

    return replace(SPLIT, _play=play).run(server)


def test_a_case_that_finds_nothing_wrong_passes() -> None:
    server = Staged(trouble="not asked for")
    assert run({"form": None, "text": None}, server) == ("pass", "", {"text": None, "form": None})
    assert server.asked == ["probe anthropic"]
    assert run({}, server) == ("pass", "", {})


def test_a_case_that_finds_something_wrong_fails_in_the_order_of_the_promises() -> None:
    server = Staged()
    result = run({"cost": "two", "finish": None, "text": "one"}, server)
    assert result == ("fail", "one; two", {"text": "one", "finish": None, "cost": "two"})
    assert [*result.columns] == ["text", "finish", "cost"]
    assert result.wrong == ("text", "cost")
    assert server.asked == ["probe anthropic", "trouble anthropic"]


def test_trouble_is_told_with_what_it_made_wrong() -> None:
    result = run({"text": "one"}, Staged(trouble="afterwards it is down"))
    assert result == ("fail", "one; afterwards it is down", {"text": "one"})


def test_a_case_may_be_not_supported() -> None:
    assert run({"text": "one"}, Staged("404: no route")) == ("not supported", "404: no route", {})
    assert run(NotSupported("422: no stops"), Staged()) == ("not supported", "422: no stops", {})


def test_cases_have_names_topics_and_reasons() -> None:
    assert all(case.topic and case.name and case.why for case in EVERY)
    assert [case.stream for case in EVERY if case.name == "split"] == [False, True] * 2
    assert {case.name for case in EVERY if case.timed} == {
        "cost-of-a-stop", "cost-of-the-first-text", "cost-after-stops", "cost-after-leaving",
        "cost-after-leaving-held", "cost-after-leaving-reasoning",
        "pace", "pace-with-stops", "pace-while-held",
    }  # fmt: skip
    assert not [case for case in cases("harmony-chat") if case.timed]


def test_what_takes_several_requests_is_asked_of_each_api() -> None:
    several = {"at-once", "at-once-mixed", "one-prompt", "in-turn"}
    apart = {"after-leaving", "beside-leaving", "prompt-tokens", "twice-the-same"}
    timed = {"cost-of-a-stop", "cost-after-stops", "cost-after-leaving"}
    for api, more in (("openai-chat", {"usage-not-asked"}), ("anthropic", set()), ("harmony-chat", None)):
        for stream in (False, True):
            made = {case.name for case in cases(api) if case.stream == stream and case.topic in ("together", "cost")}
            names = {case.name for case in cases(api) if case.stream == stream}
            if more is None:
                assert made == several
                continue
            more_timed = {"cost-of-the-first-text", "cost-after-leaving-held", "cost-after-leaving-reasoning"}
            assert made == several | apart | timed | (more_timed if stream else set())
            assert names & {"usage-not-asked"} == (more if stream else set())


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    both = Result("fail", "late", {"late": "late"})
    named = replace(STREAMED, name="another")
    found = reported({SPLIT: FAILS, STREAMED: both, named: both, OTHER: REFUSED})
    assert printed(found, capsys)[:11] == [
        "kept, of so many text finish form late cost",
        "anthropic 0/1 1/1 0/1 0/2 -",
        "ollama-chat - - - - -",
        "broken: anthropic text finish form late cost",
        "another stream",
        "split whole whole stream",
        "FAIL anthropic-whole-split: no\x1b text; no id",
        "FAIL anthropic-stream-split: late",
        "FAIL anthropic-stream-another: late",
        "not supported: ollama-chat, 1 case: 422: no stops",
        "0 pass, 3 fail, 1 not supported",
    ]


@pytest.mark.parametrize(("number", "of", "lines"), [(5, 5, 5), (6, 6, 1), (6, 17, 1), (6, 18, 6)])
def test_what_more_than_a_third_of_the_cases_have_wrong_is_said_once(
    number: int, of: int, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [case for case in EVERY if case.api == "anthropic"][:of]
    results = {
        case: Result("fail", "no id", {"form": "no id"}) if at < number else PASSES for at, case in enumerate(chosen)
    }
    assert sum(line.startswith("FAIL") for line in printed(reported(results), capsys)) == lines


def test_a_failure_without_promises_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"FAIL {SPLIT}: why" in printed(reported({SPLIT: Result("fail", "why")}), capsys)


@pytest.mark.parametrize("glob", ["split", "anthropic-stream-split", "spl*"])
def test_a_case_without_its_api_gets_a_hint(glob: str) -> None:
    told = f"--only {glob} names no promise, no topic and no case; a case is named API/NAME, such as anthropic/split"
    with pytest.raises(ValueError, match=re.escape(told)):
        chosen(EVERY, ["rules", glob])


def test_an_option_is_what_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def run(server: Server, every: Any, results: dict[Case, Result], **_: Any) -> None:
        seen.update(server=server, every=[*every])
        results.update(dict.fromkeys(every, PASSES))

    monkeypatch.setattr(command, "run", run)
    assert command.main(["http://127.0.0.1:9"]) == 0
    assert [str(case) for case in seen["every"]] == [str(case) for case in cases()]
    assert (seen["server"].timeout, seen["server"].api_key, seen["server"].named) == (30, None, None)
    arguments = "http://127.0.0.1:9 --api anthropic --api ollama-chat --model m --api-key k --vectors --timeout 1.5"
    files = [f"--json={tmp_path / 'out.json'}", f"--junit={tmp_path / 'out.xml'}"]
    assert command.main([*arguments.split(), *files]) == 0
    assert len(seen["every"]) == len(cases("anthropic", "ollama-chat", vectors=True))
    assert (seen["server"].timeout, seen["server"].api_key, seen["server"].model) == (1.5, "k", "m")
    assert (tmp_path / "out.json").exists()
    assert (tmp_path / "out.xml").exists()


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ({SPLIT: PASSES}, 0),
        ({SPLIT: REFUSED, STREAMED: PASSES}, 0),
        ({STREAMED: PASSES, SPLIT: FAILS}, 1),
        ({SPLIT: REFUSED}, 2),
        ({}, 2),
    ],
)
def test_a_refusal_is_no_failure_and_nothing_but_refusals_no_success(
    monkeypatch: pytest.MonkeyPatch, found: dict[Case, Result], status: int
) -> None:
    monkeypatch.setattr(command, "run", lambda server, every, results, **_: results.update(found))
    assert command.main(["http://127.0.0.1:9", "--model", "reciter"]) == status


def test_a_promise_that_no_case_tests_was_told_by_the_exit_status_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "run", lambda server, every, results, **_: None)
    arguments = ["http://127.0.0.1:9", "--model", "reciter", "--only", "late", "--only", "anthropic/split"]
    assert command.main(arguments) == 2
    assert capsys.readouterr().err == "stopscan-conformance: none of the 2 cases tests late\n"
