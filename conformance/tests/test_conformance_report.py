"""What a case makes of what it finds, and what is written of results."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import stopscan_conformance
from stopscan_conformance import Case, Result, Server, _cases, cases
from stopscan_conformance import __main__ as command
from stopscan_conformance._baseline import NOTHING_KNOWN, Baseline
from stopscan_conformance._exchange import NotSupported
from stopscan_conformance._files import write_json, write_junit
from stopscan_conformance._promises import Findings
from stopscan_conformance._report import Report, print_tables
from stopscan_conformance._select import chosen

EVERY = cases("anthropic", "ollama-chat")
SPLIT, STREAMED, OTHER = (
    next(case for case in EVERY if str(case) == name)
    for name in ("anthropic-whole-split", "anthropic-stream-split", "ollama-chat-whole-split")
)
PASSES = Result("pass", "", {"text": None, "finish": None})
FAILS = Result("fail", "no\x1b text; no id", {"text": "no\x1b text", "finish": None, "form": "no id"})
REFUSED = Result("not supported", "422: no stops")
RESULTS = {SPLIT: FAILS, STREAMED: PASSES, OTHER: REFUSED}


def reported(results: dict[Case, Result], known: Baseline = NOTHING_KNOWN, *, complete: bool = True) -> Report:
    server = Server("http://127.0.0.1:9/v1/", model="reciter")
    return Report(server, 7, known, [*results], results, complete=complete)


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


def test_json(tmp_path: Path) -> None:
    write_json(tmp_path / "out.json", reported(RESULTS))
    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert text.endswith("}\n")
    content = json.loads(text)
    clients = ("anthropic", "httpx", "ollama", "openai")
    assert content.pop("versions") == {
        "stopscan-conformance": stopscan_conformance.__version__,
        **{name: version(name) for name in clients},
    }
    named = {"case": "split", "topic": SPLIT.topic, "rule": SPLIT.why}
    whole = {"api": "anthropic", "stream": False, **named}
    line = content["results"][0].pop("curl")
    assert line.startswith("curl -sN http://127.0.0.1:9/v1/messages -H 'Content-Type: application/json' -d '{")
    assert json.loads(shlex.split(line)[-1])["stop_sequences"] == ["END"]
    assert content == {
        "url": "http://127.0.0.1:9",
        "model": "reciter",
        "seed": 7,
        "complete": True,
        "summary": {"pass": 1, "fail": 1, "not supported": 1},
        "results": [
            {
                **whole,
                "outcome": "fail",
                "detail": FAILS.detail,
                "columns": dict(FAILS.columns),
                "new": ["text", "form"],
            },
            {**whole, "stream": True, "outcome": "pass", "detail": "", "columns": dict(PASSES.columns)},
            {**whole, "api": "ollama-chat", "outcome": "not supported", "detail": "422: no stops", "columns": {}},
        ],
    }


def test_junit(tmp_path: Path) -> None:
    write_junit(tmp_path / "out.xml", reported(RESULTS))
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert root.tag == "testsuites"
    assert [(suite.tag, suite.attrib) for suite in root] == [
        ("testsuite", {"name": "anthropic", "tests": "2", "failures": "1", "skipped": "0"}),
        ("testsuite", {"name": "ollama-chat", "tests": "1", "failures": "0", "skipped": "1"}),
    ]
    found = {case.attrib["name"]: (case.attrib["classname"], [(one.tag, one.attrib) for one in case])
             for case in root.iter("testcase")}  # fmt: skip
    text = "no\N{REPLACEMENT CHARACTER} text; no id"
    assert found == {
        str(SPLIT): ("stopscan_conformance.anthropic", [("failure", {"message": text, "type": "text form"})]),
        str(STREAMED): ("stopscan_conformance.anthropic", []),
        str(OTHER): ("stopscan_conformance.ollama-chat", [("skipped", {"message": "422: no stops", "type": ""})]),
    }


def printed(found: Report, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_tables(found)
    return [
        " ".join(line.split())
        for line in capsys.readouterr().out.splitlines()
        if line.strip(" \N{BOX DRAWINGS LIGHT HORIZONTAL}")
    ]


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


def test_what_the_baseline_knows_is_counted_and_not_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json(tmp_path / "known.json", reported({SPLIT: FAILS}))
    known = Baseline.read(tmp_path / "known.json")
    assert [*known.other_than(7)] == []
    assert "the baseline has the cases of --seed 7, this run has those of --seed 8" in known.other_than(8)
    more = Result("fail", "no\x1b text; eos; no id", {**FAILS.columns, "finish": "eos"})
    found = reported({SPLIT: more, STREAMED: PASSES}, known)
    assert found.status == 1
    lines = printed(found, capsys)
    assert [line for line in lines if line.startswith("FAIL")] == ["FAIL anthropic-whole-split: eos"]
    assert "1 of the 1 failures is not in the baseline" in lines
    assert reported({SPLIT: FAILS}, known).status == 0
    write_json(tmp_path / "out.json", found)
    assert json.loads((tmp_path / "out.json").read_text())["results"][0]["new"] == ["finish"]
    write_junit(tmp_path / "out.xml", reported({SPLIT: FAILS, STREAMED: FAILS}, known))
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()[0]
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("1", "1")
    assert [one.tag for one in suite.iter() if one.tag in ("failure", "skipped")] == ["skipped", "failure"]
    assert str(suite[0][0].attrib["message"]).startswith("known: no")


@pytest.mark.parametrize(("content", "told"), [("{", "is no JSON: "), ("[]", "was not written by --json"),
                                               ('{"results": [1]}', "was not written by --json")])  # fmt: skip
def test_a_baseline_that_is_none(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "known.json").write_text(content)
    with pytest.raises(ValueError, match=f"--baseline .*known.json {told}"):
        Baseline.read(tmp_path / "known.json")


def test_a_run_that_ended_early_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = reported({SPLIT: PASSES}, complete=False)
    found.every = [SPLIT, STREAMED, OTHER]
    assert "the run ended early: 1 results of 3 cases" in printed(found, capsys)
    write_json(tmp_path / "out.json", found)
    assert json.loads((tmp_path / "out.json").read_text())["complete"] is False


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


@pytest.mark.parametrize("write", [write_json, write_junit])
def test_a_kill_while_writing_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    """The file was emptied first: a kill, or a full disk, lost the results of hours."""

    def wrote(results: dict[Case, Result]) -> None:
        write(path, reported(results))

    kept, path = tmp_path / "kept", tmp_path / "out"
    path.symlink_to(kept)
    wrote(RESULTS)
    before = kept.read_bytes()
    assert before

    def full(self: Path, content: bytes) -> None:
        with open(self, "wb") as file:
            file.write(content[:9])
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="no space"):
            wrote({SPLIT: PASSES})
    assert kept.read_bytes() == before
    assert path.is_symlink()
    assert {file.name for file in tmp_path.iterdir()} == {"kept", "out"}
    path.unlink()
    wrote(RESULTS)
    assert path.read_bytes() == before
