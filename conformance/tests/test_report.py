"""How the findings of a case become its result, how reports show results, and how a report is read as the baseline."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import stopscan_conformance
from stopscan_conformance import APIS, RULES, Case, Result, Server, cases
from stopscan_conformance import __main__ as command
from stopscan_conformance.judge import Findings
from stopscan_conformance.probe import Can
from stopscan_conformance.report import (
    NOTHING_KNOWN,
    Baseline,
    Report,
    chosen,
    limited,
    summary,
    write_json,
    write_junit,
)  # fmt: skip
from stopscan_conformance.sentences import VERSIONS
from stopscan_conformance.single import NotSupported

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


class Staged(Server):
    """A `Server` at an address where nothing runs. `missing` says why the server lacks Anthropic's API, or is None if
    the server has this API."""

    def __init__(self, missing: str | None = None) -> None:
        super().__init__("http://127.0.0.1:9", model="reciter")
        self.probed["anthropic"] = Can(missing=missing)


def run(found: Findings | Exception, server: Server, level: Any = "usual") -> Result:
    async def run(_: Server) -> Findings:
        await asyncio.sleep(0)
        if isinstance(found, Exception):
            raise found
        return found

    return replace(SPLIT, _run=run).run(server, level=level)


def test_a_case_that_finds_nothing_wrong_passes() -> None:
    assert run({"form": None, "text": None}, Staged()) == ("pass", "", {"form": None, "text": None})
    assert run({}, Staged()) == ("pass", "", {})


def test_a_failure_says_if_the_server_died() -> None:
    result = run({"usage": "two", "finish-reason": None, "text": "one"}, Staged())
    assert result.outcome == "fail"
    assert re.match(r"two; one; afterwards http://127.0.0.1:9 is down: anthropic: ", result.detail)
    assert dict(result.columns) == {"text": "one", "finish": None, "cost": "two"}
    assert result.wrong == ("text", "cost")
    assert result.broken == {"usage": "two", "text": "one"}


def test_advice_fails_a_case_at_its_level_only() -> None:
    found: Findings = {"withheld": "late", "text": None}
    assert run(found, Staged()).outcome == "pass"
    assert run(found, Staged()).broken == {"withheld": "late"}
    assert run(found, Staged(), "advice").outcome == "fail"
    assert run({"competing-stops": "other"}, Staged(), "documented").outcome == "pass"


def test_a_case_may_be_not_supported() -> None:
    assert run({"text": "one"}, Staged("404: no route")) == ("not supported", "404: no route", {})
    assert run(NotSupported("422: no stops"), Staged()) == ("not supported", "422: no stops", {})


def test_cases_have_names_topics_and_reasons() -> None:
    assert all(case.topic and case.name and case.why for case in EVERY)
    assert [case.stream for case in EVERY if case.name == "split"] == [False, True] * 2
    assert {case.name for case in EVERY if case.timed} == {
        "cost-of-a-stop", "cost-for-the-next", "pace", "pace-with-stops", "pace-while-held",
    }  # fmt: skip


def test_each_case_has_a_line_with_its_rules() -> None:
    found = reported({**RESULTS, STREAMED: ADVISED})
    lines = [line for case, result in found.results.items() for line in found.lines(case, result)]
    assert lines == [
        "FAIL  anthropic-whole-split",
        "      text (documented): no\x1b text",
        "      form (documented): no id",
        "pass  anthropic-stream-split",
        "      withheld (advice): late",
        "skip  ollama-chat-whole-split: 422: no stops",
    ]


def test_the_summary_cites_each_rule_that_is_broken() -> None:
    lines = printed(reported({SPLIT: FAILS, STREAMED: ADVISED, OTHER: REFUSED}))
    assert lines[:3] == [
        "kept / tested text finish form late cost",
        "anthropic 1/2 1/1 0/1 0/1 -",
        "ollama-chat - - - - -",
    ]
    for rule, level in (("text", "documented"), ("form", "documented"), ("withheld", "advice")):
        at = lines.index(f"anthropic: {rule} is broken in 1 case: split")
        assert lines[at + 1] == f"{level}: {RULES[rule].says}"
        assert lines[at + 2] == RULES[rule].source(APIS["anthropic"], FAILS.findings.get(rule) or "")
    assert "not supported: ollama-chat, 1 case: 422: no stops" in lines
    assert "1 pass (1 of them break advice), 1 fail, 1 not supported" in lines
    assert lines[-1].startswith(f"text form of {SPLIT}: {SPLIT.why} curl -sNL http://127.0.0.1:9/v1/messages")


def test_the_summary_counts_the_documented_forms_that_were_refused() -> None:
    (string,) = [case for case in cases("openai-chat") if str(case) == "openai-chat-whole-a-string"]
    (null,) = [case for case in cases("openai-chat") if str(case) == "openai-chat-whole-null"]
    refused = Result("fail", "refused: 400: no", {"refuses-a-documented-form": "refused: 400: no"})
    lines = printed(reported({string: refused, null: Result("pass"), SPLIT: FAILS}))
    assert "openai-chat: 1 of 2 documented forms of request were refused" in lines


def test_json(tmp_path: Path) -> None:
    found = reported(RESULTS)
    found.can["anthropic"] = Can(count_prompt=False)
    write_json(tmp_path / "out.json", found)
    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert text.endswith("}\n")
    content = json.loads(text)
    assert content.pop("versions") == {"stopscan-conformance": stopscan_conformance.__version__}
    line = content["results"][0].pop("curl")
    assert line.startswith("curl -sNL http://127.0.0.1:9/v1/messages -H 'Content-Type: application/json' -d '{")
    assert json.loads(shlex.split(line)[-1])["stop_sequences"] == ["END"]
    results = content.pop("results")
    assert content == {
        "url": "http://127.0.0.1:9",
        "model": "reciter",
        "seed": 7,
        "level": "usual",
        "complete": True,
        "cannot": {"anthropic": ["counts no prompt tokens: not judged"]},
        "summary": {"pass": 1, "fail": 1, "not supported": 1},
    }
    assert {key: value for key, value in results[0].items() if key != "findings"} == {
        "api": "anthropic", "stream": False, "case": "split", "topic": SPLIT.topic, "why": SPLIT.why,
        "outcome": "fail", "detail": FAILS.detail,
    }  # fmt: skip
    assert results[0]["findings"][0] == {
        "rule": "text",
        "promise": "text",
        "level": "documented",
        "quote": "Custom text sequences that will cause the model to stop generating.",
        "source": f"anthropic {VERSIONS['anthropic']}, types/message_create_params.py",
        "fault": "no\x1b text",
        "new": True,
    }
    assert [one["outcome"] for one in results] == ["fail", "pass", "not supported"]


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
    told = str(root[0][0][0].text)
    assert SPLIT.why in told
    assert "text (documented): the text is all of what comes before the stop" in told
    assert "https://docs.anthropic.com/en/api/messages" in told
    assert "curl -sNL" in told


def test_known_failures_are_counted_only(tmp_path: Path) -> None:
    write_json(tmp_path / "known.json", reported({SPLIT: FAILS}))
    known = Baseline.read(tmp_path / "known.json")
    assert [*known.other_than(7)] == []
    assert "the baseline has the cases of --seed 7, this run has those of --seed 8" in known.other_than(8)
    more = Result("fail", "no\x1b text; eos; no id", {**FAILS.findings, "finish-reason": "eos"})
    found = reported({SPLIT: more, STREAMED: PASSES}, known)
    assert found.status == 1
    assert [*found.lines(SPLIT, more)] == [f"FAIL  {SPLIT}", "      finish-reason (documented): eos"]
    assert "1 of the 1 failures is not in the baseline" in printed(found)
    assert reported({SPLIT: FAILS}, known).status == 0
    write_json(tmp_path / "out.json", found)
    findings = json.loads((tmp_path / "out.json").read_text())["results"][0]["findings"]
    assert [one["rule"] for one in findings if one.get("new")] == ["finish-reason"]
    write_junit(tmp_path / "out.xml", reported({SPLIT: FAILS, STREAMED: FAILS}, known))
    suite = ElementTree.parse(tmp_path / "out.xml").getroot()[0]
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("1", "1")
    assert [one.tag for one in suite.iter() if one.tag in ("failure", "skipped")] == ["skipped", "failure"]
    assert str(suite[0][0].attrib["message"]).startswith("known: no")


@pytest.mark.parametrize(("content", "told"), [("{", "is not JSON: "), ("[]", "is not a report that --json"),
                                               ('{"results": [1]}', "is not a report that --json")])  # fmt: skip
def test_a_baseline_that_is_none(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "known.json").write_text(content)
    with pytest.raises(ValueError, match=f"--baseline .*known.json {told}"):
        Baseline.read(tmp_path / "known.json")


def test_a_run_that_ended_early_says_so(tmp_path: Path) -> None:
    found = reported({SPLIT: PASSES}, complete=False)
    found.every = [SPLIT, STREAMED, OTHER]
    assert "the run ended early: 1 results of 3 cases" in printed(found)
    write_json(tmp_path / "out.json", found)
    assert json.loads((tmp_path / "out.json").read_text())["complete"] is False


@pytest.mark.parametrize("write", [write_json, write_junit])
def test_a_kill_while_writing_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    """A report replaces an older file only when it is complete. Otherwise, if the process is killed or the disk is
    full, the results of hours are lost."""

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


@pytest.mark.parametrize("glob", ["split", "anthropic-stream-split", "spl*"])
def test_a_case_without_its_api_gets_a_hint(glob: str) -> None:
    told = (
        f"--only {glob} does not name a promise, a topic or a case; a case is named API/NAME, such as anthropic/split"
    )
    with pytest.raises(ValueError, match=re.escape(told)):
        chosen(EVERY, ["rules", glob])


def test_globs_choose_cases_and_promises() -> None:
    assert {case.topic for case in chosen(EVERY, ["rules"])} == {"rules"}
    assert {case.name for case in chosen(EVERY, ["anthropic/held-*", "text"])} >= {"held-at-eos", "held-at-the-limit"}
    assert chosen(EVERY, ["text"]) == EVERY
    assert limited(FAILS, ["form"], "usual", "anthropic") == ("fail", "no id", {"form": "no id"})
    assert limited(FAILS, ["late"], "usual", "anthropic") is None
    assert limited(REFUSED, ["late"], "usual", "anthropic") == REFUSED


def test_an_option_is_what_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def run(server: Server, every: Any, results: dict[Case, Result], **options: Any) -> None:
        seen.update(server=server, every=[*every], level=options["level"])
        results.update(dict.fromkeys(every, PASSES))

    monkeypatch.setattr(command, "run", run)
    assert command.main(["http://127.0.0.1:9", "--model", "m"]) == 0
    assert [str(case) for case in seen["every"]] == [str(case) for case in cases()]
    assert (seen["server"].timeout, seen["server"].api_key, seen["level"]) == (30, None, "usual")
    arguments = "http://127.0.0.1:9 --api anthropic --api ollama-chat --model m --api-key k --timeout 1.5"
    files = [f"--{kind}={tmp_path / f'out.{kind}'}" for kind in ("json", "junit", "html")]
    assert command.main([*arguments.split(), "--deep", "--level", "advice", *files]) == 0
    assert len(seen["every"]) == len(cases("anthropic", "ollama-chat", deep=True))
    assert (seen["server"].timeout, seen["server"].api_key, seen["level"]) == (1.5, "k", "advice")
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".junit", ".html"}
    assert command.main(["http://127.0.0.1:9", "--api", "generate", "--model", "m", "--thorough"]) == 0
    assert len(seen["every"]) == len(cases("generate", thorough=True))


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ({SPLIT: PASSES}, 0),
        ({SPLIT: ADVISED}, 0),
        ({SPLIT: REFUSED, STREAMED: PASSES}, 0),
        ({STREAMED: PASSES, SPLIT: FAILS}, 1),
        ({SPLIT: REFUSED}, 2),
        ({}, 2),
    ],
)
def test_refusals_are_neither_failures_nor_success(
    monkeypatch: pytest.MonkeyPatch, found: dict[Case, Result], status: int
) -> None:
    monkeypatch.setattr(command, "run", lambda server, every, results, **_: results.update(found))
    assert command.main(["http://127.0.0.1:9", "--model", "reciter"]) == status


def test_a_summary_names_promises_without_a_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "run", lambda server, every, results, **_: None)
    arguments = ["http://127.0.0.1:9", "--model", "reciter", "--only", "late", "--only", "anthropic/split"]
    assert command.main(arguments) == 2
    assert capsys.readouterr().err == "stopscan-conformance: none of the 2 chosen cases tests the promise late\n"
