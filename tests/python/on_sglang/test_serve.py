"""Requests to the HTTP routes of ``sglang.launch_server`` with the plugin on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sglang", reason="sglang is not installed; ci/sglang-env makes its environment")

import httpx
from sglang_harness import load, served

pytestmark = pytest.mark.sglang


@pytest.fixture(scope="module")
def server(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    log = tmp_path_factory.mktemp("sglang") / "log"
    with served(checkpoint, log, "--disable-overlap-schedule", "--reasoning-parser", "qwen3") as client:
        yield client


def generate(server: httpx.Client, reciter: Any, script: str, **params: Any) -> tuple[str, dict[str, Any]]:
    sampling = {"temperature": 0, "max_new_tokens": 40, **params}
    answer = server.post("/generate", json={"text": reciter.prompt(script), "sampling_params": sampling})
    assert answer.status_code == 200, answer.text
    return answer.json()["text"], answer.json()["meta_info"]


def streamed(server: httpx.Client, reciter: Any, script: str, **params: Any) -> list[str]:
    """The text that each event of a stream adds."""
    sampling = {"temperature": 0, "max_new_tokens": 40, **params}
    body = {"text": reciter.prompt(script), "sampling_params": sampling, "stream": True}
    texts = [""]
    with server.stream("POST", "/generate", json=body) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                texts.append(json.loads(line[6:])["text"])
    return [later.removeprefix(earlier) for earlier, later in pairwise(texts)]


@pytest.mark.parametrize(
    ("script", "params", "text", "matched"),
    [
        ("split", {"stop": ["END"]}, "This is the ", "END"),
        ("split", {"stop": ["END"], "no_stop_trim": True}, "This is the END", "END"),
        ("split", {"stop": ["D", "END"]}, "This is the ", "END"),
        ("split", {"stop_regex": ["E[A-Z]D"]}, "This is the ", "E[A-Z]D"),
        ("split", {"stop_regex": [r"it\b"]}, "This is the END of ", r"it\b"),
        ("split", {"stop_regex": [r"(?<n>E)\x{4E}D"]}, "This is the ", r"(?<n>E)\x{4E}D"),
        ("split", {"stop": [*map(str, range(7, 107)), "END"]}, "This is the ", "END"),
        ("split", {"custom_params": {"stopscan_patterns": ["E[A-Z]D"]}}, "This is the ", "E[A-Z]D"),
        ("think", {"stop": ["END"]}, "<think>Is it ", "END"),
        (
            "think",
            {"stop": ["END"], "custom_params": {"stopscan_protect": ["<think>", "</think>"]}},
            "<think>Is it END?</think>It is 5 or 6 ",
            "END",
        ),
    ],
)
def test_generate(
    server: httpx.Client, reciter: Any, script: str, params: dict[str, Any], text: str, matched: str
) -> None:
    came, info = generate(server, reciter, script, **params)
    assert (came, info["finish_reason"]) == (text, {"type": "stop", "matched": matched})
    assert "".join(streamed(server, reciter, script, **params)) == text


def test_no_stop_and_the_limit(server: httpx.Client, reciter: Any) -> None:
    assert generate(server, reciter, "split")[0] == "This is the END of it"
    text, info = generate(server, reciter, "split", stop=["NEVER"], max_new_tokens=4)
    assert info["finish_reason"] == {"type": "length", "length": 4}
    assert "This is the END of it".startswith(text)


def test_text_is_withheld_by_characters(server: httpx.Client, reciter: Any) -> None:
    pieces = streamed(server, reciter, "late", stop=["<|end_of_document|>"])
    assert len(pieces) > 10
    assert all(pieces[:-1])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"stop_regex": ["a*"]}, "stop_regex is malformed"),
        ({"custom_params": {"stopscan_patterns": ["(a"]}}, "stopscan_patterns is malformed"),
        ({"custom_params": {"stopscan_nonsense": 1}, "stop": ["END"]}, "is not an option of stopscan"),
        *(
            ({"custom_params": odd, **asked}, "custom_params must be an object")
            for odd in ([1], 5, True, [["a"]], "x")
            for asked in ({}, {"stop": ["END"]})
        ),
        ({"stop": ["END"], "custom_params": {"stopscan_start_protected": 1}}, "stopscan_start_protected needs"),
        ({"custom_params": {"stopscan_protect": ["<a>"]}, "stop": ["END"]}, "stopscan_protect '<a>' is not a region"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_wrong_request_is_a_400_before_first_event(
    server: httpx.Client, reciter: Any, stream: bool, params: dict[str, Any], message: str
) -> None:
    body = {"text": reciter.prompt("split"), "sampling_params": params, "stream": stream}
    answer = server.post("/generate", json=body)
    assert (answer.status_code, message in answer.text) == (400, True), answer.text
    assert generate(server, reciter, "split", stop=["END"])[0] == "This is the "


def test_a_pattern_that_freezes_sglang_alone(server: httpx.Client, reciter: Any) -> None:
    # In an answer of 40 letters, sglang's own search for this pattern takes longer than any client waits.
    assert generate(server, reciter, "run-stream", stop_regex=["(a+)+b"])[0] == "a" * 40


@pytest.mark.parametrize("stream", [False, True])
def test_openai(server: httpx.Client, reciter: Any, stream: bool) -> None:
    common = {"model": "reciter", "stop": ["END"], "temperature": 0, "max_tokens": 40, "stream": stream}
    for route, prompt, text in (
        ("completions", {"prompt": reciter.prompt("split")}, "This is the "),
        ("chat/completions", {"messages": [{"role": "user", "content": reciter.prompt("think")}]}, "It is 5 or 6 "),
    ):
        answer = server.post(f"/v1/{route}", json={**common, **prompt})
        assert answer.status_code == 200, answer.text
        lines = (
            [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")] if stream else [answer.text]
        )
        choices = [choice for line in lines for choice in json.loads(line)["choices"]]
        parts = [
            choice.get("text") or (choice.get("delta") or choice.get("message") or {}).get("content")
            for choice in choices
        ]
        assert "".join(filter(None, parts)) == text
        assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["stop"]
        assert choices[-1]["matched_stop"] == "END"


def chat(server: httpx.Client, reciter: Any, script: str, **body: Any) -> dict[str, Any]:
    """The one choice of a chat's answer."""
    messages = [{"role": "user", "content": reciter.prompt(script)}]
    body = {"model": "reciter", "messages": messages, "temperature": 0, "max_tokens": 40, **body}
    answer = server.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    (choice,) = answer.json()["choices"]
    return choice


def test_on_chat_routes_no_stop_fires_in_the_reasoning(server: httpx.Client, reciter: Any) -> None:
    choice = chat(server, reciter, "think", stop=["END"])
    assert (choice["message"]["reasoning_content"], choice["message"]["content"]) == ("Is it END?", "It is 5 or 6 ")
    assert choice["matched_stop"] == "END"
    everywhere = chat(server, reciter, "think", stop=["END"], custom_params={"stopscan_protect": []})
    assert (everywhere["message"]["reasoning_content"], everywhere["message"]["content"] or "") == ("Is it ", "")
    # sglang's parser reads an answer without a marker as reasoning.
    unmarked = chat(server, reciter, "split", stop=["END"])
    assert unmarked["message"]["reasoning_content"] == "This is the END of it"


def test_unparsed_chat_has_stops_everywhere(server: httpx.Client, reciter: Any) -> None:
    choice = chat(server, reciter, "think", stop=["END"], separate_reasoning=False)
    assert choice["message"]["content"] == "<think>Is it "


@pytest.mark.parametrize("script", ["split", "think"])
@pytest.mark.parametrize("separate", [True, False])
def test_chat_streams_bring_the_logprobs_of_all_their_tokens(
    server: httpx.Client, reciter: Any, script: str, separate: bool
) -> None:
    messages = [{"role": "user", "content": reciter.prompt(script)}]
    body = {"model": "reciter", "messages": messages, "temperature": 0, "max_tokens": 40, "logprobs": True}
    body |= {"stop": ["END"], "separate_reasoning": separate}
    whole = server.post("/v1/chat/completions", json=body).json()["choices"][0]["logprobs"]["content"]
    lines = server.post("/v1/chat/completions", json={**body, "stream": True}).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    came = [entry for choice in choices for entry in (choice.get("logprobs") or {}).get("content") or ()]
    assert [entry["token"] for entry in came] == [entry["token"] for entry in whole]


def test_anthropics_clients_hear_which_stop_it_was(server: httpx.Client, reciter: Any) -> None:
    messages = [{"role": "user", "content": reciter.prompt("think")}]
    body = {"model": "reciter", "messages": messages, "max_tokens": 40, "temperature": 0}
    whole = server.post("/v1/messages", json={**body, "stop_sequences": ["END"]}).json()
    assert (whole["content"][-1]["text"], whole["stop_reason"]) == ("It is 5 or 6 ", "stop_sequence")
    assert whole["stop_sequence"] == "END"
    streamed = server.post("/v1/messages", json={**body, "stop_sequences": ["END"], "stream": True}).text
    events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: ")]
    texts = [event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta"]
    (end,) = [event["delta"] for event in events if event["type"] == "message_delta"]
    assert ("".join(texts), end) == ("It is 5 or 6 ", {"stop_reason": "stop_sequence", "stop_sequence": "END"})
    assert server.post("/v1/messages", json=body).json()["stop_reason"] == "end_turn"


def test_responses_and_ollama(server: httpx.Client, reciter: Any) -> None:
    body = {"model": "reciter", "input": reciter.prompt("think"), "stop": ["END"], "max_output_tokens": 60}
    answer = server.post("/v1/responses", json={**body, "temperature": 0}).json()
    said = [part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"]]
    assert (said, answer["status"]) == (["It is 5 or 6 "], "completed")
    options = {"stop": ["END"], "temperature": 0}
    messages = [{"role": "user", "content": reciter.prompt("think")}]
    body = {"model": "reciter", "messages": messages, "options": options, "stream": False}
    # Ollama's routes do not separate the reasoning from the content, so stops fire in both.
    assert server.post("/api/chat", json=body).json()["message"]["content"] == "<think>Is it "
    body = {"model": "reciter", "prompt": reciter.prompt("think"), "options": options, "stream": False}
    assert server.post("/api/generate", json=body).json()["response"] == "<think>Is it "


def test_looping_model_ends_at_the_proving_token(server: httpx.Client, reciter: Any) -> None:
    custom_params = {"stopscan_repeat": [3, 8, 32]}
    text, info = generate(server, reciter, "loop", max_new_tokens=100, custom_params=custom_params)
    assert (text, info["completion_tokens"]) == ("Say:" + "no, " * 8, 17)
    assert info["finish_reason"] == {"type": "stop", "matched": None}


SENTENCE = r"[.!?]\s*$"


@pytest.mark.parametrize("route", ["completions", "chat"])
@pytest.mark.parametrize(
    ("script", "asked", "reason", "matched"),
    [
        ("lines", {"stop": "\n"}, "stop", "\n"),
        ("late", {"stop_regex": "and|or"}, "stop", "and|or"),
        ("echo", {"stop_regex": SENTENCE}, "stop", SENTENCE),
        ("split", {}, "stop", None),
        ("late", {"max_tokens": 5}, "length", None),
    ],
)
def test_sglangs_matched_stop_kit(
    server: httpx.Client, reciter: Any, route: str, script: str, asked: dict[str, Any], reason: str, matched: str | None
) -> None:
    if route == "chat":
        choice = chat(server, reciter, script, **asked, custom_params={"stopscan_protect": []})
    else:
        body = {"model": "reciter", "prompt": reciter.prompt(script), "max_tokens": 1000, "temperature": 0, **asked}
        (choice,) = server.post("/v1/completions", json=body).json()["choices"]
    expected = reciter.eos_token_id if matched is None and reason == "stop" else matched
    assert (choice["finish_reason"], choice["matched_stop"]) == (reason, expected)


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_many_at_once_and_readers_that_leave(server: httpx.Client, reciter: Any) -> None:
    def ask(number: int) -> str:
        if number % 3 == 0:
            body = {
                "text": reciter.prompt("late"),
                "sampling_params": {"stop": ["NEVER"], "temperature": 0},
                "stream": True,
            }
            with server.stream("POST", "/generate", json=body) as response:
                next(response.iter_lines())
            return "left"
        script, stop = ("split", "END") if number % 2 else ("think", "</think>")
        return "".join(streamed(server, reciter, script, stop=[stop]))

    with ThreadPoolExecutor(16) as pool:
        answers = pool.map(ask, range(200))
        wait(lambda: all(load(server)[0]))
        texts = list(answers)
    expected = {1: "This is the ", 0: "<think>Is it END?"}
    assert all(text == expected[number % 2] for number, text in enumerate(texts) if number % 3)
    wait(lambda: load(server) == [(0, 0)])
    assert generate(server, reciter, "split", stop=["END"])[0] == "This is the "
