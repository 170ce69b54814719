"""What `probe` finds out about a server before its cases are sent."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from stopscan_conformance import Server, cases, probe
from stopscan_conformance.apis import APIS, Api, Request
from stopscan_conformance.client import Answer
from stopscan_conformance.probe import Can
from stopscan_conformance.wire import Wire

URL = "http://127.0.0.1:9"
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
CHAT = APIS["openai-chat"]


class Asks:
    """Replaces `ask` with a function that returns the given answers one after another, and then always the last one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, str]] = []
        monkeypatch.setattr(probe, "ask", self)

    async def __call__(self, server: Server, api: Api, request: Request) -> Answer:
        self.asked.append((server.model, request.prompt))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def answered(text: str = "", status: int | None = 200, body: str = "", **others: Any) -> Answer:
    return Answer(Wire(status, "", bytearray(body.encode())), chunks=[text], **others)


def probed(server: Server, api: Api = CHAT) -> Can:
    return asyncio.run(probe.probe(server, api))


def test_a_server_is_probed_once_by_api(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = Asks(monkeypatch, answered(ALPHABET))
    server = Server(URL, model="one")
    first = probed(server)
    number = len(asks.asked)
    assert probed(server) is first
    assert len(asks.asked) == number


@pytest.mark.parametrize(
    ("name", "api", "lines"),
    [
        ("right", "openai-chat", []),
        ("right", "anthropic", []),
        ("right", "ollama-chat", []),
        ("right", "openai-responses", []),
        ("plain", "openai-chat", ["does not name its stops", "has no stop_token_ids", "does not separate reasoning"]),
        ("plain", "openai-completions", ["does not name its stops", "has no stop_token_ids"]),
        ("no ids", "anthropic", ["has no stop_token_ids", "does not separate reasoning"]),
        ("no counts", "ollama-chat", ["counts no prompt tokens"]),
        ("reasoning left out", "openai-chat", []),
        ("reasoning in the text", "openai-chat", ["does not separate reasoning"]),
        # Anthropic documents that an answer names the stop. So `probe` does not list a missing name: it is a failure.
        ("a stop without its name", "anthropic", []),
    ],
)
def test_each_lack_of_a_server_has_a_line(staged_url: str, name: str, api: str, lines: list[str]) -> None:
    found = probed(Server(f"{staged_url}/{quote(name)}", model="reciter"), APIS[api])
    assert found.lines() == [f"{line}: not judged" for line in lines]


def test_what_needs_what_a_server_cannot_is_not_judged(staged_url: str) -> None:
    server = Server(f"{staged_url}/plain", model="reciter")
    found = {case.name: case.run(server) for case in cases("openai-chat") if case.name in ("ids", "think", "split")}
    assert found["ids"] == ("not supported", "the server has no stop_token_ids", {})
    assert found["think"] == ("not supported", "the server does not separate reasoning", {})
    assert found["split"].outcome == "pass"
    assert "names-the-stop" not in found["split"].findings


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (answered(error="late", timed_out=True), TimeoutError, f"{URL} is slow: openai-chat did not recite 26 tokens"),
        (answered(status=None, error="reset"), ConnectionError, f"{URL} is down: openai-chat: reset"),
        (answered(status=401, error="401: key"), RuntimeError, f"{URL} refuses the API key: openai-chat: 401: key"),
        (answered(status=403, error="403: key"), RuntimeError, f"{URL} refuses the API key: openai-chat: 403: key"),
        (answered("ab"), RuntimeError, "openai-chat answered 'ab'"),
        (answered("Hello"), RuntimeError, "asked for 'abcdef.*', openai-chat answered 'Hello'"),
        (answered("", body="x" * 300), RuntimeError, "openai-chat answered 'x{200}'$"),
    ],
)
def test_nothing_to_measure(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, error: type[Exception], message: str
) -> None:
    Asks(monkeypatch, answer)
    with pytest.raises(error, match=message):
        probed(Server(URL, model="one"))


@pytest.mark.parametrize(
    "answer",
    [
        answered("abc"),
        answered(f"It is {ALPHABET}."),
        answered("", body='{"abc'),
        answered("", status=500, error="500"),  # `probe` does not report a status of 500, but the cases do
        answered("ab", status=500),
    ],
)
def test_a_model_that_is_served_wrongly_is_measured(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    Asks(monkeypatch, answer)
    assert probed(Server(URL, model="one")).missing is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answered(status=None, error="reset"), "is down: openai-chat: reset"),
        (answered(status=401, error="401"), "refuses the API key: openai-chat: 401"),
        (answered(error="late", timed_out=True), "is slow: openai-chat did not recite 26 tokens in 3 s"),
    ],
)
def test_a_server_that_dies_stays_in_trouble(monkeypatch: pytest.MonkeyPatch, answer: Answer, error: str) -> None:
    asks = Asks(monkeypatch, answered(ALPHABET))
    server = Server(URL, model="one", timeout=3)
    assert probed(server).missing is None
    assert asyncio.run(probe.trouble(server, CHAT)) is None
    asks.answers = [answer]
    assert probed(server).missing is None  # the first result is kept
    assert asyncio.run(probe.trouble(server, CHAT)) == f"afterwards {URL} {error}"
    with pytest.raises((OSError, RuntimeError)):
        probed(server)


@pytest.mark.parametrize(
    ("model", "models", "answer", "message"),
    [
        ("gpt", ["one", "two"], answered(ALPHABET), "no model 'gpt': 404: no; it has one, two"),
        ("gpt", ["one"], answered(status=404, error="404: no"), None),  # the server refuses the route, not the model
        ("gpt", ["gpt", "one"], answered(ALPHABET), None),
        ("gpt", [], answered(ALPHABET), None),
        (None, ["one", "two"], answered(ALPHABET), None),
    ],
)
def test_whether_it_is_the_model_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, model: str | None, models: list[str], answer: Answer, message: str | None
) -> None:
    Asks(monkeypatch, answered(status=404, error="404: no"), answer)
    server = Server(URL, model=model, api_key="secret", timeout=3)
    server.models = models
    if message is None:
        assert probed(server).missing == "404: no"
    else:
        with pytest.raises(RuntimeError, match=message):
            probed(server)
