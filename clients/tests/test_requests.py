"""What the transport reads in a request: compressed bodies, bodies that cannot be read, and servers' own fields."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import wire
from memory import CHAT, Server, events, packages, post, text_in
from replay import sse

from stopscan import StopScanner, StopSet
from stopscan_clients.request import MOST_VALUES

JSON = {"content-type": "application/json"}
PATHS = {
    CHAT: {"stop": "END"},
    "/v1/responses": {"stop": "END"},
    "/v1/messages": {"stop_sequences": ["END"]},
    "/api/chat": {"options": {"stop": ["END"]}},
    "/v1beta/models/m:generateContent": {"generationConfig": {"stopSequences": ["END"]}},
    "/model/m/converse": {"inferenceConfig": {"stopSequences": ["END"]}},
    "/v2/chat": {"stop_sequences": ["END"]},
    "/completion": {"stop": ["END"]},
}


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
    "identity": bytes,
    "deflate, gzip": lambda data: gzip.compress(zlib.compress(data)),
}


@packages
@pytest.mark.parametrize("encoding", COMPRESSED)
def test_a_compressed_request_is_read(package: Any, encoding: str) -> None:
    body = {"stream": True, "stop": ["END"], "stopscan": {"patterns": ["X+"]}, "model": "m"}
    server = Server(package, events("one E", "ND two"))
    content = COMPRESSED[encoding](json.dumps(body).encode())
    answer = post(server, content, headers={**JSON, "content-encoding": encoding})
    assert text_in(answer.content) == "one "
    assert server.bodies == [{"stream": True, "model": "m"}]
    assert "content-encoding" not in server.requests[0].headers
    assert int(server.requests[0].headers["content-length"]) == len(server.requests[0].content)


def test_a_compressed_request_without_stops_passes_as_it_came() -> None:
    content = gzip.compress(b'{"stream": true}')
    server = Server(httpx, events("one"))
    post(server, content, headers={**JSON, "content-encoding": "gzip"})
    assert server.requests[0].content == content
    assert server.requests[0].headers["content-encoding"] == "gzip"


def nested(levels: int) -> bytes:
    return b'{"stop": "END", "stopscan": {"patterns": ["X"]}, "a": ' + b"[" * levels + b"]" * levels + b"}"


UNREADABLE: dict[str, tuple[bytes, dict[str, str]]] = {
    "br": (b'{"stop": "END"}', {"content-encoding": "br"}),
    "a half of gzip": (gzip.compress(b'{"stop": "END"}')[:-9], {"content-encoding": "gzip"}),
    "two of gzip": (gzip.compress(b'{"stop": "END"}') + gzip.compress(b" "), {"content-encoding": "gzip"}),
    "not gzip": (b'{"stop": "END"}', {"content-encoding": "gzip"}),
    "nothing as gzip": (b"", {"content-encoding": "gzip"}),
    "nested deeply": (nested(100_000), {}),
    "a number of 5,000 digits": (b'{"stop": "END", "stopscan": {}, "seed": ' + b"1" * 5000 + b"}", {}),
    "half": (b'{"stop": "END", ', {}),
    "not UTF-8": (b'{"stop": "END", "a": "\xff"}', {}),
    "a form": (b"stop=END", {}),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_body_that_cannot_be_read_is_a_400(path: str, name: str) -> None:
    content, headers = UNREADABLE[name]
    for media in ("application/json", "application/json; charset=utf-8", "application/vnd.api+json"):
        server = Server(httpx, events("one"))
        answer = post(server, content, path, headers={"content-type": media, **headers})
        assert (answer.status_code, server.requests, answer.headers["x-should-retry"]) == (400, [], "false")
        assert "the body of the request cannot be read" in answer.text


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_body_of_another_path_passes(name: str) -> None:
    content, headers = UNREADABLE[name]
    server = Server(httpx, [b"ok"], "text/plain")
    assert post(server, content, "/v1/files", "END", headers={**JSON, **headers}).content == b"ok"
    assert server.requests[0].content == content


@pytest.mark.parametrize("levels", [900, 980, 1000, 1100])
def test_nothing_of_a_nested_request_goes_on_unread(levels: int) -> None:
    """It depends on Python's version whether JSON with a thousand nested levels can be parsed. If not, the request must
    be refused."""
    for headers in (JSON, {}):
        server = Server(httpx, [json.dumps(wire.chat_whole("one END")).encode()], "application/json")
        answer = post(server, nested(levels), headers=headers)
        assert answer.status_code == (200 if server.requests else 400)
        assert all(b"stop" not in request.content for request in server.requests)


def test_an_empty_body_passes() -> None:
    server = Server(httpx, [b"{}"], "application/json")
    assert post(server, b"", CHAT, "END", headers=JSON).status_code == 200


@pytest.mark.parametrize("key", ['"stopscan"', '"\\u0073topscan"', '"stops\\u0063an"'])
def test_the_object_stopscan_is_read_however_it_is_spelled(key: str) -> None:
    for encode in ("utf-8", "utf-16", "utf-32"):
        server = Server(httpx, events("one 1", " two"))
        content = f'{{"stream": true, {key}: {{"patterns": ["[0-9]"]}}}}'.encode(encode)
        answer = post(server, content, "/odd/path", headers=JSON)
        assert (text_in(answer.content), server.bodies) == ("one ", [{"stream": True}])


def test_a_compressed_request_may_not_grow_without_end() -> None:
    content = gzip.compress(b'{"stop": "END", "a": "' + b" " * (1 << 26) + b'"}')
    server = Server(httpx, [])
    answer = post(server, content, headers={**JSON, "content-encoding": "gzip"})
    assert (answer.status_code, server.requests) == (413, [])
    assert "longer than 67,108,864 bytes" in answer.json()["error"]["message"]


@pytest.mark.parametrize("mark", [b"1,", b"[],", b"{},"])
def test_a_request_of_too_many_values_is_a_413(mark: bytes) -> None:
    """The number of values in a request is limited: 64 MB of numbers, empty lists or empty objects took 1.8 GB when
    they were parsed, and all streams of a proxy had to wait."""
    each = len(mark) - 1 if mark != b"1," else 1
    most = (MOST_VALUES - 2) // each
    for count, status in ((most - 1, 200), (most + 2, 413)):
        content = b'{"stop": "END", "a": [' + mark * count + b"1]}"
        server = Server(httpx, [json.dumps(wire.chat_whole("one END")).encode()], "application/json")
        answer = post(server, content, headers=JSON)
        assert (answer.status_code, len(server.requests)) == (status, int(status == 200))
        if status == 413:
            assert answer.json()["error"]["message"] == "the request has more than 2,000,000 values"


def test_a_body_that_needs_no_parsing_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stopscan_clients.request.json", None)
    content = b'{"input": [' + b"1," * (MOST_VALUES + 1) + b"1]}"
    server = Server(httpx, [b"ok"], "text/plain")
    assert post(server, content, "/v1/embeddings", headers=JSON).content == b"ok"
    assert server.requests[0].content == content


# --- Some stops must not be sent on to the server, because it would handle them differently than stopscan does.


def whole(text: str, path: str = CHAT, **options: Any) -> Server:
    return Server(httpx, [json.dumps(wire.chat_whole(text)).encode()], "application/json", **options)


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"stopscan": {"protect": ["<think>", "</think>"]}}, {}),
        ({"stopscan": {"regions": {"answer": {"<think>": "thought"}, "thought": {"</think>": "answer"}}}}, {}),
        ({"stopscan": {"include_stop": True}}, {}),
        ({"include_stop_str_in_output": True}, {}),
        ({"no_stop_trim": True}, {}),
        ({"min_tokens": 3}, {}),
        ({}, {"stop": StopSet(visible=["."])}),
        ({}, {"stop": StopSet("STOP", protect=[("<think>", "</think>")])}),
        ({}, {"include_stop": True}),
    ],
    ids=str,
)
def test_stops_with_another_meaning_do_not_go_on(fields: Any, options: Any) -> None:
    server = whole("<think>END</think>one END two")
    post(server, {"stop": ["END"], **fields}, CHAT, *[options.pop("stop")] if "stop" in options else [], **options)
    assert "stop" not in server.bodies[0]
    assert "stopscan" not in server.bodies[0]


def test_a_stop_in_protected_reasoning_does_not_fire() -> None:
    answer = post(
        whole("<think>END</think>one END two"), {"stop": "END", "stopscan": {"protect": ["<think>", "</think>"]}}
    )
    assert answer.json()["choices"][0]["message"]["content"] == "<think>END</think>one "


@pytest.mark.parametrize("streamed", [False, True])
def test_include_stop_str_in_output_keeps_the_stop(streamed: bool) -> None:
    """With ``include_stop_str_in_output``, a field of vLLM, the stop must stay in the text. The proxy once removed a
    stop that vLLM had left in the text."""
    for value, text in ((True, "The path WEND"), (False, "The path W"), (None, "The path W")):
        body = {"stop": ["END"], "include_stop_str_in_output": value, "stream": streamed}
        server = Server(httpx, events("The path WE", "ND on")) if streamed else whole("The path WEND on")
        answer = post(server, body)
        assert (text_in(answer.content) if streamed else answer.json()["choices"][0]["message"]["content"]) == text
        assert server.bodies[0]["include_stop_str_in_output"] is value


def test_the_options_of_stopscan_win_over_the_servers_fields() -> None:
    body = {"stop": "END", "include_stop_str_in_output": True, "stopscan": {"include_stop": False}}
    assert post(whole("one END"), body).json()["choices"][0]["message"]["content"] == "one "


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"include_stop_str_in_output": "yes"}, "include_stop_str_in_output must be true or false, not 'yes'"),
        ({"min_tokens": -1}, "min_tokens must be an integer from 0 to"),
        ({"min_tokens": "5"}, "min_tokens must be an integer from 0 to"),
        ({"min_tokens": 10**30}, "min_tokens must be an integer from 0 to"),
    ],
)
def test_a_wrong_field_beside_stops_is_a_400(fields: Any, words: str) -> None:
    server = whole("one")
    answer = post(server, {"stop": "END", **fields})
    assert (answer.status_code, server.requests) == (400, [])
    assert answer.json()["error"]["message"].startswith(words)
    assert post(whole("one"), fields).status_code == 200, "without stops the server reads it"


# --- min_tokens

PIECES = ["Abc", "XYZW", " E", "N", "E", "ND!", " go"]
STOPS = ["XYZ", "END"]


def chunk(*tokens: str, logprobs: bool = False, **delta: Any) -> dict[str, Any]:
    entries = {"content": [{"token": token, "bytes": [*token.encode()], "logprob": -1.0} for token in tokens]}
    choice = {"index": 0, "delta": {"content": "".join(tokens), **delta}, "finish_reason": None}
    return wire.chat_chunk([{**choice, **({"logprobs": entries} if logprobs else {})}])


def streamed(chunks: list[Any], min_tokens: int, stops: list[str] = STOPS) -> str:
    role = wire.chat_chunk([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
    server = Server(httpx, [*map(sse, [role, *chunks]), b"data: [DONE]\n\n"])
    return text_in(post(server, {"stream": True, "stop": stops, "min_tokens": min_tokens}).content)


def expected(pieces: list[str], min_tokens: int, stops: list[str] = STOPS) -> str:
    scanner = StopScanner(stops)
    return "".join(scanner.feed(piece, armed=at >= min_tokens) for at, piece in enumerate(pieces)) + scanner.flush()


@pytest.mark.parametrize("min_tokens", range(9))
def test_min_tokens_in_a_stream(min_tokens: int) -> None:
    assert expected(PIECES, 5) == "AbcXYZW EN"
    assert streamed([chunk(piece) for piece in PIECES], min_tokens) == expected(PIECES, min_tokens)
    assert streamed([chunk(*PIECES, logprobs=True)], min_tokens) == expected(PIECES, min_tokens)


def test_min_tokens_of_random_streams_with_entries_for_tokens() -> None:
    rng = random.Random(5)
    for _ in range(300):
        pieces = ["".join(rng.choices("abE N", k=rng.randint(1, 3))) for _ in range(rng.randint(1, 9))]
        stops = ["".join(rng.choices("abEN", k=rng.randint(1, 3))) for _ in range(2)]
        cuts = sorted(rng.sample(range(1, len(pieces)), rng.randint(0, len(pieces) - 1)))
        chunks = [pieces[a:b] for a, b in zip([0, *cuts], [*cuts, len(pieces)], strict=True)]
        least = rng.randint(0, 6)
        made = [chunk(*each, logprobs=True) for each in chunks]
        assert streamed(made, least, stops) == expected(pieces, least, stops), (pieces, stops, cuts, least)


def test_min_tokens_with_several_tokens_a_chunk() -> None:
    assert streamed([chunk("AbcXYZW E"), chunk("NE"), chunk("ND!"), chunk(" END")], 2) == "AbcXYZW EN"


def test_reasoning_counts_for_min_tokens() -> None:
    reasoning = [wire.chat_chunk([{"index": 0, "delta": {"reasoning_content": "Hm"}, "finish_reason": None}])] * 4
    assert streamed([*reasoning, chunk("a END")], 4) == "a "
    assert streamed([*reasoning, chunk("a END b")], 5) == "a END b"


def answer_of(min_tokens: int, server: Server, **fields: Any) -> dict[str, Any]:
    choice: dict[str, Any] = post(server, {"stop": STOPS, "min_tokens": min_tokens, **fields}).json()["choices"][0]
    return choice


def with_entries(pieces: list[str]) -> bytes:
    answer = wire.chat_whole("".join(pieces))
    entries = [{"token": piece, "bytes": [*piece.encode()], "logprob": -1.0, "top_logprobs": []} for piece in pieces]
    answer["choices"][0]["logprobs"] = {"content": entries}
    return json.dumps(answer).encode()


@pytest.mark.parametrize("min_tokens", range(1, 9))
def test_min_tokens_in_a_whole_answer(min_tokens: int) -> None:
    """For ``min_tokens``, the transport asks the server for logprobs, which show where each token begins. The client
    did not ask for them, so it gets none."""
    server = Server(httpx, [with_entries(PIECES)], "application/json")
    choice = answer_of(min_tokens, server)
    assert choice["message"]["content"] == expected(PIECES, min_tokens)
    assert choice["logprobs"] is None
    assert server.bodies == [{"min_tokens": min_tokens, "logprobs": True}]


def test_min_tokens_keeps_logprobs_that_the_client_asks_for() -> None:
    server = Server(httpx, [with_entries(PIECES)], "application/json")
    choice = answer_of(5, server, logprobs=True)
    assert choice["message"]["content"] == "AbcXYZW EN"
    assert [entry["token"] for entry in choice["logprobs"]["content"]] == PIECES[:4]


def test_min_tokens_in_a_whole_completion() -> None:
    columns = {"tokens": PIECES, "token_logprobs": [-1.0] * 7, "top_logprobs": None, "text_offset": None}
    choice = {"index": 0, "text": "".join(PIECES), "logprobs": columns, "finish_reason": "stop"}
    answer = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
    for logprobs, sent in ((None, 0), (0, 0), (1, 1)):
        server = Server(httpx, [json.dumps(answer).encode()], "application/json")
        body = {"prompt": "a", "stop": STOPS, "min_tokens": 5, "logprobs": logprobs}
        (made,) = post(server, body, "/v1/completions").json()["choices"]
        assert made["text"] == "AbcXYZW EN"
        assert (server.bodies[0]["logprobs"], made["logprobs"] is None) == (sent, logprobs is None)


def test_min_tokens_where_the_server_has_no_logprobs() -> None:
    """A server without logprobs does not say where the first ``min_tokens`` tokens end. Then no stop fires, and no text
    is lost."""
    server = Server(httpx, [json.dumps(wire.chat_whole("".join(PIECES))).encode()], "application/json")
    server.status = lambda request: 400 if b"logprobs" in request.content else 200
    assert answer_of(5, server)["message"]["content"] == "".join(PIECES)
    assert server.bodies == [{"min_tokens": 5, "logprobs": True}, {"min_tokens": 5}]
