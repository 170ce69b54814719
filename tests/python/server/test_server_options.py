"""The options about stops are the same on all routes; and what operators see and set."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_harness import Engine, clients, served

from stopscan_conformance.reciter import Reciter

KEY = "a secret"
CHAT = [{"role": "user", "content": "[think]"}]


@pytest.fixture(scope="module")
def model(reciter: Reciter, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(reciter.write(tmp_path_factory.mktemp("options") / "reciter"))


@pytest.fixture(scope="module")
def locked(model: str) -> Iterator[httpx.Client]:
    """A server with a key, and a default of where stops sleep."""
    with served(Engine(model), api_key=KEY, protect=[]) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def chat(client: Any, **options: Any) -> tuple[str, str | None]:
    """The answer and the stop."""
    (choice,) = client.openai.chat.completions.create(model=client.model, messages=CHAT, extra_body=options).choices
    return choice.message.content, getattr(choice, "matched_stop", None)


def text(client: Any, prompt: str = "[think]", **options: Any) -> tuple[str, str | None]:
    (choice,) = client.openai.completions.create(model=client.model, prompt=prompt, extra_body=options).choices
    return choice.text, getattr(choice, "matched_stop", None)


def test_stops_are_for_the_answer_where_the_route_knows_it(client: Any) -> None:
    assert chat(client, stop="END") == ("It is 5 or 6 ", "END")
    assert chat(client, stop="END", protect=None) == ("It is 5 or 6 ", "END")
    assert chat(client, stop="END", protect=[]) == ("", "END")
    assert text(client, stop="END") == ("<think>Is it ", "END")
    assert text(client, stop="END", protect=None) == ("<think>Is it ", "END")
    assert text(client, stop="END", protect=["reasoning"]) == ("<think>Is it END?</think>It is 5 or 6 ", "END")


def test_pairs_of_markers_are_protected_in_text(client: Any) -> None:
    whole = "<think>Is it END?</think>It is 5 or 6 "
    assert text(client, stop="END", protect=["<think>", "</think>"]) == (whole, "END")
    assert text(client, stop="END", protect=["tool_call", "<think>", "</think>"]) == (whole, "END")


@pytest.mark.parametrize("ask", [chat, text])
def test_the_stop_can_be_included(client: Any, ask: Any) -> None:
    answer, stop = ask(client, stop="5", include_stop=True)
    assert (answer.removeprefix("<think>Is it END?</think>"), stop) == ("It is 5", "5")


def test_a_stop_counts_after_so_many_tokens(client: Any) -> None:
    early, _ = text(client, "[count]", stop=["2", "6"])
    assert text(client, "[count]", stop=["2", "6"], min_tokens=5) == ("1, 2, 3 hello world 4, 5, ", "6")
    assert early == "1, "


def test_patterns_that_hold_for_ever_need_a_limit(client: Any) -> None:
    assert text(client, "[count]", patterns=["3.*5"], max_held=20) == ("1, 2, ", "3 hello world 4, 5")


@pytest.mark.parametrize("options", [{"top_k": 5}, {"min_p": 0.1}, {"top_k": 1, "temperature": 1.5}])
def test_samplers_of_mlx_lm(client: Any, options: dict[str, Any]) -> None:
    assert text(client, "[count]", stop="5", **options) == ("1, 2, 3 hello world 4, ", "5")


ROUTES: dict[str, tuple[dict[str, Any], Any]] = {
    "/v1/chat/completions": ({"messages": CHAT}, "invalid_api_key"),
    "/v1/messages": ({"messages": CHAT, "max_tokens": 9}, "authentication_error"),
    "/api/chat": ({"messages": CHAT}, "the API key is missing or wrong"),
    "/generate": ({"text": "[count]"}, "the API key is missing or wrong"),
    "/v1/unknown": ({}, "invalid_api_key"),
}


@pytest.mark.parametrize("path", ROUTES)
def test_without_the_key_nothing_is_answered(locked: httpx.Client, path: str) -> None:
    body, told = ROUTES[path]
    for headers in ({}, {"authorization": "Bearer other"}, {"x-api-key": ""}, {"authorization": f"Bearer {KEY}!"}):
        response = locked.post(path, json=body, headers=headers)
        assert (response.status_code, told in response.text) == (401, True)
    for headers in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}):
        assert locked.post(path, json=body, headers=headers).status_code == (404 if path == "/v1/unknown" else 200)


def test_health_is_for_everybody_and_figures_are_not(locked: httpx.Client) -> None:
    assert locked.get("/health").json() == {"status": "ok"}
    assert locked.get("/metrics").status_code == 401


def test_the_operator_says_where_stops_sleep(locked: httpx.Client) -> None:
    def answer(**options: Any) -> str:
        body = {"messages": CHAT, "stop": "END", **options}
        reply = locked.post("/v1/chat/completions", json=body, headers={"x-api-key": KEY}).json()
        return str(reply["choices"][0]["message"]["content"])

    assert answer() == ""
    assert answer(protect=["reasoning"]) == "It is 5 or 6 "


def figures(url: str) -> dict[str, float]:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_figures_for_prometheus(model: str) -> None:
    with served(Engine(model)) as url:
        own = clients(url)
        own.openai.completions.create(model=own.model, prompt="[count]", stop="5")
        own.openai.chat.completions.create(model=own.model, messages=CHAT, max_tokens=2)
        own.http.post("/v1/messages", json={})
        own.http.get("/nothing")
        deadline = time.monotonic() + 10
        while 'requests_total{path="other",status="404"}' not in figures(url) and time.monotonic() < deadline:
            time.sleep(0.05)
        found = figures(url)
    assert found['finishes_total{path="/v1/completions",reason="stop_sequence"}'] == 1
    assert found['finishes_total{path="/v1/chat/completions",reason="length"}'] == 1
    assert found['requests_total{path="/v1/messages",status="400"}'] == 1
    assert found['tokens_total{kind="generated"}'] > 2
    assert found['time_to_first_token_seconds_count{path="/v1/completions"}'] == 1
    assert found["rows"] == 0


def test_each_request_is_a_line_of_json(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "server.access"):
        text(client, "[count]", stop="5")
        client.http.get("/nothing")
        deadline = time.monotonic() + 10
        while len(caplog.messages) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    answered, missing = (json.loads(line) for line in caplog.messages[-2:])
    assert answered.pop("seconds") > 0
    assert answered.pop("prompt_tokens") > 0
    assert answered == {
        "method": "POST", "path": "/v1/completions", "status": 200, "tokens": 9, "finish": "stop_sequence"
    }  # fmt: skip
    assert (missing["method"], missing["path"], missing["status"]) == ("GET", "/nothing", 404)


def test_nothing_of_the_server_is_private() -> None:
    """Who copies it has the library's public names alone."""
    for path in (Path(__file__).parents[3] / "examples" / "server").glob("*.py"):
        assert "stopscan._" not in path.read_text(encoding="utf-8")
