"""Bad requests get an error in the form of the API to which they were sent."""

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
        (["6", ""], ".1: String should have at least 1 character"),
        ([6], ".0: Input should be a valid string"),
        (6, ": Input should be a valid array"),
        (MANY, ": List should have at most 64 items after validation, not "),
    ],
    ids=["empty", "number-in-list", "number", "1000"],
)
PATHS = [
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate",
    "/generate",
]  # fmt: skip
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
    # Ollama's client itself refuses some of these stops, so the requests are sent without it.
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


REFUSED = [
    ("/v1/chat/completions", {}, "messages: Field required"),
    ("/v1/chat/completions", {"messages": []}, "messages: List should have at least 1 item"),
    ("/v1/chat/completions", {"messages": ["[count]"]}, "messages.0: Input should be an object"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": ""}]}, "the prompt is empty"),
    (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "messages.0.content.0.type: Input should be 'text'",
    ),
    ("/v1/chat/completions", {"messages": CHAT, "stop_token_ids": ["5"]}, "stop_token_ids.0: "),
    ("/v1/chat/completions", {"messages": CHAT, "stop_token_ids": [2**40]}, "stop_token_ids.0: "),
    ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 0}, "max_tokens: Input should be greater than"),
    ("/v1/chat/completions", {"messages": CHAT, "max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
    ("/v1/completions", {"prompt": "x" * 8_192}, "8192 tokens do not fit into the context of 8192"),
    ("/v1/chat/completions", {"messages": CHAT, "patterns": ["a("]}, "unclosed group"),
    ("/v1/chat/completions", {"messages": CHAT, "patterns": ["a*"]}, "empty"),
    (
        "/v1/chat/completions",
        {"messages": CHAT, "protect": ["<x>"]},
        "protect '<x>' is not a region (reasoning, tool_call), and no closing marker follows it",
    ),
    ("/v1/chat/completions", {"messages": CHAT, "protect": 5}, "protect: Input should be a valid array"),
    (
        "/v1/chat/completions",
        {"messages": CHAT, "n": 2},
        "n: this server does not support it; leave it out or send 1",
    ),
    ("/v1/chat/completions", {"messages": CHAT, "response_format": {"type": "json_object"}}, "send {'type': 'text'}"),
    ("/v1/chat/completions", {"messages": CHAT, "store": True}, "store: "),
    ("/v1/chat/completions", {"messages": CHAT, "max_held": -1}, "max_held: "),
    ("/v1/chat/completions", {"messages": CHAT, "logprobs": True}, "logprobs: "),
    ("/v1/chat/completions", {"messages": CHAT, "tool_choice": "required"}, "tool_choice: "),
    ("/v1/chat/completions", {"messages": CHAT, "audio": 5}, "audio: Extra inputs are not permitted"),
    ("/v1/completions", {"prompt": ""}, "the prompt is empty"),
    ("/v1/completions", {"prompt": []}, "the prompt is empty"),
    ("/v1/completions", {"prompt": ["a", "b"]}, "2 prompts, but only one is supported"),
    ("/v1/completions", {"prompt": [10**9]}, "the model has no token 1000000000"),
    ("/v1/completions", {"prompt": "x" * 20_000}, "do not fit into the context of 8192"),
    ("/v1/completions", {"prompt": "[count]", "echo": True}, "echo: "),
    ("/v1/completions", {"prompt": "[count]", "logprobs": 5}, "logprobs: "),
    ("/v1/completions", {"prompt": "[count]", "best_of": 2}, "best_of: "),
    ("/v1/responses", {"input": None}, "input: "),
    (
        "/v1/responses",
        {"input": [{"type": "reasoning", "summary": []}]},
        "input: it has no message other than reasoning",
    ),
    ("/v1/responses", {"input": "[count]", "previous_response_id": "x"}, "previous_response_id: Extra inputs"),
    ("/v1/messages", {"messages": CHAT}, "max_tokens: Field required"),
    ("/v1/messages", {"messages": CHAT, "max_tokens": 9, "container": "c"}, "container: "),
    ("/api/chat", {"messages": CHAT, "options": {"repeat_penalty": 1.5}}, "options: repeat_penalty: "),
    ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, "messages.0.images: "),
    ("/api/chat", {"messages": CHAT, "format": "json"}, "format: "),
    ("/api/generate", {"prompt": "x", "raw": True, "suffix": "y"}, "suffix: "),
    ("/generate", {}, "the prompt is empty"),
    ("/generate", [], "Input should be an object"),
]


@pytest.mark.parametrize(("path", "body", "culprit"), REFUSED)
def test_refused_by_name(client: Any, path: str, body: Any, culprit: str) -> None:
    response = client.http.post(path, json=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert culprit in (error if isinstance(error, str) else error["message"])


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_turn_that_holds_only_a_result_without_text(client: Any, stream: bool) -> None:
    content = [{"type": "tool_result", "tool_use_id": "x"}]
    with pytest.raises(anthropic.BadRequestError, match="the prompt is empty: it has no tokens"):
        client.anthropic.messages.create(
            model=client.model, messages=[{"role": "user", "content": content}], max_tokens=9, stream=stream
        )
    test_server_goes_on_after_errors(client)


@pytest.mark.parametrize("path", PATHS)
def test_bodies_that_say_nothing(client: Any, path: str) -> None:
    bodies = [b"", b"{", b"[" * 100_000, b'{"model": ' * 50_000, b'"\\ud800"', b"\xff\xfe", b"null"]
    for body in bodies:
        response = client.http.post(path, content=body)
        assert response.status_code == 400
        assert "error" in response.json()


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/v1/embeddings", {"message": "Not Found", "type": "invalid_request_error", "param": None, "code": None}),
        ("/v1/messages/batches", {"type": "not_found_error", "message": "Not Found"}),
        ("/api/embed", "Not Found"),
        ("/generate/stream", {"message": "Not Found"}),
    ],
)  # fmt: skip
def test_an_unknown_route_answers_in_the_form_of_its_api(client: Any, path: str, error: Any) -> None:
    response = client.http.post(path, json={})
    assert (response.status_code, response.json()["error"]) == (404, error)


@pytest.mark.parametrize("path", PATHS)
def test_a_wrong_method_is_told_in_the_form_of_its_api(client: Any, path: str) -> None:
    response = client.http.get(path)
    error = response.json()["error"]
    assert (response.status_code, error if isinstance(error, str) else error["message"]) == (405, "Method Not Allowed")


def test_server_goes_on_after_errors(client: Any) -> None:
    reply = client.openai.completions.create(model=client.model, prompt="[count]", stop="6")
    assert reply.choices[0].text == "1, 2, 3 hello world 4, 5, "
