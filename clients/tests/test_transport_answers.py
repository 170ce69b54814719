"""The transports over a server in memory: answers of every form, and errors."""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx
import pytest
import wire
from memory import CHAT, Server, events, packages, post, read_all, text_in
from replay import line, sse

from stopscan import StopMatch, StopSet
from stopscan_clients import AsyncStopTransport, StopTransport


@packages
def test_a_compressed_stream(package: Any) -> None:
    body = gzip.compress(b"".join(events("one E", "ND two")))
    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
    server = Server(package, pieces, headers={"content-encoding": "gzip"})
    answer = post(server, {"stream": True}, CHAT, "END")
    assert text_in(answer.content) == "one "
    assert "content-encoding" not in answer.headers
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_an_encoding_unknown_to_httpx_is_refused() -> None:
    """Without the package backports.zstd, httpx2 does not decode zstd, so no stop can be found in such a body."""
    server = Server(httpx, [b"(\xb5/\xfd"], headers={"content-encoding": "zstd"})
    client = httpx.Client(transport=StopTransport("END", transport=server))
    with client.stream("POST", f"http://server{CHAT}", json={"stream": True}) as answer, pytest.raises(TypeError):
        answer.read()


MEDIA = ["text/event-stream; charset=utf-8", "application/json", "text/plain", "application/octet-stream"]


@pytest.mark.parametrize("media", MEDIA)
def test_event_streams_under_other_labels(media: str) -> None:
    pieces = b"".join(events("one E", "ND two"))
    body = [pieces[at : at + 3] for at in range(0, len(pieces), 3)]
    assert text_in(post(Server(httpx, body, media), {"stream": True}, CHAT, "END").content) == "one "


@pytest.mark.parametrize("media", ["application/x-ndjson", "application/json", "text/plain"])
def test_lines_of_json_under_other_labels(media: str) -> None:
    body = b"".join(map(line, wire.WIRES["ollama"](["one E", "ND two"])))
    pieces = [body[at : at + 5] for at in range(0, len(body), 5)]
    answer = post(Server(httpx, pieces, media), {}, "/api/chat", "END")
    parsed = [json.loads(part) for part in answer.content.splitlines()]
    assert "".join(event["message"]["content"] for event in parsed) == "one "
    assert parsed[-1]["done_reason"] == "stop"


@pytest.mark.parametrize("indent", [None, 1])
def test_a_whole_answer_to_a_request_for_a_stream(indent: int | None) -> None:
    body = json.dumps(wire.chat_whole("one END two"), indent=indent).encode() + b"\n"
    answer = post(Server(httpx, [body[:9], body[9:]], "application/json"), {"stream": True}, CHAT, "END")
    assert answer.json()["choices"][0]["message"]["content"] == "one "


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
def test_gemini_without_alt_sse_is_a_json_array(size: int) -> None:
    chunks = wire.WIRES["gemini"](['one "[{\\" E', "ND two", "more"])
    body = b"[" + b",\r\n".join(json.dumps(chunk, indent=1).encode() for chunk in chunks) + b"\n]"
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    path = "/v1beta/models/m:streamGenerateContent"
    answer = post(Server(httpx, pieces, "application/json"), {}, path, "END")
    texts = [part["text"] for event in answer.json() for part in event["candidates"][0]["content"]["parts"]]
    assert "".join(texts) == 'one "[{\\" '
    answer = post(Server(httpx, pieces, "application/json"), {}, path, "never")
    assert answer.json() == chunks
    assert post(Server(httpx, [b"[1, 2", b"]"], "application/json"), {}, path, "never").json() == [1, 2]


@packages
def test_a_close_that_fails_costs_no_closing_events(package: Any) -> None:
    server = Server(package, events("one END", "two"))
    server.close_error = OSError("cannot be closed")
    client = package.Client(transport=StopTransport("END", transport=server))
    seen: list[bytes] = []
    with pytest.raises(OSError, match="cannot be closed"):
        read_all(client, seen)
    assert text_in(b"".join(seen)) == "one "
    assert b'"matched_stop":"END"' in b"".join(seen)


def test_what_on_match_raises_comes_behind_the_closing_events() -> None:
    def fail(choice: int, match: StopMatch) -> None:
        raise LookupError(f"{choice} {match.sequence}")

    client = httpx.Client(transport=StopTransport("END", transport=Server(httpx, events("one END")), on_match=fail))
    seen: list[bytes] = []
    with pytest.raises(LookupError, match="0 END"):
        read_all(client, seen)
    assert b'"matched_stop":"END"' in b"".join(seen)


def test_drain_reads_on_for_the_usage() -> None:
    server = Server(httpx, events("one END", "two"))
    answer = post(server, {"stream": True}, CHAT, "END", drain=True)
    assert text_in(answer.content) == "one "
    assert str(wire.TOKENS) in answer.text
    assert answer.content.count(b"[DONE]") == 1


def test_all_choices_are_awaited_that_the_request_asks_for() -> None:
    first, second = (wire.chat_chunk([wire.chat_choice(index, content="a END")]) for index in (0, 1))
    server = Server(httpx, [sse(first), sse(second), sse(first)])
    answer = post(server, {"stream": True, "n": 2}, CHAT, "END")
    assert {*answer.extensions["stopscan"]} == {0, 1}
    assert server.sent == 2


def test_a_stop_of_the_transport_may_be_a_set() -> None:
    stops = StopSet(["END"], visible=["."], patterns=[r"\d!"])
    answer = post(Server(httpx, events("one. two")), {"stream": True, "stop": ["x"]}, CHAT, stops)
    assert text_in(answer.content) == "one."
    answer = post(Server(httpx, events("oxe. two")), {"stream": True, "stop": ["x"]}, CHAT, stops)
    assert text_in(answer.content) == "o"


def test_the_proxies_of_the_environment_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment variables such as HTTP_PROXY name a proxy. httpx does not read them if it is given `transport=`, so
    the transport must read them."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "inside")
    made: list[Any] = []
    real = httpx.HTTPTransport
    monkeypatch.setattr(httpx, "HTTPTransport", lambda **options: made.append(options["proxy"]) or real(**options))
    transport = StopTransport("END")
    for host in ("outside", "inside", "outside"):
        with pytest.raises(httpx.ConnectError):
            transport.handle_request(
                httpx.Request("GET", f"http://{host}.invalid/" if host != "inside" else "http://inside/")
            )
    assert made == ["http://127.0.0.1:9", None]


def test_threads_of_the_assistants_api_are_another_route() -> None:
    body = b'{"object": "thread.message", "content": [{"type": "text", "text": {"value": "END"}}]}'
    answer = post(Server(httpx, [body], "application/json"), {}, "/v1/threads/t/messages", "END")
    assert answer.content == body


def test_the_object_stopscan_never_goes_on() -> None:
    server = Server(httpx, events("one"))
    assert post(server, {"stream": True, "stopscan": {"patterns": []}}).content == b"".join(events("one"))
    assert server.bodies == [{"stream": True}]


def test_a_name_of_events_that_is_no_type_stays() -> None:
    body = [b"event: message\nid: 7\n" + event for event in events("one E", "ND")[:-2]]
    answer = post(Server(httpx, body), {"stream": True}, CHAT, "END")
    assert answer.content.count(b"event: message\nid: 7\n") == 3
    assert text_in(answer.content.replace(b"event: message\nid: 7\n", b"")) == "one "


def test_a_long_line_is_read_in_linear_time() -> None:
    """An answer that begins with ``{`` may be one whole answer, or a stream of lines. The first complete line shows
    which of the two it is. Until then, the pieces are only collected. If they were parsed again with each new piece, a
    long line would take quadratic time."""
    body = json.dumps(wire.chat_whole("x" * 3_000_000 + "END")).encode()
    pieces = [body[at : at + 300] for at in range(0, len(body), 300)]
    answer = post(Server(httpx, pieces, "application/json"), {"stream": True}, CHAT, "END")
    assert len(answer.json()["choices"][0]["message"]["content"]) == 3_000_000


def test_bad_arguments_are_refused_at_once() -> None:
    for cls in (StopTransport, AsyncStopTransport):
        with pytest.raises(ValueError, match="'claude'"):
            cls("END", api="claude")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="empty"):
            cls(["a", ""])
        with pytest.raises(TypeError):
            cls(b"END")  # type: ignore[arg-type]


@packages
def test_a_client_that_accepts_brotli_gets_an_answer(package: Any) -> None:
    """The client accepts an encoding that httpx may be unable to decode. The transport must read the answer, so it asks
    the server for an uncompressed one. It must change nothing else in the request, even in an upload."""
    server = Server(package, events("one E", "ND two"))
    server.headers = {}
    client = package.Client(transport=StopTransport("END", transport=server))
    for method, path, options in (
        ("GET", "/v1/responses/r?stream=true", {}),
        ("POST", "/custom/chat", {"json": {"stream": True}}),
        ("POST", "/v1/files", {"files": {"file": b"x"}}),
        ("POST", CHAT, {"content": b"not json"}),
    ):
        request = client.build_request(method, f"http://server{path}", headers={"accept-encoding": "br"}, **options)
        assert text_in(client.send(request).content) == "one "
        sent = server.requests[-1]
        assert sent.headers["accept-encoding"] == "identity"
        assert sent.read() == request.read()
        assert {**sent.headers, "accept-encoding": "br"} == {**request.headers}
    client = package.Client(transport=StopTransport(transport=server))
    client.get("http://server/v1/models", headers={"accept-encoding": "br"})
    assert server.requests[-1].headers["accept-encoding"] == "br", "no stops"


@packages
@pytest.mark.parametrize("media", ["application/json", "text/event-stream", "text/plain"])
def test_an_answer_without_content_gets_no_length(package: Any, media: str) -> None:
    """RFC 9110, 8.6: a 204 has no content-length."""
    server = Server(package, [], media, status=lambda request: 204)
    for stops in ((), ("END",)):
        answer = post(server, {}, CHAT, *stops)
        assert (answer.status_code, answer.content) == (204, b"")
        assert "content-length" not in answer.headers
