"""Runs `examples/server.py` unchanged with uvicorn, and sends requests to it with httpx and the official clients."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
openai = pytest.importorskip("openai", reason="openai is not installed")
anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")

ROOT = Path(__file__).parents[3]
FILE = ROOT / "examples" / "server.py"
SAID = "one END two"
CHAT: list[Any] = [{"role": "user", "content": SAID}]
THOUGHT, ANSWER = f"They say: {SAID}", f"You say: {SAID}"
UNTIL_END = "You say: one "
STOP = {"/v1/chat/completions": "stop", "/v1/messages": "stop_sequences"}
APIS = [*STOP]
SECONDS = 10


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[Any]:
    with httpx.Client(base_url=url, timeout=SECONDS) as client:
        yield client


@pytest.fixture(scope="module")
def chat(url: str) -> Any:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0).chat.completions


@pytest.fixture(scope="module")
def messages(url: str) -> Any:
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages


class Model:
    """A fake model: yields its tokens, then ends, fails, or never ends. Counts the tokens, and records that it was
    closed."""

    def __init__(self, *tokens: str, seconds: float = 0.0, fails: bool = False, last: bool = True) -> None:
        self.tokens, self.seconds, self.fails, self.last = tokens, seconds, fails, last
        self.yielded = 0
        self.closed = threading.Event()

    async def __call__(self, prompt: str, body: Any) -> AsyncGenerator[str, None]:
        try:
            for token in self.tokens:
                self.yielded += 1
                yield token
                await asyncio.sleep(self.seconds)
            while not self.last:
                yield "on "
                await asyncio.sleep(self.seconds)
            if self.fails:
                raise RuntimeError("out of memory")
        finally:
            self.closed.set()


@pytest.fixture
def put(server: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts another model into the server."""

    def put(model: Model) -> Model:
        monkeypatch.setattr(server, "model", model)
        return model

    return put


def test_a_chat_answer_ends_at_its_stop(chat: Any) -> None:
    answer = chat.create(model="m", messages=CHAT, stop=["END", "two"])
    (choice,) = answer.choices
    assert choice.message.content == UNTIL_END
    # The reasoning contains the stops, too, but no stop fires there.
    assert choice.message.reasoning_content == THOUGHT
    assert (choice.finish_reason, choice.matched_stop) == ("stop", "END")
    assert answer.model == "m"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_chat_stream_ends_at_its_stop(chat: Any) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, counted = chat.create(model="m", messages=CHAT, stop="END", **options)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == UNTIL_END
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == THOUGHT
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert chunks[-1].choices[0].matched_stop == "END"
    assert counted.choices == []
    assert counted.usage.completion_tokens > 0


def test_a_message_ends_at_its_stop(messages: Any) -> None:
    answer = messages.create(model="m", messages=CHAT, max_tokens=100, stop_sequences=["two", "END"])
    thought, text = answer.content
    assert (thought.thinking, text.text) == (THOUGHT, UNTIL_END)
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "END")


def test_a_message_stream_ends_at_its_stop(messages: Any) -> None:
    with messages.stream(model="m", messages=CHAT, max_tokens=100, stop_sequences=["END"]) as stream:
        assert "".join(stream.text_stream) == UNTIL_END
        answer = stream.get_final_message()
    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "END")
    assert answer.usage.output_tokens > 0


@pytest.mark.parametrize(("limit", "chat_word", "word"), [(3, "length", "max_tokens"), (100, "stop", "end_turn")])
def test_limit_or_model_ends_without_a_stop(chat: Any, messages: Any, limit: int, chat_word: str, word: str) -> None:
    (choice,) = chat.create(model="m", messages=CHAT, max_completion_tokens=limit, stop=None).choices
    assert choice.finish_reason == chat_word
    assert not hasattr(choice, "matched_stop")
    answer = messages.create(model="m", messages=CHAT, max_tokens=limit, stop_sequences=["never"])
    assert (answer.stop_reason, answer.stop_sequence) == (word, None)


@pytest.mark.parametrize("tokens", [["a E", "N", "D b"], [*"a END b"], ["a END b"]], ids=len)
@pytest.mark.parametrize("stream", [False, True])
def test_the_result_does_not_depend_on_the_tokens(http: Any, put: Any, tokens: list[str], stream: bool) -> None:
    put(Model(*tokens))
    body = {"messages": CHAT, "max_tokens": 50, "stop_sequences": ["END"], "stream": stream}
    text = http.post("/v1/messages", json=body).text
    assert "".join(re.findall(r'"text": ?"([^"]*)"', text)) == "a "
    assert re.search(r'"stop_sequence": ?"END"', text)


def test_answer_beginning_with_its_stop_has_no_block(http: Any, put: Any) -> None:
    put(Model("END"))
    answer = http.post("/v1/messages", json={"messages": CHAT, "max_tokens": 9, "stop_sequences": ["END"]}).json()
    assert answer["content"] == []


def test_content_may_come_in_parts(chat: Any) -> None:
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}]
    assert chat.create(model="m", messages=parts).choices[0].message.content == "You say: a b"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stop", [["END", ""], "", [5], 5, {"END": 1}, {}, ["\ud800"], ["<think>"]], ids=repr)
def test_bad_stop_is_a_400_in_the_api_form(http: Any, stop: Any, stream: bool) -> None:
    for path, name in STOP.items():
        body = {"messages": CHAT, "max_tokens": 9, name: stop, "stream": stream}
        answer = http.post(path, content=json.dumps(body))
        assert answer.status_code == 400
        error = answer.json()
        assert error["error"]["type"] == "invalid_request_error"
        assert "stop" in error["error"]["message"]
        assert ("type" in error) == (path == "/v1/messages")


@pytest.mark.parametrize("changes", [{"max_tokens": 0}, {"max_tokens": "9"}, {"messages": []}, {"messages": None},
                                     {"messages": [{"role": "user"}]}, {"stream_options": "yes"}], ids=str)  # fmt: skip
@pytest.mark.parametrize("path", APIS)
def test_a_bad_request_is_a_400(http: Any, path: str, changes: Any) -> None:
    answer = http.post(path, json={"messages": CHAT, "max_tokens": 9, **changes})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (APIS[0], {"stream": "false"}, "stream"),
        (APIS[0], {"n": 2}, "n"),
        (APIS[0], {"temperature": "hot"}, "temperature"),
        (APIS[0], {"max_tokens": True}, "max_tokens"),
        (APIS[0], {"logprobs": True}, "logprobs"),
        (APIS[1], {"max_tokens": 9, "stream": 1}, "stream"),
        (APIS[1], {"max_tokens": 9, "stop_sequences": "END"}, "stop_sequences"),
        (APIS[1], {}, "max_tokens"),
        (APIS[1], {"max_tokens": None}, "max_tokens"),
        (APIS[1], {"max_tokens": 9, "stop": ["END"]}, "stop"),
    ],
    ids=str,
)
def test_unsupported_option_is_a_400(http: Any, path: str, body: Any, field: str) -> None:
    answer = http.post(path, json={"messages": CHAT, **body})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(f"bad {field}: ")


@pytest.mark.parametrize("path", APIS)
def test_options_that_change_nothing_pass(http: Any, path: str) -> None:
    body = {"messages": CHAT, "max_tokens": 9, "temperature": 1, "top_p": 0.5, "metadata": {}, "stream": None}
    assert http.post(path, json=body).status_code == 200
    assert http.post(APIS[0], json={**body, "n": 1, "seed": 7, "user": "somebody", "logprobs": None}).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", APIS)
@pytest.mark.parametrize("changes", [{"model": "\ud800"}, {"messages": [{"role": "user", "content": "a \udc00"}]}])
def test_half_a_surrogate_pair_is_a_400(http: Any, path: str, stream: bool, changes: Any) -> None:
    body = json.dumps({"messages": CHAT, "max_tokens": 9, "stream": stream, **changes})
    assert http.post(path, content=body).status_code == 400


@pytest.mark.parametrize("body", ["", "no JSON", "[]", "5", "{}", "[" * 100_000])
@pytest.mark.parametrize("path", APIS)
def test_a_body_that_is_no_request_is_a_400(http: Any, path: str, body: str) -> None:
    assert http.post(path, content=body).status_code == 400


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": 0, "max_tokens": 5}, "max_completion_tokens"),
        ({"stop": [""]}, "stop"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
    ],
    ids=str,
)
def test_a_400_names_the_field_that_was_sent(http: Any, changes: Any, field: str) -> None:
    error = http.post(APIS[0], json={"messages": CHAT, **changes}).json()["error"]
    assert error["param"] == field
    assert error["message"].startswith(f"bad {field}: ")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("[]", "bad request: 'list' object is not a mapping"),
        ("{}", "bad messages: not a list of messages"),
        ('{"messages": []}', "bad messages: not a list of messages"),
    ],
)
@pytest.mark.parametrize("path", APIS)
def test_a_400_says_what_is_missing(http: Any, path: str, body: str, message: str) -> None:
    assert http.post(path, content=body).json()["error"]["message"] == message


def test_clients_raise_what_they_raise_of_the_api(chat: Any, messages: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="empty"):
        chat.create(model="m", messages=CHAT, stop=[""], stream=True)
    with pytest.raises(anthropic.BadRequestError, match="empty"):
        messages.create(model="m", messages=CHAT, max_tokens=9, stop_sequences=[""])


def test_another_route_is_a_404(http: Any) -> None:
    assert http.post("/v1/embeddings").json()["error"]["type"] == "invalid_request_error"
    assert http.post("/v1/embeddings").status_code == 404
    assert http.get("/v1/messages").status_code == 405
    assert http.get("/v1/messages").json()["type"] == "error"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", APIS)
def test_a_stop_closes_the_model(http: Any, put: Any, path: str, stream: bool) -> None:
    model = put(Model("a ", "EN", "D", "b", "c"))
    http.post(path, json={"messages": CHAT, "max_tokens": 9, STOP[path]: ["END"], "stream": stream})
    assert model.closed.wait(SECONDS)
    assert model.yielded == 3


@pytest.mark.parametrize("path", APIS)
def test_a_client_that_leaves_a_stream_closes_the_model(http: Any, put: Any, path: str) -> None:
    model = put(Model("a ", seconds=0.01, last=False))
    body = {"messages": CHAT, "max_tokens": 10**6, "stream": True}
    with http.stream("POST", path, json=body) as answer:
        next(answer.iter_lines())
    assert model.closed.wait(SECONDS)


def test_client_leaving_during_a_token_closes_model(http: Any, put: Any) -> None:
    model = put(Model("a ", seconds=600))
    with http.stream("POST", APIS[0], json={"messages": CHAT, "stream": True}) as answer:
        next(answer.iter_lines())
    assert model.closed.wait(SECONDS)


def test_client_that_leaves_without_reading_closes_model(http: Any, put: Any) -> None:
    model = put(Model("a " * 10_000_000, seconds=600))  # more text than fits into the buffers of the sockets
    with http.stream("POST", APIS[0], json={"messages": CHAT, "stream": True}) as answer:
        next(answer.iter_lines())
    assert model.closed.wait(SECONDS)


@pytest.mark.parametrize("path", APIS)
def test_client_that_does_not_wait_closes_model(http: Any, put: Any, path: str) -> None:
    model = put(Model("a ", seconds=0.01, last=False))
    with pytest.raises(httpx.ReadTimeout):
        http.post(path, json={"messages": CHAT, "max_tokens": 10**6}, timeout=0.3)
    assert model.closed.wait(SECONDS)


def test_failing_model_ends_chat_stream_with_error(chat: Any, put: Any) -> None:
    put(Model("a ", "b", fails=True))
    read = []
    with pytest.raises(openai.APIError, match="the model failed"):
        read.extend(chat.create(model="m", messages=CHAT, stream=True))
    assert "".join(chunk.choices[0].delta.content for chunk in read) == "a b"
    assert {chunk.choices[0].finish_reason for chunk in read} == {None}


def test_failing_model_ends_message_stream_with_error(messages: Any, put: Any) -> None:
    put(Model("a ", "b", fails=True))
    read: list[str] = []
    stream = messages.stream(model="m", messages=CHAT, max_tokens=9)
    with stream as events, pytest.raises(anthropic.APIError, match="the model failed"):
        read.extend(events.text_stream)
    assert "".join(read) == "a b"


@pytest.mark.parametrize("path", APIS)
def test_held_text_comes_before_the_error_of_the_model(http: Any, put: Any, path: str) -> None:
    put(Model("a ", "E", fails=True))
    text = http.post(path, json={"messages": CHAT, "max_tokens": 9, STOP[path]: ["END"], "stream": True}).text
    assert re.findall(r'"(?:content|text)": "([^"]+)"|(the model failed)', text) == [
        ("a ", ""),
        ("E", ""),
        ("", "the model failed"),
    ]


@pytest.mark.parametrize("path", APIS)
def test_held_reasoning_stays_reasoning_when_model_fails(http: Any, put: Any, path: str) -> None:
    put(Model("<think>a", "</th", fails=True))
    text = http.post(path, json={"messages": CHAT, "max_tokens": 9, "stream": True}).text
    assert re.findall(r'"(?:reasoning_content|thinking)": "([^"]+)"', text) == ["a", "</th"]


@pytest.mark.parametrize("path", APIS)
def test_a_whole_answer_whose_model_fails_is_a_500(url: str, put: Any, path: str) -> None:
    put(Model("a ", "b", fails=True))
    # This request does not use the shared client `http`: uvicorn closes the connection after the error, so the client's
    # next request would fail.
    answer = httpx.post(url + path, json={"messages": CHAT, "max_tokens": 9}, timeout=SECONDS)
    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "the model failed"


def test_it_is_short_and_has_public_names_alone() -> None:
    source = FILE.read_text(encoding="utf-8")
    assert source.count("\n") < 230
    assert not re.search(r"(from|import) stopscan\S*\._", source)


def test_the_page_shows_the_file() -> None:
    page = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
    excerpts = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(excerpts) >= 5
    source = FILE.read_text(encoding="utf-8")
    assert [excerpt for excerpt in excerpts if excerpt not in source] == []
