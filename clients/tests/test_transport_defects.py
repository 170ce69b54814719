"""Defects of earlier code: text leaked, was lost or was generated again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
import wire
from memory import CHAT, Server, packages, post, text_in
from replay import line, sse
from wholes import WHOLES

from stopscan import StopMatch, StopSet
from stopscan_clients import StopTransport, scan_events, truncate_response
from stopscan_clients.machine import ScanOptions, machine_of
from stopscan_clients.request import Limits, plan_of

CHUNKS = wire.chat(["one E", "ND two"])
LINES = [line(event) for event in wire.ollama(["one E", "ND two"])]


@packages
@pytest.mark.parametrize("media", ["application/x-ndjson", "application/jsonl", "text/plain", "text/event-stream"])
def test_a_wrong_media_type_leaks_no_stop(package: Any, media: str) -> None:
    answer = post(Server(package, [sse(event) for event in CHUNKS], media), {"stream": True}, CHAT, "END")
    assert text_in(answer.content) == "one "
    answer = post(Server(package, LINES, media), {}, "/api/chat", "END")
    assert [json.loads(parsed)["message"]["content"] for parsed in answer.content.splitlines()] == ["one ", "", ""]
    whole = json.dumps(wire.chat_whole("one END two")).encode()
    for body in ({}, {"stream": True}):
        answer = post(Server(package, [whole[:9], whole[9:]], media), body, CHAT, "END")
        assert answer.json()["choices"][0]["message"]["content"] == "one "


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("media", ["text/plain", "application/json", "text/event-stream"])
def test_a_byte_order_mark_in_pieces_leaks_no_stop(size: int, media: str) -> None:
    body = b"\xef\xbb\xbf" + b"".join(sse(event) for event in CHUNKS)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    assert text_in(post(Server(httpx, pieces, media), {"stream": True}, CHAT, "END").content) == "one "


@pytest.mark.parametrize("choice", [{"delta": None}, {"finish_reason": None, "content_filter_results": {}}, None])
def test_a_first_choice_without_text_is_chat(choice: Any) -> None:
    first = {"choices": [choice and {"index": 0, **choice}]}
    out = list(scan_events([first, *CHUNKS], "END"))
    assert out[0] is first
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in out[1:]) == "one "
    answer = post(Server(httpx, map(sse, [first, *CHUNKS])), {"stream": True}, CHAT, "END")
    assert b"two" not in answer.content


def raises(choice: int, match: StopMatch) -> None:
    raise RuntimeError(f"{choice}: {match.sequence}")


def ask_openai(transport: StopTransport) -> Any:
    client = openai.OpenAI(
        base_url="http://server/v1", api_key="none", http_client=httpx.Client(transport=transport), max_retries=1
    )
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])


def ask_anthropic(transport: StopTransport) -> Any:
    client = anthropic.Anthropic(
        base_url="http://server", api_key="none", http_client=httpx2.Client(transport=transport), max_retries=1
    )
    return client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}])


@pytest.mark.parametrize(
    ("ask", "package", "whole"),
    [
        (ask_openai, httpx, wire.chat_whole("one END two")),
        (ask_anthropic, httpx2, WHOLES["anthropic"]("one END two")),
    ],
)
def test_a_whole_answer_that_fails_is_generated_once(
    ask: Callable[[StopTransport], Any], package: Any, whole: Any
) -> None:
    """The transport fails after the server has generated the answer. The client must get a 502 with ``x-should-retry:
    false``. Then it does not send the request again, so the server gets only one request for each call."""
    parsed = []

    def on_match(choice: int, match: StopMatch) -> None:
        parsed.append(match)
        raises(choice, match)

    server = Server(package, [json.dumps(whole).encode()], "application/json")
    transport = StopTransport("END", transport=server, on_match=on_match)
    for times in (1, 2):
        with pytest.raises((anthropic.InternalServerError, openai.InternalServerError), match="RuntimeError: 0: END"):
            ask(transport)
        assert len(server.requests) == times
    assert len(parsed) == 2


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/v2/chat", {"finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_calls": [{"id": "1"}]}}),
        (CHAT, {"id": "1", "choices": []}),
        (CHAT, {"choices": None, "base_resp": {"status_code": 1004, "status_msg": "wrong key"}}),
        (CHAT, {"choices": [{"index": 0, "finish_reason": "content_filter"}]}),
    ],
)
def test_an_answer_without_text_passes(path: str, answer: Any) -> None:
    body = json.dumps(answer).encode()
    assert post(Server(httpx, [body], "application/json"), {}, path, "END").content == body
    assert truncate_response(answer, "END") is answer


def test_a_transport_serves_both_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "127.0.0.1:9")  # httpx also accepts a proxy without a scheme
    transport = StopTransport("END")
    for package in (httpx, httpx2, httpx):
        with pytest.raises(package.ConnectError):
            package.Client(transport=transport).get("http://server/v1/models")


@packages
def test_an_error_of_on_match_comes_after_the_usage(package: Any) -> None:
    usage = {"choices": [], "usage": {"completion_tokens": 5}}
    server = Server(package, [*map(sse, [*CHUNKS, usage]), b"data: [DONE]\n\n"])
    transport = StopTransport("END", transport=server, on_match=raises, drain=True)
    read = b""
    client = package.Client(transport=transport)
    with client.stream("POST", f"http://server{CHAT}", json={"stream": True}) as answer:
        pieces = answer.iter_raw()
        while not read.endswith(b"data: [DONE]\n\n"):
            read += next(pieces)
        with pytest.raises(RuntimeError, match="0: END"):
            next(pieces)
    assert b'"finish_reason":"stop"' in read
    assert read.endswith(sse(usage) + b"data: [DONE]\n\n")


def test_a_refusal_is_not_remembered() -> None:
    server = Server(httpx, [json.dumps(wire.chat_whole("a")).encode()], "application/json")
    server.status = lambda request: 400 if b'"stop"' in request.content else 200
    transport = StopTransport("END", transport=server)
    post_to = httpx.Client(transport=transport).post
    before = {name: repr(value) for name, value in vars(transport).items()}
    for number in range(3):
        post_to(f"http://server{CHAT}", json={"model": f"m{number}"})
    assert {name: repr(value) for name, value in vars(transport).items()} == before
    assert [b'"stop"' in request.content for request in server.requests] == [True, False] * 3


def test_matches_are_a_live_mapping() -> None:
    stream = scan_events(CHUNKS, "END")
    matches = stream.matches
    assert dict(matches) == {}
    list(stream)
    assert dict(matches) == {0: StopMatch("END", 4)}


@pytest.mark.parametrize("data", [b"hello END x", b'"hello END"', b'["a END"]'])
def test_events_that_are_no_objects_leak_no_stop(data: bytes) -> None:
    body = b"data: " + data + b"\n\n"
    with pytest.raises(TypeError, match="not an event of a known API"):
        post(Server(httpx, [body]), {"stream": True}, CHAT, "END")
    assert post(Server(httpx, [body]), {"stream": True}, CHAT, "END", strict=False).content == body
    alive = b": waiting\n\ndata:\n\n"
    assert post(Server(httpx, [alive, *map(sse, CHUNKS)]), {"stream": True}, CHAT, "END").content.startswith(alive)


def completion(*texts: str) -> list[Any]:
    return [{"choices": [{"index": index, "text": text}]} for index, text in enumerate(texts)]


@packages
def test_an_echoed_prompt_is_not_scanned(package: Any) -> None:
    fields = {"prompt": ["Q: END A:", "ENDEND"], "echo": True, "n": 1}
    texts = ["Q: END", "END", " A: 4 END", "END E"]
    chunks = [{"choices": [{"index": at % 2, "text": text}]} for at, text in enumerate(texts)]
    server = Server(package, map(sse, chunks))
    answer = post(server, {**fields, "stream": True}, "/v1/completions", "END")
    spoken = ["", ""]
    for event in filter(None, answer.content.split(b"\n\n")):
        for choice in json.loads(event[6:])["choices"]:
            spoken[choice["index"]] += choice.get("text") or ""
    assert spoken == ["Q: END A: 4 ", "ENDEND E"]
    assert answer.extensions["stopscan"] == {0: StopMatch("END", 12)}
    whole = {"choices": [{"index": 0, "text": "Q: END A: 4 END"}, {"index": 1, "text": "ENDEND x"}]}
    answer = post(Server(package, [json.dumps(whole).encode()], "application/json"), fields, "/v1/completions", "END")
    assert [choice["text"] for choice in answer.json()["choices"]] == ["Q: END A: 4 ", "ENDEND x"]
    assert answer.extensions["stopscan"] == {0: StopMatch("END", 12)}
    answer = post(Server(package, []), {"prompt": [1, 2], "echo": True}, "/v1/completions", "END")
    assert (answer.status_code, "token ids" in answer.text) == (400, True)


def test_an_unknown_content_encoding_is_an_error() -> None:
    import gzip

    server = Server(httpx, [gzip.compress(sse(CHUNKS[0]))], headers={"content-encoding": "x-gzip"})
    with pytest.raises(TypeError, match="x-gzip"):
        post(server, {"stream": True}, CHAT, "END")


def test_text_repeated_beside_the_delta_is_dropped() -> None:
    """Perplexity's chunks repeat the text so far in ``message``. Before a fix, only the delta was cut, and ``message``
    still had the text after the stop."""
    so_far = ["one E", "one END two"]
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": text}, "message": {"content": spoken}}]}
        for text, spoken in zip(["one E", "ND two"], so_far, strict=True)
    ]
    assert "one E" not in str(list(scan_events(chunks, "END")))


def test_ollama_a_whole_answer_keeps_no_ids() -> None:
    answer = {"response": "one END two", "done": True, "done_reason": "stop", "context": [1, 2, 3]}
    assert truncate_response(answer, "END") == {"response": "one ", "done": True, "done_reason": "stop"}


def test_a_failure_after_the_stop_costs_no_text() -> None:
    *parsed, done = wire.responses(["one END two"])
    cut = next(place for place, event in enumerate(parsed) if event["type"] == "response.output_text.done")
    failed = {
        **done,
        "type": "response.failed",
        "response": {**done["response"], "status": "failed", "output": [], "error": {"code": "x"}},
    }
    out = list(scan_events([*parsed[:cut], failed], "END", drain=True))
    assert [event["type"].rpartition("output_")[2] for event in out[-4:]] == [
        "text.done",
        "response.content_part.done",
        "item.done",
        "response.completed",
    ]
    response = out[-1]["response"]
    assert response["output"][0]["content"][0]["text"] == "one "
    assert (response["status"], response.get("error")) == ("completed", None)
    list(scan_events([*parsed[:cut], {**failed, "response": True}], "END", drain=True))


@pytest.mark.parametrize(
    ("events", "error"),
    [
        (wire.chat(["one E"]), {"error": {"message": "overloaded"}}),
        (wire.anthropic(["one E"]), {"type": "error", "error": {"type": "overloaded_error"}}),
        (wire.gemini(["one E"]), {"error": {"code": 500}}),
        (wire.ollama(["one E"]), {"error": "no memory"}),
        (wire.responses(["one E"]), {"type": "error", "message": "no"}),
    ],
)
def test_held_text_comes_before_an_error(events: list[Any], error: Any) -> None:
    begun = next(place for place, event in enumerate(events) if "one E" in str(event)) + 1
    out = list(scan_events([*events[:begun], error], "END"))
    assert out[-1] is error
    assert str(out[-2]).count("'E'") == 1


@packages
def test_a_stream_that_breaks_off_keeps_its_held_text(package: Any) -> None:
    def broken() -> Any:
        yield from map(sse, CHUNKS[:2])
        raise package.ReadError("gone")

    read = b""
    client = package.Client(transport=StopTransport("END", transport=Server(package, broken())))
    with client.stream("POST", f"http://server{CHAT}", json={"stream": True}) as answer:
        pieces = answer.iter_raw()
        while b'"E"' not in read:
            read += next(pieces)
        with pytest.raises(package.ReadError):
            next(pieces)
    assert text_in(read) == "one E"


def test_geminis_names_of_the_protocol_buffers_are_read() -> None:
    body = {"generation_config": {"stop_sequences": ["END"], "temperature": 0}}
    server = Server(httpx, map(sse, wire.gemini(["one END"])))
    answer = post(server, body, "/v1beta/models/m:streamGenerateContent?alt=sse")
    assert b"END" not in answer.content
    assert server.bodies == [{"generationConfig": {"temperature": 0}}]


def test_an_error_counts_the_requests_stops_alone() -> None:
    answer = post(Server(httpx, []), {"stop": ["a", ""]}, CHAT, ["own", "more"])
    assert "stop 1 is empty" in answer.json()["error"]["message"]
    answer = post(Server(httpx, []), {"stop_sequences": [""]}, "/v2/chat")
    assert answer.json() == {"message": "stop_sequences is malformed: stop 0 is empty"}


@packages
@pytest.mark.parametrize("media", ["application/json", "application/octet-stream"])
def test_brotli_passes_on_another_path(package: Any, media: str) -> None:
    server = Server(package, [b"{"], media, headers={"content-encoding": "br"})
    client = package.Client(transport=StopTransport("END", transport=server))
    with client.stream("POST", "http://server/v1/embeddings", json={}) as answer:
        assert (answer.status_code, answer.headers["content-encoding"]) == (200, "br")


@packages
def test_a_download_passes_in_pieces(package: Any) -> None:
    pieces = [b'{"id": 1,', b'"text": "END"}\n']
    client = package.Client(transport=StopTransport("END", transport=Server(package, pieces, "text/plain")))
    with client.stream("GET", "http://server/v1/files/f/content") as answer:
        assert list(answer.iter_raw()) == pieces


def test_done_is_sent_once() -> None:
    chunks = [{"choices": [{"index": 0, "delta": {"content": "one END"}, "finish_reason": "length"}]}]
    pieces = [*map(sse, chunks), b"data: [DONE]\n\n"]
    answer = post(Server(httpx, pieces), {"stream": True}, CHAT, StopSet(patterns=["END$"]))
    assert (text_in(answer.content), answer.content.count(b"[DONE]")) == ("one ", 1)


def test_logprobs_of_a_chat_are_not_kept() -> None:
    logprobs = {"content": [{"token": "a", "logprob": 0.0, "top_logprobs": []}]}
    event = {"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": logprobs}]}
    machine = machine_of(event, ScanOptions(StopSet("END")), {})
    for _ in range(3):
        machine.feed(event, event)
    assert [passage.entries for passage in machine.passages.values()] == [[]]


@pytest.mark.parametrize(
    "parsed",
    [
        {"protect": [["a", "b"]] * 50_000},
        {"protect": ["a", "b"] * 100_000},
        {"regions": {f"r{number}": {} for number in range(50_000)}},
        {"regions": {"answer": {f"r{number}": "answer" for number in range(50_000)}}},
        {"stop_in": ["a"] * 200_000},
        {f"r{number}": 1 for number in range(50_000)},
        {"protect": [[["a"] * 200_000, "b"]]},
    ],
    ids=["pairs", "flat", "regions", "markers", "stop_in", "names", "nested"],
)
def test_endless_options_are_refused_early(monkeypatch: pytest.MonkeyPatch, parsed: Any) -> None:
    """Options of more than 65,536 bytes must be refused before they are read. A request of 64 MB with such options, for
    example with very many regions, once kept a proxy busy for seconds, while all other clients waited."""
    monkeypatch.setattr("stopscan_clients.request.read_options", None)
    monkeypatch.setattr("stopscan_clients.request.read_protect", None)
    content = json.dumps({"stopscan": parsed}).encode()
    with pytest.raises(ValueError, match=r"^stopscan has more than 65,536 bytes$"):
        plan_of("POST", CHAT, {}, content, ScanOptions(StopSet("END")), None, Limits())


def test_options_nested_too_deeply_raise_nothing() -> None:
    for deep in (*range(850, 1000, 3), 2000, 100_000):
        content = b'{"stopscan": {"regions": ' + b"[" * deep + b"]" * deep + b"}}"
        answer = post(Server(httpx, []), content, CHAT, "END")
        assert answer.status_code in (200, 400)
