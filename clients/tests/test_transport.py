"""The transports over a server in memory: which stops are sent on to the server, and which requests are refused."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx
import pytest
import wire
from memory import CHAT, Server, events, packages, post, text_in
from replay import aws, sse

from stopscan import StopMatch
from stopscan_clients import StopTransport


@packages
def test_stops_of_a_stream_do_not_go_on(package: Any) -> None:
    server = Server(package, events("one E", "ND two", "more"))
    answer = post(server, {"stream": True, "model": "m", "stop": ["END", "\n"]}, CHAT, ["own"])
    assert text_in(answer.content) == "one "
    assert server.bodies == [{"stream": True, "model": "m"}]
    assert answer.extensions["stopscan"] == {0: StopMatch("END", 4)}
    assert answer.content.endswith(b"data: [DONE]\n\n")
    assert (server.sent, server.closed > 0) == (3, True)
    with pytest.raises(TypeError):
        answer.extensions["stopscan"][1] = StopMatch("x", 0)


@packages
def test_stops_that_the_server_takes_go_on(package: Any) -> None:
    """The transport can cut a whole answer only after the server has generated all of it. So it also sends the server
    as many stops as the server accepts. Otherwise the server would generate up to its token limit."""
    server = Server(package, [json.dumps(wire.chat_whole("a <6> b")).encode()], "application/json")
    answer = post(server, {"stop": [f"<{n}>" for n in range(7)]})
    assert server.bodies == [{"stop": ["<0>", "<1>", "<2>", "<3>"]}]
    assert answer.json()["choices"][0]["message"]["content"] == "a "
    assert answer.json()["choices"][0]["matched_stop"] == "<6>"
    assert int(answer.headers["content-length"]) == len(answer.content)
    server = Server(package, [json.dumps(wire.chat_whole("a")).encode()], "application/json")
    post(server, {"model": "m"}, CHAT, ["END"], api="deepseek")
    assert server.bodies == [{"model": "m", "stop": ["END"]}]


@packages
@pytest.mark.parametrize("status", [400, 422])
def test_refused_stops_are_left_out_of_a_second_request(package: Any, status: int) -> None:
    """GPT-5, o3 and Grok refuse stops on a route on which other models accept them. So each request is first sent with
    stops, and sent again without them if it is refused."""
    server = Server(package, [json.dumps(wire.chat_whole("a END b")).encode()], "application/json")
    server.status = lambda request: status if b'"stop"' in request.content else 200
    client = package.Client(transport=StopTransport("END", transport=server))
    for _ in range(2):
        answer = client.post(f"http://server{CHAT}", json={"model": "gpt-5"})
        assert answer.json()["choices"][0]["message"]["content"] == "a "
    client.post(f"http://server{CHAT}", json={"model": "gpt-4"})
    seen = [("stop" in body, body["model"]) for body in server.bodies]
    assert seen == [(has, model) for model in ("gpt-5", "gpt-5", "gpt-4") for has in (True, False)]


@packages
def test_an_error_about_something_else_stays(package: Any) -> None:
    server = Server(package, [b'{"error": "no such model"}'], "application/json", status=lambda request: 400)
    answer = post(server, {"stop": "END"})
    assert (answer.status_code, answer.content) == (400, b'{"error": "no such model"}')
    assert len(server.bodies) == 2


BAD_STOPS: list[tuple[str, Any, str, Any]] = [
    (CHAT, {"stop": ["a", ""]}, "empty", lambda body: body["error"]["type"] == "invalid_request_error"),
    (CHAT, {"stop": 5}, "stop must be", lambda body: body["error"]["message"]),
    (CHAT, {"stop": ["a", 5]}, "stop must be a string or a list of strings", lambda body: body["error"]["message"]),
    (CHAT, {"stopscan": {"patterns": ["("]}}, r"\(", lambda body: body["error"]["message"]),
    (CHAT, {"stopscan": {"stop_token_ids": [5]}}, "stop_token_ids works on tokens", lambda body: body["error"]),
    (CHAT, {"stopscan": {"min_tokens": 5}}, "min_tokens works on tokens", lambda body: body["error"]),
    (CHAT, {"stopscan": []}, "object", lambda body: body["error"]["message"]),
    (
        CHAT,
        {"stopscan": {"include_stop": "yes"}},
        "stopscan.include_stop must be",
        lambda body: body["error"]["message"],
    ),
    (CHAT, {"stopscan": {"protect": ["reasoning"]}}, "reasoning", lambda body: body["error"]["message"]),
    (
        CHAT,
        {"stopscan": {"odd": 1}},
        "stopscan.odd is not an option .*; the options are stopscan.patterns, stopscan.visible_patterns, "
        "stopscan.max_held, stopscan.include_stop, stopscan.start_protected, stopscan.repeat, stopscan.regions, "
        "stopscan.stop_in, stopscan.protect",
        lambda body: body["error"]["message"],
    ),
    ("/v1/messages", {"stop_sequences": [""]}, "stop_sequences .*empty", lambda body: body["type"] == "error"),
    ("/api/chat", {"options": {"stop": [""]}}, "options.stop .*empty", lambda body: isinstance(body["error"], str)),
    (
        "/v1beta/models/m:generateContent",
        {"generationConfig": {"stopSequences": [""]}},
        "empty",
        lambda body: body["error"]["status"] == "INVALID_ARGUMENT",
    ),
    ("/model/m/converse", {"inferenceConfig": {"stopSequences": [""]}}, "empty", lambda body: body["message"]),
]


@pytest.mark.parametrize(("path", "body", "words", "form"), BAD_STOPS)
def test_wrong_stops_are_a_400_in_the_apis_form(path: str, body: Any, words: str, form: Any) -> None:
    server = Server(httpx, [])
    answer = post(server, body, path)
    assert (answer.status_code, server.requests) == (400, [])
    assert form(answer.json())
    assert re.search(words, answer.text)


def test_patterns_and_regions_are_in_the_object_stopscan() -> None:
    server = Server(httpx, events("<think>1.", "</think>one 2", ". two"))
    options = {"patterns": [r"\d\."], "protect": ["<think>", "</think>"], "include_stop": True}
    answer = post(server, {"stream": True, "stopscan": options})
    assert text_in(answer.content) == "<think>1.</think>one 2."
    assert answer.extensions["stopscan"][0].pattern == r"\d\."
    assert server.bodies == [{"stream": True}]


def test_openai_responses_takes_stops_of_the_request() -> None:
    server = Server(httpx, map(sse, wire.responses(["one E", "ND two"])))
    answer = post(server, {"stream": True, "stop": "END"}, "/v1/responses")
    assert b'"delta":"one ' in answer.content.replace(b'"delta": "', b'"delta":"')
    assert b"two" not in answer.content
    assert server.bodies == [{"stream": True}]


def test_a_signed_request_is_never_rewritten() -> None:
    content = json.dumps({"inferenceConfig": {"stopSequences": ["END"]}}).encode()
    server = Server(httpx, map(aws, wire.bedrock(["one E", "ND two"])), "application/vnd.amazon.eventstream")
    headers = {"x-amz-date": "20261122T000000Z", "accept-encoding": "br"}
    answer = post(server, content, "/model/m/converse-stream", headers=headers)
    assert server.requests[0].content == content
    assert server.requests[0].headers["accept-encoding"] == "br"
    assert b"two" not in answer.content
    assert b"messageStop" in answer.content


@packages
def test_other_routes_pass_byte_for_byte(package: Any) -> None:
    body = [b"\x00\xff", b'data: {"choices": [{"delta": {"content": "END"}}]}\n\n']
    for path in ("/v1/embeddings", "/v1/models", "/health"):
        assert post(Server(package, body), b"{}", path, "END").content == b"".join(body)
        whole = Server(package, [b'{"data": "END"}'], "application/json")
        assert post(whole, b"{}", path, "END").content == b'{"data": "END"}'
    body = [b'data: {"choices": [{"delta": {"content": "END"}}]}\n\n', b"\x00\xff"]
    server = Server(package, body)
    assert post(server, b"not json", CHAT).content == b"".join(body), "no stops"
    assert server.requests[0].content == b"not json"


@packages
def test_a_stream_of_events_that_no_table_knows(package: Any) -> None:
    body = [b'data: {"tokens": "END"}\n\n']
    client = package.Client(transport=StopTransport("END", transport=Server(package, body)))
    with (
        client.stream("POST", f"http://server{CHAT}", json={"stream": True}) as answer,  # no error before `read`
        pytest.raises(TypeError, match="'tokens'"),
    ):
        answer.read()
    assert post(Server(package, body), {"stream": True}, CHAT, "END", strict=False).content == body[0]
    assert post(Server(package, body), {"stream": True}, CHAT).content == body[0], "without stops nothing is known"


def test_a_whole_answer_that_no_table_knows() -> None:
    server = Server(httpx, [b'{"tokens": "END"}'], "application/json")
    client = httpx.Client(transport=StopTransport("END", transport=server))
    assert client.post(f"http://server{CHAT}", json={}).json() == {"tokens": "END"}, "the request has no stops"
    answer = client.post(f"http://server{CHAT}", json={"stop": "END"})
    assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "false")
    assert "'tokens'" in answer.json()["error"]["message"]
    server = Server(httpx, [b'{"tokens": "END"}'], "application/json")
    assert post(server, {}, CHAT, "END", strict=False).json() == {"tokens": "END"}


def test_a_sync_stream_outlives_an_event_loop() -> None:
    async def begin() -> Any:
        client = httpx.Client(
            transport=StopTransport("never", transport=Server(httpx, events("one ", "two ", "three")))
        )
        stream = client.send(client.build_request("POST", f"http://server{CHAT}", json={"stream": True}), stream=True)
        pieces = stream.iter_raw()
        return next(pieces), pieces

    first, pieces = asyncio.run(begin())
    assert text_in(first + b"".join(pieces)) == "one two three"
