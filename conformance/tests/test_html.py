"""Tests the HTML page that the option `--html` writes. Its tables have a column for each server."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from stopscan_conformance.__main__ import main
from stopscan_conformance.html_report import heat, page

ONLY = [
    "--api",
    "openai-chat",
    "--only",
    "openai-chat/split",
    "--only",
    "openai-chat/held-at-eos",
    "--model",
    "reciter",
]


@pytest.fixture(scope="module")
def written(staged_url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the HTML page that compares a wrong server with a right one."""
    folder = tmp_path_factory.mktemp("html")
    right, wrong = folder / "right.json", f"{staged_url}/{quote('held text is lost at EOS')}"
    assert main([f"{staged_url}/right", *ONLY, "--json", str(right)]) == 0
    assert main([wrong, *ONLY, "--baseline", str(right), "--html", str(folder / "page.html")]) == 1
    return (folder / "page.html").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in re.findall(r"<tr>.*?</tr>", text)]


def test_two_servers_stand_side_by_side(written: str, staged_url: str) -> None:
    table = {tuple(row[:2]): row[2:] for row in rows(written) if len(row) == 4}
    assert [head.startswith(staged_url) for head in table["API", "promise"]] == [True, True]
    kept, right = table["openai-chat", "text"]
    assert (kept, right) == ("2/4", "4/4")


def test_a_failure_has_rule_source_and_request(written: str) -> None:
    cases = {re.sub("<.*?>", " ", row[0]): row[1:] for row in rows(written) if len(row) == 3}
    names = [name for name in cases if "held-at-eos" in name]
    assert len(names) == 2  # as a stream, and whole
    for name in names:
        wrong, right = cases[name]
        assert "<b>text</b>" in wrong
        assert "curl -sNL" in wrong
        assert right == "pass"
    assert not [name for name in cases if "split" in name]


def test_text_of_a_server_is_escaped() -> None:
    finding = {
        "rule": "text",
        "promise": "text",
        "level": "documented",
        "fault": "<b>&",
        "source": "here",
        "quote": "<i>",
    }
    result = {
        "api": "a",
        "stream": True,
        "case": "c",
        "why": "w",
        "outcome": "fail",
        "detail": "",
        "curl": "curl '<p>'",
    }
    run = {"url": "http://<host>", "complete": True, "results": [{**result, "findings": [finding]}]}
    text = page([run])
    assert "&lt;b&gt;&amp;" in text
    assert "<blockquote>&lt;i&gt;</blockquote>here" in text
    assert not [raw for raw in ("<host>", "'<p>", "<i>") if raw in text]


def test_the_more_is_broken_the_redder_is_a_cell() -> None:
    hues = [int(re.findall(r"\d+", heat(kept, 100))[0]) for kept in (0, 50, 99, 100)]
    assert hues == sorted({*hues})
    assert heat(0, 0) == "#f3f4f6"
