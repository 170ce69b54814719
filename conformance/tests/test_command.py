"""The command `stopscan-conformance`: what it prints, and its exit status."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from stopscan_conformance import APIS, Case, cases
from stopscan_conformance import __main__ as command
from stopscan_conformance import run as running
from stopscan_conformance.sentences import VERSIONS

BY_NAME = {str(case): case for case in cases("openai-completions")}
FEW = ("split", "no-stop", "think")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the command send only the cases named in `FEW`."""

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
    assert [(one["case"], one["outcome"]) for one in content["results"][:2]] == [("no-stop", "pass"), ("split", "pass")]


def test_a_promise_alone_counts_the_cases_that_test_it(staged_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--only PROMISE` leaves out the cases that do not test the promise. The run must not count these cases as
    passed."""
    assert run(f"{staged_url}/right", "--only", "late", "--only", "*/no-stop", "--only", "*/split") == 0
    assert "2 pass, 0 fail, 0 not supported" in capsys.readouterr().out  # only the streams test `late`


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "localhost", "ftp://127.0.0.1"])
def test_what_is_no_url_is_a_usage_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(url)
    assert f"error: {url} is not the URL of a server, such as http://127.0.0.1:8000" in capsys.readouterr().err


@pytest.mark.parametrize("api", [api for api in APIS if api != "generate"])  # requests of "generate" name no model
def test_wrong_model(staged_url: str, api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{staged_url}/right", "--model", "gpt", api=api) == 2
    assert capsys.readouterr().err.startswith(f"stopscan-conformance: {staged_url}/right has no model 'gpt': 404: ")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("api", APIS)
def test_api_key(staged_url: str, api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{staged_url}/locked", "--model", "reciter", api=api) == 2
    assert "/locked refuses the API key: " in capsys.readouterr().err
    assert run(f"{staged_url}/locked", "--api-key", "secret", api=api) == 0


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_an_unwritable_file_is_an_error_before_the_run(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "missing" / "out"
    assert run(f"http://127.0.0.1:{free_port()}", option, str(path)) == 2
    assert capsys.readouterr().err == f"stopscan-conformance: [Errno 2] No such file or directory: {str(path)!r}\n"


def test_what_was_measured_before_the_server_died_is_printed(
    staged_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "AT_ONCE", 2)
    options = ["--timeout", "1", "--json", str(tmp_path / "out.json"), "--only", "*/no-stop", "--only", "rules"]
    assert run(f"{staged_url}/dies", *options, api="openai-chat") == 2
    out, err = capsys.readouterr()
    assert "no end of the answer in 2 s" in out
    # The time limit is 1 s for a request alone. If two requests run at once, it is 2 s for each of them.
    assert "dies is slow: openai-chat did not recite 26 tokens in 1 s" in err
    summary = json.loads((tmp_path / "out.json").read_text())["summary"]
    assert summary["pass"] >= 1
    assert summary["fail"] >= 1


@pytest.mark.parametrize(
    ("number", "status", "interrupts"),
    [
        (signal.SIGINT, 130, signal.SIG_DFL),
        (signal.SIGTERM, 143, signal.SIG_DFL),
        # SIGINT is ignored, as in a background job of a shell. SIGTERM must still end the run.
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


def test_wrong_server(staged_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"{staged_url}/{quote('held text is lost at EOS')}"
    assert run(url, "--only", "*/held-at-eos", api="openai-chat") == 1
    out = capsys.readouterr().out
    assert "FAIL  openai-chat-whole-held-at-eos\n      text (documented): text 'Please do not ', not" in out
    assert "openai-chat: text is broken in 2 cases: held-at-eos\n  documented: the text is all" in out
    assert "  \u201cUp to 4 sequences where the API will stop generating further tokens. The returned text" in out
    assert f"(openai {VERSIONS['openai']}, types/chat/completion_create_params.py)\n" in out
    assert "curl -sNL" in out


def test_a_plain_server_passes_and_lacks_are_named(staged_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A server passes if it does everything that OpenAI documents and nothing more. It need not name the stop that
    fired, because OpenAI's API has no field for it."""
    options = ["--only", "rules", "--only", "ids", "--only", "reasoning", "--level", "documented"]
    assert run(f"{staged_url}/plain", *options, api="openai-chat") == 0
    out = capsys.readouterr().out
    for line in ("does not name its stops", "has no stop_token_ids", "does not separate reasoning"):
        assert f"openai-chat: {line}: not judged" in out
    assert " 0 fail, " in out


def test_lines_come_as_cases_end_into_a_pipe_too(staged_url: str) -> None:
    """The command prints each line when its case ends, not all lines at the end, even if the output is a pipe."""
    arguments = [f"{staged_url}/right", "--api", "openai-chat", "--model", "reciter"]
    command_line = [sys.executable, "-m", "stopscan_conformance", *arguments]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        lines = [process.stdout.readline() for _ in range(20)]
        assert process.poll() is None
        process.terminate()
        process.stdout.read()
    assert first.startswith("openai-chat: ")
    assert all(line.startswith("pass  openai-chat-") for line in lines)


def test_the_kit_needs_httpx_alone(tmp_path: Path) -> None:
    """The kit needs no package but httpx, even to write its checkpoint (the command `reciter`). It must not import
    stopscan, which needs a compiler."""
    others = ["anthropic", "gguf", "numpy", "ollama", "openai", "safetensors", "stopscan", "tokenizers"]
    script = (
        "import sys; from stopscan_conformance.__main__ import main; main(['reciter', sys.argv[1]]); "
        "print(*sorted(name.partition('.')[0] for name in sys.modules))"
    )
    command_line = [sys.executable, "-c", script, str(tmp_path)]
    said = subprocess.run(command_line, capture_output=True, text=True, check=True).stdout.split()
    assert not {*others} & {*said}
