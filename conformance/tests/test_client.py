"""One request: how it is sent, how long it may take, and how its answer and the bytes of the answer are read."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from stopscan_conformance import Server, cases, client
from stopscan_conformance.apis import APIS, Part, Request
from stopscan_conformance.client import Answer, ask
from stopscan_conformance.wire import Event, Wire

URL = "http://127.0.0.1:9"
CHAT = APIS["openai-chat"]


def served(monkeypatch: pytest.MonkeyPatch, answer: Any, **options: Any) -> Server:
    """Returns a server that answers each request with `answer(request)`, and keeps the requests in its `seen`."""
    server = Server(URL, model="reciter", **options)
    seen: list[httpx.Request] = []

    async def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        found = answer(request)
        return await found if asyncio.iscoroutine(found) else found

    def connect(self: Server) -> httpx.AsyncClient:
        transport = httpx.MockTransport(handle)
        return httpx.AsyncClient(base_url=URL, headers=self.headers, transport=transport, follow_redirects=True)

    monkeypatch.setattr(Server, "connect", connect)
    server.__dict__["seen"] = seen
    return server


@pytest.mark.parametrize("url", [URL, f"{URL}/", f"{URL}/v1", f"{URL}/v1/"])
def test_a_url_may_have_its_v1(url: str) -> None:
    assert Server(url).url == URL


@pytest.mark.parametrize("api", APIS)
def test_a_wrong_url_is_an_error(api: str) -> None:
    answer = asyncio.run(ask(Server("http://localhost:80a", model="m"), APIS[api], Request("hello")))
    assert answer.wire.status is None
    assert "port" in str(answer.error).lower()


def listed(monkeypatch: pytest.MonkeyPatch, content: Any) -> dict[str, Any]:
    """Replaces `httpx.get`, with which the kit asks for `/v1/models`. The new `httpx.get` sends nothing: it returns a
    response with `content`, or raises `content` if this is an exception. Returns a dict, which gets the arguments of
    the call."""
    asked: dict[str, Any] = {}

    def get(url: str, **options: Any) -> httpx.Response:
        assert not asked, "asked twice"
        asked.update(url=url, **options)
        if isinstance(content, Exception):
            raise content
        return httpx.Response(200, content=content)

    monkeypatch.setattr(httpx, "get", get)
    return asked


def test_the_first_listed_model_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = listed(monkeypatch, '{"data": [{"id": "one"}, {"id": "two"}]}')
    server = Server(URL, api_key="secret", timeout=3)
    assert (server.model, server.models) == ("one", ["one", "two"])
    assert (asked["url"], asked["headers"]["Authorization"], asked["timeout"]) == (
        f"{URL}/v1/models",
        "Bearer secret",
        3,
    )
    assert server.has("two")
    assert server.has("one:latest")
    assert not server.has("two:latest")


def test_a_named_model_is_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = listed(monkeypatch, '{"data": [{"id": "one"}]}')
    server = Server(URL, model="three")
    assert (server.model, server.has("three"), server.has("three:latest"), server.has(None), asked) == (
        "three", True, True, True, {},
    )  # fmt: skip
    assert server.has("one")
    assert not server.has("four")


@pytest.mark.parametrize(
    "content", ["{}", "[]", "no", '{"data": 5}', '{"data": [{}]}', '{"data": []}', httpx.ReadTimeout("slow")]
)
def test_without_a_list_the_model_has_a_default(monkeypatch: pytest.MonkeyPatch, content: Any) -> None:
    listed(monkeypatch, content)
    server = Server(URL)
    assert (server.models, server.model) == ([], "default_model")


def test_each_api_has_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    server = served(monkeypatch, lambda request: httpx.Response(404), api_key="secret")
    for api in APIS.values():
        asyncio.run(ask(server, api, Request("hello", True, {"stop": ["END"], "stop_token_ids": [5]}, 7)))
        sent = server.__dict__["seen"][-1]
        text = sent.content.decode()
        assert sent.url.path == api.path
        assert sent.headers["authorization"] == "Bearer secret"
        assert f'"{api.stop}":["END"]' in text
        assert f'"{api.limit}":7' in text
        assert '"stop_token_ids":[5]' in text


def test_redirects_are_followed_as_official_clients_do(staged_url: str) -> None:
    server = Server(f"{staged_url}/{quote('moved for now')}", model="reciter")
    for stream in (False, True):
        answer = asyncio.run(ask(server, CHAT, Request("[split]", stream, {"stop": ["END"]})))
        assert (answer.text, answer.error, answer.faults) == ("This is the ", None, [])


def test_what_each_api_sends_is_read(staged_url: str) -> None:
    server = Server(f"{staged_url}/right", model="reciter")
    for api in APIS.values():
        for stream in (False, True):
            answer = asyncio.run(ask(server, api, Request("[split]", stream, {"stop": ["END"]})))
            assert (answer.text, answer.end, answer.faults) == (
                "This is the ",
                api.reported(("stop_sequence", "END")),
                [],
            )
            assert answer.head["prompt"] > 0
            assert answer.head["tokens"] >= 6
            assert 0 < answer.first <= answer.seconds


def test_a_client_that_leaves_reads_no_further(staged_url: str) -> None:
    server = Server(f"{staged_url}/right", model="reciter")
    answer = asyncio.run(ask(server, CHAT, Request("[paced]", True, max_tokens=300), leave=2))
    assert 2 <= len(answer.chunks) < 100
    assert (answer.end, answer.error, answer.faults) == (None, None, [])


def test_no_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def late() -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(200)

    server = served(monkeypatch, lambda request: late(), timeout=0.05)
    answer = asyncio.run(ask(server, CHAT, Request("hello")))
    assert (answer.error, answer.timed_out) == ("no end of the answer in 0.05 s", True)


def test_the_timeout_grows_with_the_requests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit grows with the number of simultaneous requests. Otherwise the last requests time out."""
    lock = asyncio.Lock()

    async def slow() -> httpx.Response:
        async with lock:
            await asyncio.sleep(0.05)
            return httpx.Response(200, json={})

    server = served(monkeypatch, lambda request: slow(), timeout=0.2)

    async def many() -> list[Answer]:
        return await asyncio.gather(*(ask(server, CHAT, Request("hello")) for _ in range(8)))

    assert not any(answer.timed_out for answer in asyncio.run(many()))


def test_time_through_which_this_process_slept_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow() -> httpx.Response:
        await asyncio.sleep(0.03)
        time.sleep(1)  # this process does not run
        await asyncio.sleep(0.03)
        return httpx.Response(200, json={})

    server = served(monkeypatch, lambda request: slow(), timeout=0.9)
    answer = asyncio.run(ask(server, CHAT, Request("hello")))
    assert not answer.timed_out
    assert sum(end - begin for begin, end in answer.gaps) > 0.9
    assert answer.slept(answer.began, answer.began + answer.seconds) > 0.9
    assert answer.slept(0, 0.001) == 0


def test_a_request_that_is_given_up_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, over = asyncio.Event(), []

    async def late() -> httpx.Response:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            over.append(True)
        return httpx.Response(200)

    server = served(monkeypatch, lambda request: late())

    async def give_up() -> None:
        asking = asyncio.create_task(ask(server, CHAT, Request("hello")))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(give_up())
    assert over == [True]
    assert client._WATCHES == {}


@pytest.mark.parametrize(
    ("response", "error", "faults"),
    [
        (httpx.Response(500, text=" out  of\nmemory " + "x" * 300), "500: out of memory " + "x" * 186, []),
        (httpx.Response(202, json={}), None, ["the status is 202, not 200"]),
        (httpx.Response(404, text="no"), "404: no", []),
        (httpx.Response(200, content=b'{"a": "\xff"}'), None, ['bytes that are not UTF-8: b\'{"a": "\\xff"}\'']),
        (httpx.Response(200, json={"error": {"message": "no"}}), "an error in the answer: {'message': 'no'}", []),
    ],
)
def test_an_answer_is_shown(
    monkeypatch: pytest.MonkeyPatch, response: httpx.Response, error: str | None, faults: list[str]
) -> None:
    server = served(monkeypatch, lambda request: response)
    answer = asyncio.run(ask(server, CHAT, Request("hello")))
    assert answer.error == error
    assert answer.faults[: len(faults)] == faults


@pytest.mark.parametrize(("model", "fault"), [("gpt", True), (5, True), ("reciter:latest", False), (None, False)])
def test_another_model_is_a_fault(monkeypatch: pytest.MonkeyPatch, model: Any, fault: bool) -> None:
    server = served(monkeypatch, lambda request: httpx.Response(200, json={"model": model, "choices": []}))
    answer = asyncio.run(ask(server, CHAT, Request("hello")))
    assert (f"the model is {model!r}, not 'reciter'" in answer.faults) == fault


@pytest.mark.parametrize("part", [Part("late"), Part(reasoning="late")])
def test_text_after_the_end_is_a_fault(part: Part) -> None:
    answer = Answer()
    for one in (Part("one"), Part(end=("eos", None), head={"id": "1", "tokens": 3}), part, Part(head={"id": None})):
        answer.add(one)
    assert answer.faults == ["text after the finish reason"]
    assert answer.head == {"id": "1", "tokens": 3}


# Each API documents the words for its finish reasons. If an answer has a word that only another API documents, the kit
# must read it as "unknown". `WORDS` has an answer of each API, with `%s` in place of the word.
WORDS = {
    "openai-chat": '{"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": %s}]}',
    "openai-completions": '{"choices": [{"index": 0, "text": "a", "finish_reason": %s}]}',
    "openai-responses": '{"status": %s, "output": []}',
    "anthropic": '{"content": [], "stop_reason": %s}',
    "ollama-chat": '{"done": true, "done_reason": %s}',
    "generate": '{"text": "a", "meta_info": {"finish_reason": {"type": %s}}}',
}
OWN = {
    "openai-chat": {"stop": "eos", "length": "length"},
    "openai-completions": {"stop": "eos", "length": "length"},
    "openai-responses": {"completed": "eos"},
    "anthropic": {"end_turn": "eos", "max_tokens": "length", "stop_sequence": "stop_sequence"},
    "ollama-chat": {"stop": "eos", "length": "length"},
    "generate": {"stop": "eos", "length": "length"},
}


@pytest.mark.parametrize("name", WORDS)
def test_an_api_has_its_own_words_and_no_others(name: str) -> None:
    every = {"stop", "length", "eos", "STOP", "finished", "max_tokens", "end_turn", "stop_sequence", "completed", ""}
    for word in every:
        wire = Wire(200, "application/json", bytearray((WORDS[name] % f'"{word}"').encode()))
        (end,) = [part.end for part in APIS[name].read(wire, Request("hello")) if part.end is not None]
        assert end[0] == OWN[name].get(word, "unknown"), word


def test_the_stop_that_an_answer_names_is_read() -> None:
    for fields, end in (
        ('"matched_stop": "END"', ("stop_sequence", "END")),
        ('"stop_reason": "END"', ("stop_sequence", "END")),
        ('"matched_stop": 5', ("stop_token", 5)),
        ('"matched_stop": null', ("eos", None)),
    ):
        body = WORDS["openai-chat"].replace('"finish_reason"', f'{fields}, "finish_reason"') % '"stop"'
        wire = Wire(200, "application/json", bytearray(body.encode()))
        assert end in [part.end for part in CHAT.read(wire, Request("hello"))]


def events(body: bytes) -> list[Event]:
    return [replace_time(event) for event in Wire(200, "", bytearray(body)).events()]


def replace_time(event: Event) -> Event:
    return event._replace(time=0.0)


def test_events_have_names_and_data() -> None:
    body = (
        'event: a\ndata: {"b": 1}\n\ndata:no\ndata: more\n\nevent: c\n\nid: 5\ndata:  [2\ndata\ndata: ]\n\nevent: d\n'
    )
    assert events(body.encode()) == [Event("a", {"b": 1}), Event(None, "no\nmore"), Event(None, [2])]


def test_events_end_lines_as_the_standard_says() -> None:
    body = "data: 1\r\rdata: 2\r\n\r\n: no\ndata:3\ndata: 4\u2028\n\ndata: 5\n"
    assert [event.data for event in events(body.encode())] == [1, 2, "3\n4\u2028"]
    assert [event.data for event in events(b"\xef\xbb\xbfdata: 1\n\n")] == [1]


def test_an_event_came_when_its_last_byte_did() -> None:
    wire = Wire()
    for part, at in ((b"data: 1\n", 1.0), (b"\ndata", 2.0), (b": 2\n\ndata: 3\n\n", 3.0)):
        wire.add(part, at)
    assert [(event.data, event.time) for event in wire.events()] == [(1, 2.0), (2, 3.0), (3, 3.0)]
    assert [event.time for event in wire.whole()] == [3.0]


def test_lines_of_json() -> None:
    wire = Wire(200, "", bytearray('{"a": 1}\n\n \n2\r\nno\n"\u2028"'.encode()))
    assert [event.data for event in wire.lines()] == [{"a": 1}, 2, "no", "\u2028"]
    assert wire.json() is None
    assert Wire(200, "", bytearray(b" [1]\n")).json() == [1]


def test_json_that_is_too_deep_is_text() -> None:
    deep = "[" * 100_000
    assert [event.data for event in events(f"data: {deep}\n\n".encode())] == [deep]


def test_a_request_says_what_it_says_in_each_api() -> None:
    request = replace(Request("[split]"), extras=replace(Request("").extras, prefix="long ", parts=True))
    for api in APIS.values():
        assert "long [split]" in str(api.body("m", request))


@pytest.mark.parametrize("name", APIS)
def test_official_clients_read_the_same(staged_url: str, name: str) -> None:
    server = Server(f"{staged_url}/right", model="reciter", clients=True)
    for stream in (False, True):
        for script in ("split", "think", "empty"):
            answer = asyncio.run(ask(server, APIS[name], Request(f"[{script}]", stream, {"stop": ["END"]})))
            assert (answer.read_again, answer.unread) == (True, None)


@pytest.mark.parametrize(
    ("defect", "name", "told"),
    [
        # If an answer has an error, the kit does not also read it with the official client.
        ("chat: an error in the stream", "openai-chat", None),
        ("anthropic: no names", "anthropic", "the client anthropic reads '', not 'This is the '"),
    ],
)
def test_official_clients_judge(staged_url: str, defect: str, name: str, told: str | None) -> None:
    server = Server(f"{staged_url}/{defect.replace(' ', '%20')}", model="reciter", clients=True)
    case = next(one for one in cases(name) if one.stream and one.name == "split")
    assert case.run(server).findings.get("official-client") == told
