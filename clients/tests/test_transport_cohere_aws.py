"""Cohere's v2 chat, and Anthropic's events inside the chunks of AWS's InvokeModel."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest
import wire
from hypothesis import given
from hypothesis import strategies as st
from memory import Server, post
from reference import Reference
from replay import aws, sse

from stopscan import StopMatch
from stopscan_clients import scan_events, truncate_response
from stopscan_clients.framing import Aws


def cohere(texts: list[str]) -> list[Any]:
    """Returns the events of a stream, in the form that https://docs.cohere.com/v2/docs/streaming and the types of
    cohere.v2 describe."""
    block = {"type": "text", "text": ""}
    return [
        {"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant", "content": []}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "thinking", "thinking": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"thinking": "END"}}}},
        {"type": "content-end", "index": 0},
        {"type": "content-start", "index": 1, "delta": {"message": {"content": block}}},
        *[{"type": "content-delta", "index": 1, "delta": {"message": {"content": {"text": text}}}} for text in texts],
        {"type": "content-end", "index": 1},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {"tokens": {"output_tokens": 9}}}},
    ]


def cohere_text(events: list[Any]) -> str:
    with_text = [event for event in events if event["type"] in ("content-start", "content-delta")]
    return "".join(event["delta"]["message"]["content"].get("text", "") for event in with_text)


@given(
    texts=st.lists(st.text("abEND", max_size=4), max_size=6), stop=st.lists(st.text("abEND", min_size=1, max_size=3))
)
def test_cohere_any_text(texts: list[str], stop: list[str]) -> None:
    events = cohere(texts)
    stream = scan_events(events, stop)
    out = list(stream)
    oracle = Reference(stop)
    assert cohere_text(out) == oracle.feed("".join(texts)) + oracle.flush()
    reason = "COMPLETE" if oracle.match is None else "STOP_SEQUENCE"
    assert (out[-1]["type"], out[-1]["delta"]["finish_reason"]) == ("message-end", reason)
    begun = [event["type"] for event in out].count("content-start")  # 0 if no text comes out
    assert [event["type"] for event in out].count("content-end") == begun


def test_cohere_over_the_transport() -> None:
    server = Server(httpx, map(sse, cohere(["one E", "ND two", "more"])))
    body = {"stream": True, "stop_sequences": ["END"], "model": "m"}
    answer = post(server, body, "/v2/chat")
    parsed = [json.loads(part.partition("data: ")[2]) for part in answer.text.split("\n\n") if part]
    assert cohere_text(parsed) == "one "
    assert server.bodies == [{"stream": True, "model": "m"}]
    assert b"event: message-end\n" in answer.content


def test_cohere_whole_answers() -> None:
    content = [{"type": "thinking", "thinking": "END"}, {"type": "text", "text": "one END two"}]
    message = {"role": "assistant", "content": content, "tool_calls": [{}]}
    cut = truncate_response({"id": "1", "finish_reason": "TOOL_CALL", "message": message}, "END")
    assert cut["message"] == {"role": "assistant", "content": [content[0], {"type": "text", "text": "one "}]}
    assert cut["finish_reason"] == "STOP_SEQUENCE"


def chunk(event: Any) -> bytes:
    return aws({"chunk": {"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abcdef"}})


@pytest.mark.parametrize("size", [1, 5, 64, 100_000])
def test_anthropics_events_in_invoke_models_chunks(size: int) -> None:
    body = b"".join(map(chunk, wire.anthropic(["one E", "ND two"])))
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    server = Server(httpx, pieces, "application/vnd.amazon.eventstream")
    answer = post(server, {"stop_sequences": ["END"]}, "/model/m/invoke-with-response-stream")
    framing = Aws()
    events = [json.loads(framing.payload(frame) or b"") for frame in framing.split(answer.content)]
    assert (
        "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta") == "one "
    )
    assert [event["type"] for event in events][-2:] == ["message_delta", "message_stop"]
    assert events[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert answer.extensions["stopscan"] == {0: StopMatch("END", 4)}
    assert server.bodies == [{}]


def test_botocore_reads_what_is_made_of_an_aws_stream() -> None:
    """botocore, the official client, must accept the checksums and headers of the events that the transport writes."""
    from botocore.eventstream import EventStreamBuffer

    server = Server(httpx, map(aws, wire.bedrock(["one E", "ND two"])), "application/vnd.amazon.eventstream")
    answer = post(server, {}, "/model/m/converse-stream", "END")
    buffer = EventStreamBuffer()
    buffer.add_data(answer.content)
    parsed = [message.headers[":event-type"] for message in buffer]
    assert parsed[-2:] == ["contentBlockStop", "messageStop"]
