"""Bad requests get the error form of the API that they came by."""

from __future__ import annotations

from typing import Any

import anthropic
import ollama
import openai
import pytest

MANY = [f"stop {number}" for number in range(1_000)]
BAD_STOPS = pytest.mark.parametrize(
    ("stop", "culprit"),
    [
        (["6", ""], "stop 1 is empty"),
        ([6], "stop 0"),
        (6, "int"),
        (MANY, "1000 stops are more than 64"),
    ],
    ids=["empty", "number-in-list", "number", "1000"],
)
CHAT = [{"role": "user", "content": "[count]"}]


@BAD_STOPS
@pytest.mark.parametrize("path", ["/chat/completions", "/completions", "/responses"])
def test_openai(client: Any, path: str, stop: Any, culprit: str) -> None:
    body = {"model": client.model, "messages": CHAT, "prompt": "[count]", "input": "[count]", "stop": stop}
    with pytest.raises(openai.BadRequestError) as raised:
        client.openai.post(path, body=body, cast_to=object)
    error = raised.value
    assert (error.type, error.code, error.param) == ("invalid_request_error", None, None)
    assert culprit in error.body["message"]


@BAD_STOPS
def test_anthropic(client: Any, stop: Any, culprit: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as raised:
        client.anthropic.messages.create(model=client.model, messages=CHAT, max_tokens=9, stop_sequences=stop)
    assert raised.value.body["type"] == "error"
    assert raised.value.body["error"]["type"] == "invalid_request_error"
    assert culprit in raised.value.body["error"]["message"]


@BAD_STOPS
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
def test_ollama(client: Any, path: str, stop: Any, culprit: str) -> None:
    # The client itself refuses some of these.
    body = {"model": client.model, "messages": CHAT, "prompt": "[count]", "options": {"stop": stop}}
    response = client.http.post(path, json=body)
    assert response.status_code == 400
    assert list(response.json()) == ["error"]
    assert culprit in response.json()["error"]


@BAD_STOPS
def test_generate(client: Any, stop: Any, culprit: str) -> None:
    response = client.http.post("/generate", json={"text": "[count]", "sampling_params": {"stop": stop}})
    assert response.status_code == 400
    assert culprit in response.json()["error"]["message"]


def test_unknown_model(client: Any) -> None:
    message = "there is no model 'gpt-2', only 'reciter'"
    with pytest.raises(openai.NotFoundError) as from_openai:
        client.openai.chat.completions.create(model="gpt-2", messages=CHAT)
    assert (from_openai.value.code, from_openai.value.body["message"]) == ("model_not_found", message)
    with pytest.raises(openai.NotFoundError):
        client.openai.responses.create(model="gpt-2", input="[count]")
    with pytest.raises(anthropic.NotFoundError) as from_anthropic:
        client.anthropic.messages.create(model="gpt-2", messages=CHAT, max_tokens=9)
    assert from_anthropic.value.body["error"] == {"type": "not_found_error", "message": message}
    with pytest.raises(ollama.ResponseError, match="no model 'gpt-2'") as from_ollama:
        client.ollama.chat("gpt-2", CHAT)
    assert from_ollama.value.status_code == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {}),
        ("/v1/chat/completions", {"messages": ["[count]"]}),
        ("/v1/chat/completions", {"messages": CHAT, "stop_token_ids": ["5"]}),
        ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 0}),
        ("/v1/chat/completions", {"messages": CHAT, "max_tokens": "9"}),
        ("/v1/completions", {"prompt": ""}),
        ("/v1/responses", {"input": None}),
        ("/v1/messages", {"messages": CHAT}),
        ("/api/chat", {"messages": []}),
        ("/api/generate", {}),
        ("/generate", {}),
        ("/generate", []),
    ],
)
def test_nothing_to_generate(client: Any, path: str, body: Any) -> None:
    response = client.http.post(path, json=body)
    assert response.status_code == 400
    assert "error" in response.json()


def test_body_that_is_no_json(client: Any) -> None:
    assert client.http.post("/v1/completions", content=b"{").status_code == 400


def test_server_goes_on_after_errors(client: Any) -> None:
    reply = client.openai.completions.create(model=client.model, prompt="[count]", stop="6")
    assert reply.choices[0].text == "1, 2, 3 hello world 4, 5, "
