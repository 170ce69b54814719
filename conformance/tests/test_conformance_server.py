"""A server as the kit finds it, and its clients."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import httpx
import pytest

from stopscan_conformance import Server, _probe, cases
from stopscan_conformance._answer import Answer
from stopscan_conformance._apis import APIS as BY_NAME
from stopscan_conformance._apis import Api, Request
from stopscan_conformance._connection import Connection
from stopscan_conformance._wire import Wire

URL = "http://127.0.0.1:9"
CHAT, HARMONY = BY_NAME["openai-chat"], BY_NAME["harmony-chat"]
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("url", [URL, f"{URL}/", f"{URL}/v1", f"{URL}/v1/"])
def test_a_url_may_have_its_v1(url: str) -> None:
    assert Server(url).url == URL


@pytest.mark.parametrize("api", BY_NAME)
def test_a_url_that_is_none_is_told(api: str) -> None:
    with pytest.raises(ConnectionError, match=f"^http://localhost:80a is down: {api}: .*[Pp]ort"):
        cases(api)[0].run(Server("http://localhost:80a"))


def listed(monkeypatch: pytest.MonkeyPatch, content: Any) -> dict[str, Any]:
    """`/v1/models` says `content`, or fails with it; and how it was asked."""
    asked: dict[str, Any] = {}

    def get(url: str, **options: Any) -> httpx.Response:
        assert not asked, "asked twice"
        asked.update(url=url, **options)
        if isinstance(content, Exception):
            raise content
        return httpx.Response(200, content=content)

    monkeypatch.setattr(httpx, "get", get)
    return asked


def test_the_first_model_of_the_list_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = listed(monkeypatch, '{"data": [{"id": "one"}, {"id": "two"}]}')
    server = Server(URL, api_key="secret", timeout=3)
    assert (server.model, server.models) == ("one", ["one", "two"])
    assert asked == {"url": f"{URL}/v1/models", "headers": {"Authorization": "Bearer secret"}, "timeout": 3}
    assert server.has("two")
    assert server.has("one:latest")
    assert not server.has("two:latest")


def test_a_model_that_is_named_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = listed(monkeypatch, '{"data": [{"id": "one"}]}')
    server = Server(URL, model="three")
    assert (server.model, asked) == ("three", {})
    assert server.has("three")
    assert server.has("three:latest")
    assert server.has(None)
    assert asked == {}  # nor is the list, before it is needed
    assert server.has("one")
    assert not server.has("four")
    assert asked["headers"] == {}


@pytest.mark.parametrize(
    "content", ["{}", "[]", "no", '{"data": 5}', '{"data": [{}]}', '{"data": []}', httpx.ReadTimeout("slow")]
)
def test_without_a_list_the_default_is_asked(monkeypatch: pytest.MonkeyPatch, content: Any) -> None:
    listed(monkeypatch, content)
    assert (Server(URL).models, Server(URL, model=None).named) == ([], None)
    listed(monkeypatch, content)
    assert Server(URL).model == "default_model"


class Asks:
    """Stands for `ask`: gives these answers, one after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, str, str]] = []
        monkeypatch.setattr(_probe, "ask", self)

    async def __call__(self, server: Server, api: Api, request: Request) -> Answer:
        assert not request.stops
        self.options = (server.api_key, server.timeout)
        self.asked.append((server.model, api.name, request.prompt))
        return self.answers.pop(0)


def answered(text: str = "", status: int | None = 200, body: str = "", **others: Any) -> Answer:
    return Answer(Wire(status, "", bytearray(body.encode())), chunks=[text], **others)


def probed(server: Server, api: Api = CHAT) -> str | None:
    return asyncio.run(_probe.probe(server, api))


def test_a_server_is_probed_once_by_api(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = Asks(monkeypatch, answered(ALPHABET), answered(ALPHABET), answered(status=404, error="404: no route"))
    server = Server(URL, model="one")
    for _ in range(2):
        assert probed(server) is None
        assert probed(server, HARMONY) is None
        assert probed(server, BY_NAME["anthropic"]) == "404: no route"
    assert asks.asked == [
        ("one", "openai-chat", "[alphabet]"),
        ("one", "harmony-chat", "[harmony-alphabet]"),
        ("one", "anthropic", "[alphabet]"),
    ]


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (answered(error="late", timed_out=True), TimeoutError, f"{URL} is slow: openai-chat did not recite 26 tokens"),
        (answered(status=None, error="reset"), ConnectionError, f"{URL} is down: openai-chat: reset"),
        (answered(status=401, error="401: key"), RuntimeError, f"{URL} wants another API key: openai-chat: 401: key"),
        (answered(status=403, error="403: key"), RuntimeError, f"{URL} wants another API key: openai-chat: 403: key"),
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
        answered("", status=500, error="500"),  # that is for the cases to say
        answered("ab", status=500),
    ],
)
def test_a_model_that_is_served_wrongly_is_measured(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    Asks(monkeypatch, answer)
    assert probed(Server(URL, model="one")) is None


def test_channels_that_are_not_told_apart_are_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"analysis{ALPHABET}"
    Asks(monkeypatch, *[answered(said) for _ in range(2)], answered("abc"), answered(ALPHABET))
    assert probed(Server(URL, model="one"), HARMONY) == f"the model's channels are not told apart: {said!r}"
    assert probed(Server(URL, model="one")) is None
    assert probed(Server(URL, model="one"), HARMONY) is None
    assert probed(Server(URL, model="one"), HARMONY) is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answered(status=None, error="reset"), "is down: openai-chat: reset"),
        (answered(status=401, error="401"), "wants another API key: openai-chat: 401"),
        (answered(error="late", timed_out=True), "is slow: openai-chat did not recite 26 tokens in 3 s"),
    ],
)
def test_trouble_is_found_afterwards_and_stays(monkeypatch: pytest.MonkeyPatch, answer: Answer, error: str) -> None:
    Asks(monkeypatch, answered(ALPHABET), answered(ALPHABET), answer, answer)
    server = Server(URL, model="one", timeout=3)
    assert probed(server) is None
    assert asyncio.run(_probe.trouble(server, CHAT)) is None
    assert probed(server) is None  # it is known
    assert asyncio.run(_probe.trouble(server, CHAT)) == f"afterwards {URL} {error}"
    with pytest.raises((OSError, RuntimeError)):
        probed(server)


@pytest.mark.parametrize(
    ("model", "models", "answers", "message"),
    [
        ("gpt", '[{"id": "one"}, {"id": "two"}]', [answered(ALPHABET)], "no model 'gpt': 404: no; it has one, two"),
        ("gpt", '[{"id": "one"}]', [answered(status=404)], None),  # it is the route that is refused
        ("gpt", '[{"id": "gpt"}]', [], None),
        ("gpt", '[{"id": "gpt"}, {"id": "one"}]', [], None),
        ("gpt", "[]", [], None),
        (None, '[{"id": "one"}, {"id": "two"}]', [], None),
    ],
)
def test_whether_it_is_the_model_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, model: str | None, models: str, answers: list[Answer], message: str | None
) -> None:
    listed(monkeypatch, f'{{"data": {models}}}')
    asks = Asks(monkeypatch, answered(status=404, error="404: no"), *answers)
    server = Server(URL, model=model, api_key="secret", timeout=3)
    if message is None:
        assert probed(server) == "404: no"
    else:
        with pytest.raises(RuntimeError, match=message):
            probed(server)
    assert asks.answers == []
    assert asks.options == ("secret", 3)
    assert asks.asked[1:] == [("one", "openai-chat", "[alphabet]")] * len(answers)


@pytest.mark.parametrize(("key", "sent"), [("secret", "secret"), (None, "none")])
def test_clients_send_the_key_and_do_not_try_again(key: str | None, sent: str) -> None:
    connection = Connection(Server(f"{URL}/v1", model="one", api_key=key))
    bearer = f"Bearer {key}" if key else None
    assert connection.model == "one"
    assert (connection.openai.api_key, connection.anthropic.api_key) == (sent, sent)
    assert (connection.openai.max_retries, connection.anthropic.max_retries) == (0, 0)
    assert [str(client.base_url) for client in (connection.openai, connection.anthropic)] == [f"{URL}/v1/", f"{URL}"]
    for client in (connection.ollama._client, connection.http):
        assert (str(client.base_url), client.headers.get("authorization")) == (URL, bearer)
        assert client.timeout.read is None
    for client in (connection.openai, connection.anthropic):
        assert client.timeout.read is None
    assert isinstance(connection._http_options["verify"], ssl.SSLContext)
    assert connection.http is connection.http
    asyncio.run(connection.close())
