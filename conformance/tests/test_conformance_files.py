"""What is written of results, and the baseline that is read from there."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from samples import FAILS, OTHER, PASSES, RESULTS, SPLIT, STREAMED, printed, reported

import stopscan_conformance
from stopscan_conformance import Case, Result
from stopscan_conformance._baseline import Baseline
from stopscan_conformance._files import write_json, write_junit


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
