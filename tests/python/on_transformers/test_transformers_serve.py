"""``python -m stopscan.transformers.serve`` as its clients see it, with and without continuous batching."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")

import httpx
from looping import LOOPS, ended
from openai import BadRequestError, OpenAI
from recital import recite

from stopscan import Repeat
from stopscan_conformance import Server, cases
from stopscan_conformance.reciter import SCRIPTS, THINKING, Reciter

MODES = {
    "generate": (),
    # Without these numbers it takes nearly all memory for its cache.
    "continuous": (
        "--continuous-batching", "--cb-num-blocks", "256", "--cb-block-size", "32", "--cb-max-batch-tokens", "128",
    ),
}  # fmt: skip
APIS = ("openai-chat", "openai-completions", "openai-responses")


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def served(log: Path, *command: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = (sys.executable, "-m", *command, "--device", "cpu", "--host", "127.0.0.1", "--port", str(port))
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment) as process,
    ):
        try:
            while not listens(port):
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def url(mode: str, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("serve") / "log"
    protect = ("--protect", *THINKING)
    with served(log, "stopscan.transformers.serve", str(checkpoint), *protect, *MODES[mode]) as url:
        yield url


@pytest.fixture
def client(url: str) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key="none", timeout=60, max_retries=0)


def chat(client: OpenAI, checkpoint: Path, prompt: str, **options: Any) -> Any:
    messages = [{"role": "user", "content": prompt}]
    options = {"max_tokens": 100, **options}
    return client.chat.completions.create(model=str(checkpoint), messages=messages, **options)


OTHER_TOPICS = ("generated", "rows", "wrong")


def test_the_cases_of_the_kit_pass(url: str, checkpoint: Path, request: pytest.FixtureRequest) -> None:
    """Those that the kit lists, about stops: what else a request says (rows, wrong requests, what generated cases ask
    beside stops) is transformers' own to answer."""
    server = Server(url, model=str(checkpoint))
    # What is timed needs a quiet machine.
    chosen = [case for case in cases(*APIS) if not case.timed and case.topic not in OTHER_TOPICS]
    if "continuous" in request.node.name:  # with room for few tokens: short ones
        chosen = [case for case in chosen if case.topic == "finding"]
    with ThreadPoolExecutor(4) as threads:
        results = dict(zip(map(str, chosen), threads.map(lambda case: case.run(server), chosen), strict=True))
    assert {name: result for name, result in results.items() if result.outcome != "pass"} == {}


def test_clients_at_once_get_their_own_answers(url: str, client: OpenAI, checkpoint: Path, reciter: Reciter) -> None:
    # Two clients may choose the same id.
    headers = {"X-Request-Id": "chosen"}
    stops = {"count": "hello world", "split": "END", "late": " fox", "emoji": "now", "cjk": "。", "runs-end": "aab"}

    def ask(name: str, stream: bool) -> tuple[str, str]:
        stop, prompt = stops[name], reciter.prompt(name)
        if not stream:
            (choice,) = chat(client, checkpoint, prompt, stop=stop, extra_headers=headers).choices
            return choice.message.content or "", choice.matched_stop
        *_, last = chunks = list(chat(client, checkpoint, prompt, stop=stop, stream=True, extra_headers=headers))
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks), last.choices[0].matched_stop

    asked = [(name, stream) for name in stops for stream in (False, True)] * 3
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda one: ask(*one), asked))
    assert answers == [(recite(SCRIPTS[name], [stops[name]]).text, stops[name]) for name, _ in asked]


def test_the_options_of_a_request(client: OpenAI, checkpoint: Path, reciter: Reciter) -> None:
    def ask(name: str, stop: Any = None, **options: Any) -> tuple[str, Any, str]:
        (choice,) = chat(client, checkpoint, reciter.prompt(name), stop=stop, extra_body=options).choices
        return choice.message.content or "", getattr(choice, "matched_stop", None), choice.finish_reason

    assert ask("count", "hello world", include_stop=True) == ("1, 2, 3 hello world", "hello world", "stop")
    assert ask("straddle", ["END"], min_tokens=8) == (reciter.text("straddle"), None, "stop")
    assert ask("count", patterns=r"hel+o \w") == ("1, 2, 3 ", "hello w", "stop")
    token_id = reciter.token_id("count", "ld 4")
    assert ask("count", stop_token_ids=[token_id]) == ("1, 2, 3 hello wor", token_id, "stop")
    protected = recite(SCRIPTS["think"], ["END"], protect=[THINKING]).text
    assert ask("think", "END") == (protected, "END", "stop")
    assert ask("think", "END", protect=[]) == ("<think>Is it ", "END", "stop")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"stop": ["END", ""]}, "stop 1 is empty"),
        ({"stop": [6]}, "stop"),
        ({"patterns": ["ok", "(a"]}, 'pattern 1, "(a"'),
        ({"min_tokens": -1}, "min_tokens"),
        ({"min_tokens": "3"}, "min_tokens"),
        ({"min_tokens": True}, "min_tokens"),
        ({"start_protected": 1}, "start_protected"),
        ({"stop": {"END": 1}}, "stop must be a string or a list"),
        ({"patterns": {"END": 1}}, "patterns must be a string or a list"),
        ({"max_tokens": 0}, "max_tokens must be a number of tokens, 1 or more, not 0"),
        ({"max_tokens": True}, "max_tokens"),
        ({"stop_token_ids": ["x"]}, "stop_token_ids"),
        ({"protect": "reasoning"}, "reasoning"),
        ({"protect": ["<think>"]}, "protect"),
        ({"include_stop": "yes"}, "include_stop"),
        ({"repeat": [2, 1024, 256]}, "repeat: count"),
        ({"max_held": -1}, "max_held must be a number of characters"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_bad_request_is_told_why(
    client: OpenAI, checkpoint: Path, reciter: Reciter, body: dict[str, Any], named: str, stream: bool
) -> None:
    with pytest.raises(BadRequestError) as refused:
        chat(client, checkpoint, reciter.prompt("count"), stream=stream, extra_body=body)
    assert named in refused.value.response.json()["detail"]


def test_clients_that_go_leave_a_server_that_answers(
    url: str, client: OpenAI, checkpoint: Path, reciter: Reciter
) -> None:
    body = {"messages": [{"role": "user", "content": reciter.prompt("late")}], "stream": True, "stop": "never"}
    for _ in range(5):
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as reply:
            next(reply.iter_lines())
    # Who names no model gets the name of the server's.
    answer = httpx.post(f"{url}/v1/chat/completions", json=body | {"stream": False}, timeout=60).json()
    assert answer["model"].startswith(str(checkpoint))
    (choice,) = chat(client, checkpoint, reciter.prompt("split"), stop="END").choices
    assert choice.message.content == "This is the "


def test_the_answer_of_a_client_that_left_is_not_generated(url: str, client: OpenAI, checkpoint: Path) -> None:
    # 240,000 tokens, for which the last one would have to wait: one answer at a time, or as many as the cache holds.
    body = {"messages": [{"role": "user", "content": "[long-stream]"}], "stop": "never", "max_tokens": 800}

    def leave(_: int) -> None:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v1/chat/completions", json=body, timeout=httpx.Timeout(30, read=0.05))

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(leave, range(300)))
    (choice,) = chat(client, checkpoint, "[split]", stop="END").choices
    assert choice.message.content == "This is the "


TEMPLATE = {
    "start_anchor": ["[thought]", "[call]", "[loop]"],  # the end of each prompt
    "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>", "content": "text"},
        "tool_calls": {
            "open": "<tool_call>", "close": "</tool_call>", "repeats": True, "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "<|end|>", "content": "text"},
    }
}  # fmt: skip
CALL = ["<tool_call>", '{"name": "say", "arguments": {"x": "EN', 'D"}}', "</tool_call>"]
PARSED = Reciter(
    {
        "thought": ["<think>", "Is it EN", "D?", "</think>", "It is ", "5.EN", "D"],
        "call": [*CALL, "EN", "D."],
        "loop": LOOPS["thoughts"],
    },
    special_tokens=["<tool_call>", "</tool_call>", "<|end|>"],
)


def test_the_models_template_reads_what_comes_before_the_stop(mode: str, tmp_path: Path) -> None:
    checkpoint = PARSED.write(tmp_path / "parsed")
    config = json.loads((checkpoint / "tokenizer_config.json").read_text()) | {"response_template": TEMPLATE}
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(config))
    names = ()  # the default of chats
    with served(tmp_path / "log", "stopscan.transformers.serve", str(checkpoint), *names, *MODES[mode]) as url:
        client = OpenAI(base_url=f"{url}/v1", api_key="none", timeout=60, max_retries=0)

        def ask(name: str, stream: bool, **options: Any) -> tuple[Any, ...]:
            reply = chat(client, checkpoint, PARSED.prompt(name), stop="END", stream=stream, extra_body=options)
            *_, last = choices = [chunk.choices[0] for chunk in reply] if stream else reply.choices
            parts = [choice.delta if stream else choice.message for choice in choices]
            calls = [(call.function.name, call.function.arguments) for part in parts for call in part.tool_calls or ()]
            text, thought = (
                "".join(getattr(part, field, None) or "" for part in parts)
                for field in ("content", "reasoning_content")
            )
            return thought.rstrip(), text, calls, last.finish_reason, last.matched_stop

        for stream in (False, True):
            assert ask("thought", stream) == ("Is it END?", "It is 5.", [], "stop", "END")
            assert ask("thought", stream, protect=[]) == ("Is it", "", [], "stop", "END")
            assert ask("call", stream) == ("", "", [("say", '{"x": "END"}')], "tool_calls", "END")
        for stream in (False, True):
            answer = client.responses.create(
                model=str(checkpoint), input=PARSED.prompt("thought"), stream=stream, extra_body={"stop": "END"}
            )
            if stream:
                answer = list(answer)[-1].response
            assert (answer.output_text, answer.status, answer.matched_stop) == ("It is 5.", "completed", "END")
            assert answer.usage.output_tokens_details.reasoning_tokens == 2
            assert thought(client, checkpoint, stream).completion_tokens_details.reasoning_tokens == 2
        # A loop ends the reasoning, where no stop fires.
        text, tokens, _ = ended("thoughts", Repeat(3, min_length=64))
        options = {"repeat": [3, 1024, 64], "stop": "check"}
        reply = chat(client, checkpoint, PARSED.prompt("loop"), max_tokens=900, extra_body=options)
        assert reply.choices[0].message.reasoning_content.strip() == text.removeprefix("<think>").strip()
        assert (reply.choices[0].finish_reason, reply.usage.completion_tokens) == ("stop", tokens)


def thought(client: OpenAI, checkpoint: Path, stream: bool) -> Any:
    """The usage of an answer that was thought about."""
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    reply = chat(client, checkpoint, PARSED.prompt("thought"), stop="END", **options)
    return list(reply)[-1].usage if stream else reply.usage


def test_plain_transformers_serve_does_not_pass(checkpoint: Path, tmp_path: Path) -> None:
    with served(tmp_path / "log", "transformers.cli.transformers", "serve", str(checkpoint)) as url:
        server = Server(url, model=str(checkpoint))
        asked = [case for case in cases("openai-chat") if not case.stream and case.name == "three-tokens"]
        results = {case.name: case.run(server) for case in asked}
    assert results["three-tokens"].outcome == "fail"
    assert "text" in results["three-tokens"].wrong
