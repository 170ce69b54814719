"""The command for people: what it prints, and its exit status."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from tokenizers import Tokenizer

from stopscan_conformance import APIS, COLUMNS, Case, Result, Server, _run, cases
from stopscan_conformance import __main__ as command
from stopscan_conformance._report import Report, print_tables
from stopscan_conformance.reciter import SCRIPTS

BY_NAME = {str(case): case for case in cases("openai-completions")}
FEW = ("split", "no-stop", "think")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command sends a few cases of each API only."""

    def chosen(*apis: str, **options: Any) -> list[Case]:
        return [case for case in cases(*apis, **options) if case.name in FEW]

    monkeypatch.setattr(command, "cases", chosen)


def run(url: str, *options: str, api: str | None = "openai-completions") -> int:
    return command.main([url, *(["--api", api] if api else []), *options])


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.usefixtures("few")
def test_right_server(staged_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{staged_url}/right/v1/", "--json", str(tmp_path / "out.json")) == 0
    out, err = capsys.readouterr()
    assert "4 pass, 0 fail, 0 not supported" in out
    assert err == ""
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["summary"] == {"pass": 4, "fail": 0, "not supported": 0}
    assert content["results"][0] == {
        "api": "openai-completions",
        "stream": False,
        "case": "no-stop",
        "topic": "ends",
        "rule": BY_NAME["openai-completions-whole-no-stop"].why,
        "outcome": "pass",
        "detail": "",
        "columns": {"text": None, "finish": None, "form": None, "cost": None},
    }


@pytest.mark.usefixtures("few")
def test_wrong_server(staged_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{staged_url}/{quote('the stop is not named')}"
    assert run(url, "--junit", str(tmp_path / "out.xml"), api="openai-chat") == 1
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if line.split()[:1] in (["openai-chat"], ["split"])] == [
        ["openai-chat", "6/6", "2/6", "6/6", "2/2", "6/6"],
        ["split", "both"],
    ]
    assert "FAIL openai-chat-whole-split: ended by eos, not stop_sequence 'END': the choice has neither" in out
    assert "2 pass, 4 fail, 0 not supported" in out
    failures = ElementTree.parse(tmp_path / "out.xml").getroot().findall("testsuite/testcase/failure")
    assert [failure.get("type") for failure in failures] == ["finish"] * 4


def test_tables_fit_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    every = cases("openai-completions", "harmony-responses")  # the longest names
    results = {case: Result("fail", "", dict.fromkeys(COLUMNS, f"not as {case.name}")) for case in every}
    print_tables(Report(Server("http://127.0.0.1:9"), results=results))
    out = capsys.readouterr().out
    assert max(map(len, out.partition("FAIL")[0].splitlines())) <= 80
    assert all(case.name in {word.rstrip(":") for word in out.split()} for case in results)


def test_what_is_wrong_everywhere_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    every = [case for case in cases("anthropic") if not case.stream][:9]
    results = {case: Result("fail", "no id", {"text": None, "form": "no id"}) for case in every}
    results[every[0]] = Result("fail", "no id; late", {"late": "late", "form": "no id"})
    print_tables(Report(Server("http://127.0.0.1:9"), results=results))
    out = capsys.readouterr().out
    assert out.count("FAIL") == 2
    assert "FAIL anthropic, form of 9 cases: no id" in out
    assert f"FAIL {every[0]}: late" in out
    assert [line.split() for line in out.partition("FAIL")[0].splitlines() if "whole" in line] == [
        ["nearly", "all", "whole"],
        [every[0].name, "whole"],
    ]


@pytest.mark.usefixtures("few")
def test_missing_route_and_missing_channels(staged_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{staged_url}/{quote('without channels')}", "--api", "harmony-chat") == 0
    out = capsys.readouterr().out
    assert "4 pass, 0 fail, 4 not supported" in out
    assert "not supported: harmony-chat, 4 cases: the model's channels are not told apart: 'analysisabc" in out


def test_a_promise_alone_counts_the_cases_that_test_it(staged_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What does not test it counted as a pass."""
    assert run(f"{staged_url}/right", "--only", "late", "--only", "*/no-stop", "--only", "*/split") == 0
    assert "2 pass, 0 fail, 0 not supported" in capsys.readouterr().out  # the two streams


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "localhost", "ftp://127.0.0.1"])
def test_what_is_no_url_is_a_usage_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(url)
    assert f"error: {url} is no URL of a server, such as http://127.0.0.1:8000" in capsys.readouterr().err


@pytest.mark.parametrize("api", [api for api in APIS if api != "generate"])  # which names no model
def test_wrong_model(staged_url: str, api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{staged_url}/right", "--model", "gpt", api=api) == 2
    assert capsys.readouterr().err.startswith(f"stopscan-conformance: {staged_url}/right has no model 'gpt': 404: ")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("api", [api for api in APIS if not api.startswith("harmony")])
def test_api_key(staged_url: str, api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{staged_url}/locked", "--model", "reciter", api=api) == 2
    assert "/locked wants another API key: " in capsys.readouterr().err
    assert run(f"{staged_url}/locked", "--api-key", "secret", api=api) == 0


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_file_that_cannot_be_written_is_found_before_the_run(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "missing" / "out"
    assert run(f"http://127.0.0.1:{free_port()}", option, str(path)) == 2
    assert capsys.readouterr().err == f"stopscan-conformance: [Errno 2] No such file or directory: {str(path)!r}\n"


def test_what_was_measured_before_the_server_died_is_printed(
    staged_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_run, "AT_ONCE", 2)
    options = ["--timeout", "1", "--json", str(tmp_path / "out.json"), "--only", "*/no-stop", "--only", "rules"]
    assert run(f"{staged_url}/dies", *options, api="openai-chat") == 2
    out, err = capsys.readouterr()
    assert "no end of the answer in 2 s" in out
    assert "dies is slow: openai-chat did not recite 26 tokens in 2 s" in err  # as often as long as there are at once
    summary = json.loads((tmp_path / "out.json").read_text())["summary"]
    assert summary["pass"] >= 1
    assert summary["fail"] >= 1


@pytest.mark.parametrize(
    ("number", "status", "interrupts"),
    [
        (signal.SIGINT, 130, signal.SIG_DFL),
        (signal.SIGTERM, 143, signal.SIG_DFL),
        # As of a job that a shell runs in the background.
        (signal.SIGTERM, 143, signal.SIG_IGN),
    ],
)
def test_what_was_measured_before_a_signal_is_kept(
    staged_url: str, tmp_path: Path, number: int, status: int, interrupts: signal.Handlers
) -> None:
    path = tmp_path / "out.json"
    arguments = [f"{staged_url}/right", "--api", "openai-chat", "--json", str(path)]
    command_line = [sys.executable, "-m", "stopscan_conformance", *arguments]
    with subprocess.Popen(
        command_line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, interrupts),
    ) as process:
        while not path.exists() or '"outcome"' not in path.read_text():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, err) == (status, "")
    assert "pass, 0 fail" in out
    kept = [(one["stream"], one["case"]) for one in json.loads(path.read_text())["results"]]
    order = [(case.stream, case.name) for case in cases("openai-chat")]
    assert 0 < len(kept) < len(order)
    assert kept == sorted(kept, key=order.index)


def test_how_long_many_cases_take_is_told_first(
    staged_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_run, "MANY", 1)
    assert run(f"{staged_url}/right", "--only", "*/no-stop") == 0
    assert re.fullmatch(r"2 cases: at most about \d+ minutes, at \d+\.\d ms a token\n", capsys.readouterr().err)


def test_another_model(staged_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{staged_url}/{quote('another model')}") == 2
    assert "serves another model than the kit's" in capsys.readouterr().err


def test_server_is_down() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "stopscan_conformance", f"http://127.0.0.1:{free_port()}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "is down: openai-chat: " in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("api", APIS)
def test_server_is_down_by_api(api: str) -> None:
    with pytest.raises(ConnectionError, match=f" is down: {api}: "):
        cases(api)[0].run(Server(f"http://127.0.0.1:{free_port()}"))


@pytest.mark.parametrize("api", APIS)
def test_server_is_silent(api: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        server = Server(f"http://127.0.0.1:{silent.getsockname()[1]}", model="reciter", timeout=0.1)
        with pytest.raises(TimeoutError, match=f" is slow: {api} did not recite 26 tokens in 0.1 s"):
            cases(api)[0].run(server)


def test_progress_bar_on_a_terminal(staged_url: str) -> None:
    # Elsewhere there is none: `test_right_server` reads all of the standard error.
    terminal, end = pty.openpty()
    arguments = [f"{staged_url}/{quote('another model')}", "--api", "openai-completions"]
    command_line = [sys.executable, "-m", "stopscan_conformance", *arguments]
    shown = b""
    with subprocess.Popen(command_line, stderr=end, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}):
        os.close(end)
        # A terminal that is full, because nobody reads it, makes the command wait; the command's end is an error here.
        with suppress(OSError):
            while more := os.read(terminal, 10_000):
                shown += more
    os.close(terminal)
    assert b"Sending" in shown


def test_vectors_are_in_the_package(staged_url: str) -> None:
    added = {case.name for case in cases("openai-chat", vectors=True)} - {case.name for case in cases("openai-chat")}
    assert len(added) > 60


def test_the_default_checkpoint_recites_all(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "stopscan_conformance", "reciter", str(tmp_path / "made")]
    subprocess.run(arguments, check=True, capture_output=True)
    tokenizer = Tokenizer.from_file(str(tmp_path / "made" / "tokenizer.json"))
    for name in ("long-stream", "mlx_lm_stop_spelled_by_other_tokens", *SCRIPTS):
        assert len(tokenizer.encode(f"[{name}]").ids) == 1
    assert sum(file.stat().st_size for file in (tmp_path / "made").iterdir()) < 20_000_000
