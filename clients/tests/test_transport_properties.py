"""Property tests of `Body`: its fast path changes no result, random JSON raises no error, and bytes that are not events
stay unchanged."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
import wire
from events import text_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import Reference
from replay import aws, line, sse

from stopscan import StopMatch, StopSet
from stopscan_clients import body as body_module
from stopscan_clients.apis import api_of_event
from stopscan_clients.body import Body, Plan, sniffed
from stopscan_clients.framing import Array, Aws, Lines, Sse
from stopscan_clients.machine import ScanOptions

FORMS: dict[str, tuple[type[Lines], Any]] = {
    **dict.fromkeys(("chat", "completions", "responses", "anthropic", "gemini", "cohere", "llama"), (Sse, sse)),
    **dict.fromkeys(("ollama", "generate"), (Lines, line)),
    "bedrock": (Aws, aws),
}


def cut(
    framing: type[Lines], pieces: list[bytes], stop: list[str], fast: bool = True, **options: bool
) -> tuple[bytes, Any]:
    body = body_of(framing, stop, fast, **options)
    out = b""
    for piece in pieces:
        out += b"".join(body.emit(body.feed(piece)))
        if body.ended:
            break
    return out + b"".join(body.emit(body.end())), body.matches


def body_of(framing: type[Lines], stop: list[str], fast: bool = True, **options: bool) -> Body:
    body = Body(Plan(ScanOptions(StopSet(stop), **options), True), "", False)
    body._alike._tries *= fast
    # Sets the framing, such as server-sent events. Otherwise `Body` would find out the framing from the first bytes.
    body._framing, body._framed = framing(), True
    return body


def pieces_of(body: bytes, sizes: list[int]) -> list[bytes]:
    out, place, number = [], 0, 0
    while place < len(body):
        size = sizes[number % len(sizes)]
        out.append(body[place : place + size])
        place, number = place + size, number + 1
    return out


sizes = st.lists(st.integers(1, 400), min_size=1, max_size=6)
texts = st.lists(st.text(st.sampled_from('abEND\n"\\é漢😀\u2028 '), max_size=6), max_size=14)
stops = st.lists(st.text("abEND", min_size=1, max_size=4), max_size=3)


@pytest.mark.parametrize("api", FORMS)
@settings(max_examples=30)
@given(texts=texts, stop=stops, sizes=sizes, ascii_only=st.booleans(), drain=st.booleans())
@example(texts=["one E", "ND", "two", "three", "four"], stop=["END"], sizes=[400], ascii_only=True, drain=True)
@example(texts=["first", "second", "one END", "two", "more"], stop=["END"], sizes=[400], ascii_only=True, drain=True)
def test_the_fast_way_gives_what_the_slow_way_gives(
    api: str, texts: list[str], stop: list[str], sizes: list[int], ascii_only: bool, drain: bool
) -> None:
    framing, form = FORMS[api]
    body = b"".join(map(form, wire.ROWS[api](texts)))
    if not ascii_only and framing is not Aws:
        body = _plain(body)
    pieces = pieces_of(body, sizes)
    fast, matched = cut(framing, pieces, stop, drain=drain)
    assert (fast, matched) == cut(framing, pieces, stop, fast=False, drain=drain)
    assert (fast, matched) == cut(framing, [body], stop, drain=drain)
    oracle = Reference(stop)
    expected = oracle.feed("".join(texts)) + oracle.flush()
    assert "".join(text_of(api, event) or "" for event in read(framing, fast)) == expected
    assert (oracle.match is None) == (not matched)
    if oracle.match is None and not any(stop):
        assert fast == body


def _plain(body: bytes) -> bytes:
    """Returns the events with all characters as UTF-8. In ``body``, characters that are not ASCII may be written as
    escapes, such as ``\\u00e9``."""
    out = []
    for part in body.split(b"\n"):
        head, brace, rest = part.partition(b"{")
        out.append(head + json.dumps(json.loads(brace + rest), ensure_ascii=False).encode() if brace else part)
    return b"\n".join(out)


def read(framing: type[Lines], body: bytes) -> list[Any]:
    form = framing()
    payloads = [form.payload(frame) for frame in form.split(body)]
    return [json.loads(payload) for payload in payloads if payload not in (None, b"[DONE]")]


@pytest.mark.parametrize("api", ["chat", "completions", "anthropic", "ollama", "generate"])
def test_most_events_of_a_stream_take_the_fast_way(api: str) -> None:
    framing, form = FORMS[api]
    body = body_of(framing, ["<|end|>", "\n\nHuman:"])
    slow = []
    real = body._event
    body._event = lambda frame, fed=None: slow.append(frame) or real(frame, fed)  # type: ignore[method-assign, func-returns-value]
    for event in wire.ROWS[api]([f"word {number}" for number in range(500)]):
        body.feed(form(event))
    assert len(slow) < 15


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_every_line_end_in_any_pieces(end: str, size: int) -> None:
    """The body is cut into pieces that may end between a CR and the LF after it. So a CR at the end of a piece must
    wait for the next piece. The stream also has comments, ids and a byte order mark, which are not data."""
    chunks = wire.chat(["one E", "N", "D two"])
    body = "\ufeff: hello" + end * 2
    for number, chunk in enumerate(chunks):
        data = json.dumps(chunk, indent=1).replace("\n", f"{end}data: ") if number % 2 else json.dumps(chunk)
        body += f"id: {number}{end}data: {data}{end}{end}"
    data = body.encode()
    out, matches = cut(Sse, [data[at : at + size] for at in range(0, len(data), size)], ["END"])
    assert "".join(text_of("chat", event) or "" for event in read(Sse, out)) == "one "
    assert matches == {0: StopMatch("END", 4)}
    assert out.decode().lstrip("\ufeff").startswith(": hello")


def test_u2028_is_no_line_end() -> None:
    """In server-sent events, U+2028 does not end a line, so httpx's `iter_lines`, which ends a line there, must not be
    used."""
    body = _plain(b"".join(map(sse, wire.chat(["one\u2028E", "ND\u2029x"]))))
    out, _ = cut(Sse, [body], ["END"])
    assert "".join(text_of("chat", event) or "" for event in read(Sse, out)) == "one\u2028"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text("abEND", max_size=4) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                sorted(
                    [
                        "choices",
                        "delta",
                        "content",
                        "index",
                        "message",
                        "text",
                        "type",
                        "finish_reason",
                        "logprobs",
                        "candidates",
                        "parts",
                        "finishReason",
                        "response",
                        "done",
                        "content_block",
                        "tool_calls",
                        "tokens",
                        "output",
                        "item",
                        "part",
                        "output_index",
                        "content_index",
                        "item_id",
                        "usage",
                        "annotations",
                        "bytes",
                        "token",
                        "contentBlockDelta",
                        "contentBlockIndex",
                        "messageStop",
                        "contentBlockStop",
                        "role",
                        "error",
                        "functionCall",
                        "thought",
                    ]
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
TYPES = [
    *("response.created", "response.output_text.delta", "response.output_text.done", "response.content_part.done"),
    *("response.output_item.done", "response.output_item.added", "response.completed", "message_start", "message_stop"),
    *("content_block_start", "content_block_delta", "content_block_stop", "message_delta", "content-delta", "ping"),
    *("content-start", "content-end", "message-end", "response.output_text.annotation.added"),
]


@pytest.mark.parametrize("api", FORMS)
@settings(max_examples=30)
@given(data=st.data())
def test_random_json_in_a_stream_never_raises(api: str, data: st.DataObject) -> None:
    """Up to four parts of the events are replaced by random JSON, and a random event may be added. This must not raise
    an error."""
    events: list[Any] = wire.ROWS[api](["one E", "N", "ab"])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(events) - 1))
        events[place] = _mutated(events[place], data)
    if data.draw(st.booleans()):
        extra = data.draw(st.dictionaries(st.text("abc", max_size=2), values, max_size=2))
        events.insert(data.draw(st.integers(0, 3)), {**extra, "type": data.draw(st.sampled_from(TYPES))})
    framing, _ = FORMS[api]
    if framing is Aws:
        framing = Lines
    body = b"".join(line(event) for event in events) if framing is Lines else b"".join(map(sse_of, events))
    drain = data.draw(st.booleans())
    cut(framing, [body], ["END", "b"], drain=drain)


def sse_of(event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _mutated(tree: Any, data: st.DataObject) -> Any:
    if isinstance(tree, dict) and tree and data.draw(st.integers(0, 3)):
        key = data.draw(st.sampled_from(sorted(tree)))
        if not data.draw(st.integers(0, 4)):
            return {name: value for name, value in tree.items() if name != key}
        return {**tree, key: _mutated(tree[key], data)}
    if isinstance(tree, list) and tree and data.draw(st.booleans()):
        return [_mutated(tree[0], data), *tree[1:]]
    return data.draw(values)


@settings(max_examples=50)
@given(answer=values)
def test_random_json_as_an_answer_never_raises(answer: Any) -> None:
    body = json.dumps(answer).encode()
    Body(Plan(ScanOptions(StopSet(["END", "b"]))), "", False).whole(body)


@pytest.mark.parametrize("framing", [Sse, Lines, Array])
@settings(max_examples=30)
@given(
    body=st.binary(max_size=300)
    | st.lists(
        st.sampled_from(
            [
                b"data: ",
                b"\n",
                b"\r",
                b"{",
                b"}",
                b"[",
                b"]",
                b'"',
                b"\\",
                b",",
                b'{"choices": [{"delta": {"content": "E"}}]}',
            ]
        ),
        max_size=30,
    ).map(b"".join),
    sizes=sizes,
)
@example(body=b"data: {}\r\r\ndata: x", sizes=[1])
def test_random_bytes_pass(framing: type[Lines], body: bytes, sizes: list[int]) -> None:
    out, matches = cut(framing, pieces_of(body, sizes), [])
    assert matches == {}
    if framing is not Array:
        assert out == body


@settings(max_examples=30)
@given(body=st.binary(max_size=200), sizes=sizes)
def test_random_aws_bytes_pass_or_are_refused(body: bytes, sizes: list[int]) -> None:
    with contextlib.suppress(ValueError):
        assert cut(Aws, pieces_of(body, sizes), ["END"])[0] == body


def test_an_event_that_never_ends_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stopscan_clients.framing.LIMIT", 1000)
    for framing in (Sse, Lines, Array):
        with pytest.raises(ValueError, match="1,000 bytes"):
            cut(framing, [b"[{" + b"x" * 100] * 20, ["END"])


def test_pieces_of_a_byte_are_read_in_linear_time() -> None:
    body = sse(wire.chat_chunk([wire.chat_choice(content="x" * 200_000)]))
    out, _ = cut(Sse, [body[at : at + 1] for at in range(len(body))], ["END"])
    assert out == body


def test_any_event_shows_its_api() -> None:
    for api, make in wire.ROWS.items():
        rows = [api_of_event(event) for event in make(["one"])]
        assert len({row.name for row in rows if row is not None}) == 1, api


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b" " * 9_000, b"\xef\xbb\xbf" + b"\r\n" * 4_500])
@pytest.mark.parametrize("form", [sse, line])
def test_blanks_before_a_stream_are_read_once(monkeypatch: pytest.MonkeyPatch, before: bytes, form: Any) -> None:
    read = []
    monkeypatch.setattr(
        body_module, "sniffed", lambda head, *options: read.append(len(head)) or sniffed(head, *options)
    )
    for rest in (b"".join(map(form, wire.chat(["x" * 9_000, "one END two"]))), b"raw"):
        body, out = Body(Plan(ScanOptions(StopSet(["END"])), True), "", strict=rest != b"raw"), b""
        for byte in before + rest:
            out += b"".join(body.emit(body.feed(bytes([byte]))))
            if body.ended:
                break
        out += b"".join(body.emit(body.end()))
        assert sum(read) < 30_000
        assert out.startswith(before)
        assert (b"one " in out, b"two" in out, rest in out) == (rest != b"raw", False, rest == b"raw")
