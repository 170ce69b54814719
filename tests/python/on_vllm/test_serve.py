"""``vllm serve`` with the plugin off and on, through the official openai and anthropic clients."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

import anthropic
import httpx
import openai
from vllm_streams import STREAMS, Stream

from stopscan_conformance.reciter import SCRIPTS, Reciter

pytestmark = pytest.mark.vllm

THINK = ["<think>", "</think>"]


class Server:
    """A running server and its clients."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.openai = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)


@contextmanager
def serve(checkpoint: Path, log: Path, *options: str, **environment: str) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("vllm")), "serve", str(checkpoint), "--served-model-name", "reciter"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--gpu-memory-utilization", "0.1", "--enforce-eager"]
    command += ["--dtype", "float32", "--max-model-len", "512", "--enable-scale-out", *options]
    url = f"http://127.0.0.1:{port}"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environment})
    try:
        while not healthy(url):
            assert process.poll() is None, log.read_text()
            time.sleep(0.2)
        yield Server(url)
    finally:
        process.terminate()
        process.wait(60)


def healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module", params=["off", "on"])
def plugin(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def server(checkpoint: Path, plugin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("serve") / "log"
    with serve(checkpoint, log, STOPSCAN_VLLM="1" if plugin == "on" else "") as running:
        yield running


def options(reciter: Any, row: dict[str, Any]) -> dict[str, Any]:
    """The row's parameters as arguments of the openai client: what is vLLM's own goes into the body."""
    params = dict(row["params"])
    body: dict[str, Any] = {"return_token_ids": True}
    for name, field in (("extra_args", "vllm_xargs"), ("min_tokens",) * 2, ("include_stop_str_in_output",) * 2):
        if name in params:
            body[field] = params.pop(name)
    return {"model": "reciter", "temperature": 0, "max_tokens": 40, **params, "extra_body": body}


def message(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


@pytest.mark.parametrize("row", STREAMS, ids=lambda row: row["name"])
@pytest.mark.parametrize("route", ["completions", "chat"])
def test_openai(server: Server, plugin: str, reciter: Any, route: str, row: dict[str, Any]) -> None:
    prompt, expected, stream = reciter.prompt(row["script"]), row[plugin], Stream(row["script"])
    if route == "chat":
        create, content = server.openai.chat.completions.create, {"messages": message(prompt)}
    else:
        create, content = server.openai.completions.create, {"prompt": prompt}
    for chunk in create(**content, stream=True, **options(reciter, row)):
        (choice,) = chunk.choices
        token_ids = choice.model_extra.get("token_ids") or []
        text = (choice.delta.content or "") if route == "chat" else choice.text
        if token_ids:
            stream.add(text, len(token_ids))
        else:
            assert text == ""
    stream.check(expected)
    reasons = {"finish_reason": expected["finish_reason"], "stop_reason": expected["stop_reason"]}
    assert {"finish_reason": choice.finish_reason, "stop_reason": choice.model_extra["stop_reason"]} == reasons

    (choice,) = create(**content, **options(reciter, row)).choices
    assert (choice.message.content if route == "chat" else choice.text) == expected["text"]
    assert {"finish_reason": choice.finish_reason, "stop_reason": choice.model_extra["stop_reason"]} == reasons


@pytest.mark.parametrize(
    "row",
    [row for row in STREAMS if not {"min_tokens", "include_stop_str_in_output"} & set(row["params"])],
    ids=lambda row: row["name"],
)
def test_anthropic(server: Server, plugin: str, reciter: Any, row: dict[str, Any]) -> None:
    expected, stream = row[plugin], Stream(row["script"])
    released = {stream.length(tokens) - withheld for tokens, withheld in enumerate(expected["withheld"], 1)}
    request = {
        "model": "reciter",
        "messages": message(reciter.prompt(row["script"])),
        "max_tokens": row["params"].get("max_tokens", 40),
        "stop_sequences": row["params"]["stop"],
        "extra_body": {"temperature": 0, "vllm_xargs": row["params"].get("extra_args", {})},
    }
    reached = 0
    with server.anthropic.messages.stream(**request) as events:
        for text in events.text_stream:
            reached += len(text)
            assert reached in released | {len(expected["text"])}
        streamed = events.get_final_message()
    whole = server.anthropic.messages.create(**request)
    stop_reason = "end_turn" if expected["finish_reason"] == "stop" else "max_tokens"
    for answer in (streamed, whole):
        assert "".join(block.text for block in answer.content) == expected["text"]
        assert answer.stop_sequence == expected["stop_reason"]
        assert answer.stop_reason == ("stop_sequence" if expected["stop_reason"] else stop_reason)


def test_responses_have_stops_too(server: Server, plugin: str) -> None:
    body = {"stop": ["END"], "vllm_xargs": {"stopscan_protect": THINK}}
    response = server.openai.responses.create(model="reciter", input="[think]", temperature=0, extra_body=body)
    expected = {"off": "<think>Is it ", "on": "<think>Is it END?</think>It is 5 or 6 "}
    assert response.output_text == expected[plugin]


MALFORMED = [
    ({"stopscan_protect": "<think>"}, "stopscan_protect '<think>' is neither a name"),
    ({"stopscan_protect": ["<think>"]}, "stopscan_protect '<think>' is neither a name"),
    ({"stopscan_protect": ["tool_call"]}, "stopscan_protect this model has no markers for 'tool_call'"),
    ({"stopscan_start_protected": 1}, "stopscan_start_protected needs the markers of a region"),
    ({"stopscan_start_protected": "yes"}, "stopscan_start_protected must be 0 or 1, not 'yes'"),
    ({"stopscan_protected": 1}, "stopscan_protected is not an option of stopscan"),
    ({"stopscan_patterns": "(a"}, "stopscan_patterns is malformed"),
    (
        {"stopscan_patterns": [f"a{number}" for number in range(300)]},
        "stopscan_patterns has 300 patterns; the limit is",
    ),
    ({"stopscan_patterns": "a" * 20_000}, "stopscan_patterns has 20000 bytes of text; the limit is"),
    ({"stopscan_protect": ["<a>", "</a>", "<a>", "</b>"]}, "stopscan_protect is malformed"),
    ({"stopscan_protect": [f"<{number}>" for number in range(200)]}, "stopscan_protect has 100 regions; the limit is"),
    ({"stopscan_max_held": -1}, "stopscan_max_held must be"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ["completions", "chat", "responses", "messages"])
@pytest.mark.parametrize(("xargs", "text"), MALFORMED)
def test_a_malformed_option_is_a_400_and_the_engine_goes_on(
    server: Server, plugin: str, route: str, stream: bool, xargs: dict[str, Any], text: str
) -> None:
    def ask(xargs: dict[str, Any]) -> None:
        body = {"temperature": 0, "vllm_xargs": xargs}
        common = {"model": "reciter", "stream": stream}
        if route == "completions":
            result = server.openai.completions.create(prompt="[split]", stop=["END"], extra_body=body, **common)
        elif route == "chat":
            chat = server.openai.chat.completions
            result = chat.create(messages=message("[split]"), stop=["END"], extra_body=body, **common)
        elif route == "responses":
            result = server.openai.responses.create(input="[split]", extra_body={"stop": ["END"], **body}, **common)
        else:
            messages = server.anthropic.messages
            content = {"messages": message("[split]"), "max_tokens": 40, "stop_sequences": ["END"]}
            result = messages.create(**content, extra_body=body, **common)
        if stream:
            list(result)

    ask({})
    if plugin == "off":
        ask(xargs)
    else:
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as refusal:
            ask(xargs)
        assert refusal.value.status_code == 400
        assert text in refusal.value.message
    ask({})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("xargs", "text"), MALFORMED)
def test_the_route_for_tokens_answers_400_too(
    server: Server, plugin: str, reciter: Any, stream: bool, xargs: dict[str, Any], text: str
) -> None:
    def ask(xargs: dict[str, Any]) -> httpx.Response:
        sampling = {"temperature": 0, "max_tokens": 40, "stop": ["END"], "extra_args": xargs}
        prompt = {"prompt": reciter.prompt("split"), "add_special_tokens": False}
        token_ids = httpx.post(f"{server.url}/tokenize", json=prompt, timeout=60).json()["tokens"]
        body = {"token_ids": token_ids, "sampling_params": sampling, "stream": stream}
        return httpx.post(f"{server.url}/inference/v1/generate", json=body, timeout=60)

    assert ask({}).status_code == 200
    answer = ask(xargs)
    assert answer.status_code == (200 if plugin == "off" else 400)
    assert plugin == "off" or text in answer.json()["error"]["message"]


def test_patterns(server: Server, plugin: str) -> None:
    body = {"temperature": 0, "vllm_xargs": {"stopscan_patterns": [r"E[A-Z]\w", "never"]}}
    answer = server.openai.chat.completions.create(model="reciter", messages=message("[split]"), extra_body=body)
    (choice,) = answer.choices
    expected = {"off": ("This is the END of it", None), "on": ("This is the ", "END")}
    assert (choice.message.content, choice.model_extra["stop_reason"]) == expected[plugin]
    assert choice.finish_reason == "stop"


def test_a_pattern_that_the_end_of_the_answer_confirms(server: Server, plugin: str) -> None:
    body = {"temperature": 0, "vllm_xargs": {"stopscan_patterns": r"it\b"}}
    for stream in (False, True):
        create, common = server.openai.chat.completions.create, {"model": "reciter", "extra_body": body}
        answer = create(messages=message("[split]"), max_tokens=40, stream=stream, **common)
        choices = [chunk.choices[0] for chunk in (answer if stream else [answer]) if chunk.choices]
        text = "".join((choice.delta.content if stream else choice.message.content) or "" for choice in choices)
        assert text == {"off": "This is the END of it", "on": "This is the END of "}[plugin]
        assert choices[-1].finish_reason == "stop"
        assert choices[-1].model_extra["stop_reason"] == {"off": None, "on": "it"}[plugin]


def longest_gap(server: Server, xargs: dict[str, Any]) -> float:
    """The longest time in seconds for which ``/health`` said nothing, while a chat of 50 answers is under way."""
    body = {"model": "reciter", "messages": message("[late]"), "n": 50, "temperature": 1, "max_tokens": 20}
    gaps, done = [], threading.Event()

    def poll() -> None:
        with httpx.Client() as client:
            while not done.is_set():
                began = time.perf_counter()
                client.get(f"{server.url}/health")
                gaps.append(time.perf_counter() - began)
                time.sleep(0.01)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        answer = httpx.post(f"{server.url}/v1/chat/completions", json={**body, "vllm_xargs": xargs}, timeout=60)
    finally:
        done.set()
        poller.join()
    assert answer.status_code == 200, answer.text
    return max(gaps)


def test_one_request_with_many_patterns_stops_nobody(server: Server, plugin: str) -> None:
    if plugin == "off":
        pytest.skip("there are no patterns without stopscan")
    patterns = [
        f"\\n(User|Human|Assistant|System) {number}: [a-z]{{1,9}}END OF THIS TURN {number}" for number in range(64)
    ]
    longest_gap(server, {})
    plain = max(longest_gap(server, {}) for _ in range(3))
    # The first of them compiles, and a machine that is busy has gaps of its own.
    heavy = min(longest_gap(server, {"stopscan_patterns": patterns}) for _ in range(2))
    assert heavy <= max(2 * plain, 0.1)


# An answer that begins inside its reasoning without a marker, and one with a call.
ANSWERS = {
    "unmarked": ["Is", " it", " ", "E", "ND", "?", "</think>", "It", " is", " 5", " ", "E", "ND", " here"],
    "call": [
        "</think>",
        "<tool_call>",
        '{"name": "f", "arguments": {"a": "',
        "E",
        "ND",
        '"}}',
        "</tool_call>",
        "E",
        "ND",
    ],
}


def test_the_default_of_a_server_with_parsers(tmp_path: Path) -> None:
    checkpoint = Reciter({**SCRIPTS, **ANSWERS}, added_tokens=[*THINK, "<tool_call>", "</tool_call>"]).write(
        tmp_path / "model"
    )
    # Two front processes, each with a detokenizer of its own.
    arguments = ["--reasoning-parser", "deepseek_r1", "--tool-call-parser", "hermes", "--enable-auto-tool-choice"]
    environment = {"STOPSCAN_VLLM": "1", "STOPSCAN_VLLM_PROTECT": '["reasoning", "tool_call"]'}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    with serve(checkpoint, tmp_path / "log", *arguments, "--api-server-count", "2", **environment) as server:

        def answer(prompt: str, **options: Any) -> Any:
            create = server.openai.chat.completions.create
            common = {"model": "reciter", "stop": ["END"], "temperature": 0, "max_tokens": 40}
            (choice,) = create(messages=message(prompt), **common, **options).choices
            assert choice.model_extra["stop_reason"] == "END"
            return choice.message

        for _ in range(4):
            marked, unmarked = answer("[think]"), answer("[unmarked]")
            assert (marked.model_extra["reasoning"], marked.content) == ("Is it END?", "It is 5 or 6 ")
            assert (unmarked.model_extra["reasoning"], unmarked.content) == ("Is it END?", "It is 5 ")
        # vLLM's template may put the tools into the prompt, whose last token starts the script.
        (call,) = answer("[call]", tools=[tool]).tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("f", {"a": "END"})
        thought = server.openai.completions.create(
            model="reciter", prompt="[unmarked]", stop=["END"], extra_body={"vllm_xargs": {"stopscan_protect": []}}
        )
        assert thought.choices[0].text == "Is it "


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"STOPSCAN_VLLM_PROTECT": '["<a>"]'}, "STOPSCAN_VLLM_PROTECT must be"),
        ({"STOPSCAN_VLLM_LIMITS": "patterns=-"}, "STOPSCAN_VLLM_LIMITS must be like"),
        ({"STOPSCAN_VLLM_REPEAT": "2"}, "STOPSCAN_VLLM_REPEAT: '2' is not COUNT,PERIOD,LENGTH"),
        # Any program is a Rust front to vLLM, which starts it last.
        (
            {"VLLM_USE_RUST_FRONTEND": "1", "VLLM_RUST_FRONTEND_PATH": sys.executable},
            "stopscan: with VLLM_USE_RUST_FRONTEND=1, text and stops are made outside of Python",
        ),
    ],
)
def test_a_server_in_which_stopscan_cannot_do_its_work_does_not_start(
    checkpoint: Path, tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    with (
        pytest.raises(AssertionError, match=message),
        serve(checkpoint, tmp_path / "log", STOPSCAN_VLLM="1", **environment),
    ):
        pass


def test_the_example() -> None:
    example = Path(__file__).parents[3] / "examples" / "vllm_serve.py"
    output = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=True).stdout
    assert "token  vLLM      with stopscan" in output
    assert "reasoning, vLLM:           '<think>Is it '\n" in output
    assert "reasoning, with stopscan:  '<think>Is it END?</think>It is 5 or 6 '\n" in output
