"""The kit passes a right server and finds what is wrong with others; a small server here stages each fault."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tokenizers import Tokenizer

import stopscan.testing
from stopscan import StopSet
from stopscan.conformance import Case, Result, Server, cases
from stopscan.conformance.__main__ import main
from stopscan.finish import to_openai
from stopscan.testing.reciter import THINKING, Reciter
from stopscan.tokens import TokenScanner

RECITER = Reciter()
CASES = cases("openai-completions")


class Completions(BaseHTTPRequestHandler):
    """`/v1/completions` of the reciting checkpoint, by `TokenScanner` alone; subclasses do something wrong."""

    tokenizer: Tokenizer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/completions":
            self.reply(404, {"error": "no such route"})
            return
        texts, end, tokens = self.generate(body)
        usage = {"completion_tokens": tokens, "prompt_tokens": 1, "total_tokens": tokens + 1}
        if not body["stream"]:
            choice = {"index": 0, "text": "".join(texts), **end}
            self.reply(200, {"object": "text_completion", "choices": [choice], "usage": usage})
            return
        choices = [{"index": 0, "text": text, "finish_reason": None} for text in texts]
        self.stream([*choices, {"index": 0, "text": "", **end}], usage)

    def generate(self, body: dict[str, Any]) -> tuple[list[str], dict[str, Any], int]:
        script = body["prompt"][1:-1]
        scanner = TokenScanner(
            self.tokenizer,
            StopSet(body.get("stop"), protect=[THINKING]),
            stop_token_ids=body.get("stop_token_ids", ()),
            eos_token_ids=[RECITER.eos_token_id],
            max_tokens=body["max_tokens"],
            skip_special_tokens=False,
        )
        texts = [scanner.feed(token) for token in [*RECITER.token_ids(script), RECITER.eos_token_id]]
        assert scanner.finish is not None
        return texts, to_openai(scanner.finish), scanner.tokens_seen

    def stream(self, choices: list[dict[str, Any]], usage: dict[str, int]) -> None:
        chunks = [{"choices": [choice], "usage": None} for choice in choices]
        lines = [*map(json.dumps, [*chunks, {"choices": [], "usage": usage}]), "[DONE]"]
        self.send("text/event-stream", 200, "".join(f"data: {line}\n\n" for line in lines))

    def reply(self, status: int, content: dict[str, Any]) -> None:
        self.send("application/json", status, json.dumps(content))

    def send(self, kind: str, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        pass


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client may leave early."""


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with Quiet(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module", autouse=True)
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = RECITER.write(tmp_path_factory.mktemp("reciter")) / "tokenizer.json"
    Completions.tokenizer = Tokenizer.from_file(str(path))


def result(handler: type[BaseHTTPRequestHandler], name: str, *, stream: bool = False) -> Result:
    with served(handler) as url:
        return case(name, stream=stream).run(Server(url, model="reciter", timeout=10))


def case(name: str, *, stream: bool = False) -> Case:
    return next(case for case in CASES if (case.name, case.stream) == (name, stream))


def test_right_server_passes() -> None:
    with served(Completions) as url:
        server = Server(url)
        assert {str(case): case.run(server) for case in CASES} == {str(case): Result("pass") for case in CASES}
        assert server.model == "default_model"  # it lists none


def test_stop_ignored() -> None:
    class Ignores(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            return super().generate({**body, "stop": []})

    assert result(Ignores, "split") == Result(
        "fail",
        "text 'This is the END of it', not 'This is the '; ended by eos, not stop_sequence 'END'; "
        "9 tokens counted, not 6",
        ("text", "finish", "usage"),
    )


@pytest.mark.parametrize("stream", [False, True])
def test_stop_not_named(stream: bool) -> None:
    class Nameless(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            texts, end, tokens = super().generate(body)
            return texts, {"finish_reason": end["finish_reason"]}, tokens

    answer = Result("fail", "ended by eos, not stop_sequence '6'", ("finish",))
    assert result(Nameless, "one-token", stream=stream) == answer
    assert result(Nameless, "never", stream=stream) == Result("pass")


def test_prefix_leaked() -> None:
    class Leaks(Completions):
        def stream(self, choices: list[dict[str, Any]], usage: dict[str, int]) -> None:
            choices[-2]["text"] += "E"
            super().stream(choices, usage)

    leak = Result("fail", "text 'This is the E', not 'This is the '", ("text",))
    assert result(Leaks, "split", stream=True) == leak


def test_held_text_lost() -> None:
    class Loses(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            texts, end, tokens = super().generate(body)
            return texts[:-1], end, tokens

    loss = Result("fail", "text 'Please do not ', not 'Please do not STO'", ("text",))
    assert result(Loses, "held-at-eos") == loss


def test_generation_that_goes_on_after_the_stop() -> None:
    class GoesOn(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            texts, end, _ = super().generate(body)
            return texts, end, len(texts)

    assert result(GoesOn, "split") == Result("fail", "9 tokens counted, not 6", ("usage",))


def test_text_after_the_finish() -> None:
    class Late(Completions):
        def stream(self, choices: list[dict[str, Any]], usage: dict[str, int]) -> None:
            super().stream([choices[-1], *choices[:-1]], usage)

    assert result(Late, "split", stream=True) == Result("fail", "text after the finish reason", ("form",))


def test_second_finish() -> None:
    class Twice(Completions):
        def stream(self, choices: list[dict[str, Any]], usage: dict[str, int]) -> None:
            super().stream([*choices, choices[-1]], usage)

    assert result(Twice, "split", stream=True) == Result("fail", "a second finish reason", ("form",))


def test_missing_key_and_usage() -> None:
    class Short(Completions):
        def stream(self, choices: list[dict[str, Any]], usage: dict[str, int]) -> None:
            del choices[0]["finish_reason"]
            text = "".join(f"data: {json.dumps({'choices': [choice], 'usage': None})}\n\n" for choice in choices)
            self.send("text/event-stream", 200, text + "data: [DONE]\n\n")

    short = Result("fail", "no token count; CompletionChoice lacks the key finish_reason", ("usage", "form"))
    assert result(Short, "no-stop", stream=True) == short


def test_stop_in_reasoning() -> None:
    class Eager(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            texts, *_ = super().generate({**body, "stop": []})
            text, match = StopSet(body.get("stop", ())).truncate("".join(texts))
            return [text], {"finish_reason": "stop", "matched_stop": match and match.sequence}, 6

    eager = result(Eager, "think")
    assert eager.wrong == ("text", "usage")
    assert eager.detail.startswith("text '<think>Is it ', not 'It is 5 or 6 '")


def test_refused_option_is_not_supported() -> None:
    class Strict(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            return super().generate(body)

        def do_POST(self) -> None:
            body = self.rfile.peek(int(self.headers["Content-Length"]))
            if b"stop_token_ids" in body:
                self.reply(400, {"error": {"message": "unknown field stop_token_ids"}})
            else:
                super().do_POST()

    with served(Strict) as url:
        server = Server(url)
        assert case("one-token").run(server) == Result("pass")
        refused = case("ids").run(server)
        assert (refused.outcome, refused.wrong) == ("not supported", ())
        assert "unknown field stop_token_ids" in refused.detail


def test_missing_route_is_not_supported() -> None:
    with served(Completions) as url:
        missing = cases("anthropic")[0].run(Server(url))
    assert missing.outcome == "not supported"
    assert missing.detail.startswith("404")


def test_error_500_is_a_failure() -> None:
    class Breaks(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            if not body.get("stop"):
                return super().generate(body)
            self.reply(500, {"error": {"message": "stop list index out of range"}})
            raise ConnectionAbortedError

        def finish(self) -> None:
            self.wfile.flush()

    with served(Breaks) as url:
        broken = case("one-token").run(Server(url))
    assert (broken.outcome, broken.wrong) == ("fail", ("error",))
    assert "stop list index out of range" in broken.detail


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic", "ollama-chat", "generate"])
def test_server_is_down(api: str) -> None:
    with pytest.raises(ConnectionError, match=f" is down: {api}: "):
        cases(api)[0].run(Server(f"http://127.0.0.1:{free_port()}"))


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic", "ollama-chat", "generate"])
def test_server_is_slow(api: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        server = Server(f"http://127.0.0.1:{silent.getsockname()[1]}", model="reciter", timeout=0.1)
        with pytest.raises(TimeoutError, match=f" is slow: {api} did not recite 26 tokens in 0.1 s"):
            cases(api)[0].run(server)


def test_one_slow_case_is_a_failure() -> None:
    class Hangs(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            if body.get("stop"):
                time.sleep(2)
            return super().generate(body)

    with served(Hangs) as url:
        slow = case("one-token").run(Server(url, model="reciter", timeout=1))
    assert slow == Result("fail", "no answer in 1 s", ("error",))


def test_another_model() -> None:
    class Chatty(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            return ["Hello!"], {"finish_reason": "stop"}, 2

    with served(Chatty) as url, pytest.raises(RuntimeError, match=r"serves another model .* answered 'Hello!'"):
        CASES[0].run(Server(url))


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(Completions) as url:
        assert main([url, "--api", "openai-completions", "--json", str(tmp_path / "out.json")]) == 0
        passed = capsys.readouterr()
        assert (
            main([url, "--api", "openai-completions", "--api", "anthropic", "--junit", str(tmp_path / "out.xml")]) == 1
        )
        missing = capsys.readouterr()
    assert f"{len(CASES)} pass, 0 fail, 0 not supported" in passed.out
    assert "three-tokens" in passed.out
    assert passed.err == ""
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["summary"] == {"pass": len(CASES), "fail": 0, "not supported": 0}
    assert content["results"][0] == {
        "api": "openai-completions",
        "stream": False,
        "case": "one-token",
        "outcome": "pass",
        "detail": "",
        "wrong": [],
    }
    assert f"not supported: anthropic, {len(CASES)} cases: 404" in missing.out
    suites = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert [(suite.get("name"), suite.get("skipped")) for suite in suites] == [
        ("openai-completions", "0"),
        ("anthropic", str(len(CASES))),
    ]
    assert len(suites.findall("testsuite/testcase")) == 2 * len(CASES)


def test_command_says_what_came_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Ignores(Completions):
        def generate(self, body: dict[str, Any]) -> Any:
            texts, end, tokens = super().generate(body)
            return ["\0", *texts[1:]] if body.get("stop") else texts, end, tokens

    with served(Ignores) as url:
        assert main([url, "--api", "openai-completions", "--junit", str(tmp_path / "out.xml")]) == 1
    assert r"FAIL openai-completions-whole-split: text '\x00 is the ', not 'This is the '" in capsys.readouterr().out
    failures = ElementTree.parse(tmp_path / "out.xml").getroot().findall("testsuite/testcase/failure")
    assert failures


def test_progress_bar_on_a_terminal() -> None:
    # Elsewhere there is none: `test_command` reads all of the standard error.
    terminal, end = pty.openpty()
    with served(Completions) as url:
        command = [sys.executable, "-m", "stopscan.conformance", url, "--api", "openai-completions"]
        subprocess.run(command, stderr=end, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}, check=True)
    os.close(end)
    assert b"Sending" in os.read(terminal, 10_000)
    os.close(terminal)


def test_command_without_a_server() -> None:
    command = [sys.executable, "-m", "stopscan.conformance", f"http://127.0.0.1:{free_port()}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "is down: openai-chat: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_vectors_command(tmp_path: Path) -> None:
    vectors = Path(stopscan.testing.__file__).parent / "vectors"
    command = [sys.executable, "-m", "stopscan.conformance.vectors", str(vectors), str(tmp_path / "made")]
    subprocess.run(command, check=True, capture_output=True)
    tokenizer = Tokenizer.from_file(str(tmp_path / "made" / "tokenizer.json"))
    assert len(tokenizer.encode("[mlx_lm_stop_spelled_by_other_tokens]").ids) == 1
