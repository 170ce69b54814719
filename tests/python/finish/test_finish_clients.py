"""Reads finish reasons from the objects that the official clients return. A local server sends whole answers and
streams to the clients."""

from __future__ import annotations

import json
import struct
import threading
from binascii import crc32
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from finish_harness import outcome
from finish_streams import CHUNK, MESSAGE, STREAMS, Stream

Serve = Callable[[Any], str]

QUESTION: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "The alphabet, then END"}]}


def server_sent(events: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()


def lines(events: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for event in events:
        yield f"{json.dumps(event)}\n".encode()


def event_stream(events: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """The events in AWS's binary format for streams."""
    for event in events:
        ((kind, data),) = event.items()
        payload, headers = json.dumps(data).encode(), b""
        fields = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
        for name, value in fields.items():
            headers += bytes([len(name)]) + name.encode() + b"\7" + struct.pack(">H", len(value)) + value.encode()
        prelude = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
        message = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
        yield message + struct.pack(">I", crc32(message))


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a server that answers every request with one JSON object, or with a list of them as a stream."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    answer: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kind, body = "application/json", [json.dumps(answer[0]).encode()]
            if isinstance(answer[0], list):
                kind, framed = (
                    ("application/x-ndjson", lines)
                    if self.path.startswith("/api/")
                    else ("application/vnd.amazon.eventstream", event_stream)
                    if self.path.endswith("/converse-stream")
                    else ("text/event-stream", server_sent)
                )
                body = [*framed(answer[0]), *([b"data: [DONE]\n\n"] if "completions" in self.path else [])]
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(b"".join(body))

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def start(payload: Any) -> str:
        answer[:] = [payload]
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    server.shutdown()
    thread.join()
    server.server_close()


def streams(prefix: str) -> Any:
    chosen = {name: stream for name, stream in STREAMS.items() if name.startswith(prefix)}
    return pytest.mark.parametrize("stream", chosen.values(), ids=chosen)


def package(name: str) -> Any:
    return pytest.fixture(
        lambda: pytest.importorskip(name, reason=f"{name} is not installed"), name=name.split(".")[-1]
    )


anthropic, openai, ollama = map(package, ("anthropic", "openai", "ollama"))
genai, boto3, huggingface_hub = map(package, ("google.genai", "boto3", "huggingface_hub"))


def reports(api: str, events: Iterable[Any]) -> list[Any]:
    return [outcome(api, event) for event in events]


@streams("anthropic")
def test_anthropic_streams(anthropic: Any, serve: Serve, stream: Stream) -> None:
    client = anthropic.Anthropic(api_key="key", base_url=serve(stream.events), max_retries=0)
    events = client.messages.create(**QUESTION, max_tokens=9, stream=True)
    # The client does not pass pings on.
    assert reports("anthropic", events) == [None] * 4 + [stream.report, None]
    with client.messages.stream(**QUESTION, max_tokens=9) as helper:
        assert {*reports("anthropic", helper)} == {None, stream.report}
        assert outcome("anthropic", helper.get_final_message()) == stream.report


@streams("anthropic")
def test_anthropic_messages(anthropic: Any, serve: Serve, stream: Stream) -> None:
    message = {**MESSAGE, **stream.events[-2]["delta"]}
    client = anthropic.Anthropic(api_key="key", base_url=serve(message), max_retries=0)
    assert outcome("anthropic", client.messages.create(**QUESTION, max_tokens=9)) == stream.report


@streams("chat")
def test_openai_chat_streams(openai: Any, serve: Serve, stream: Stream) -> None:
    client = openai.OpenAI(api_key="key", base_url=serve(stream.events), max_retries=0)
    chunks = client.chat.completions.create(**QUESTION, stream=True)
    assert reports("openai", chunks) == stream.reports


def test_openai_stream_helper(openai: Any, serve: Serve) -> None:
    stream = STREAMS["chat sglang string"]
    client = openai.OpenAI(api_key="key", base_url=serve(stream.events), max_retries=0)
    with client.chat.completions.stream(**QUESTION) as events:
        assert [report for report in reports("openai", events) if report] == [stream.report]


@streams("chat")
def test_openai_chat(openai: Any, serve: Serve, stream: Stream) -> None:
    choice = {**stream.events[-2]["choices"][0], "message": {"role": "assistant", "content": "ABC"}}
    completion = {**CHUNK, "object": "chat.completion", "choices": [choice]}
    client = openai.OpenAI(api_key="key", base_url=serve(completion), max_retries=0)
    response = client.chat.completions.create(**QUESTION)
    assert outcome("openai", response) == outcome("openai", response.choices[0]) == stream.report


@streams("completions")
def test_openai_completions(openai: Any, serve: Serve, stream: Stream) -> None:
    client = openai.OpenAI(api_key="key", base_url=serve(stream.events), max_retries=0)
    assert reports("openai", client.completions.create(model="m", prompt="A", stream=True)) == stream.reports
    serve(stream.events[-1])
    assert outcome("openai", client.completions.create(model="m", prompt="A")) == stream.report


@streams("responses")
def test_openai_responses(openai: Any, serve: Serve, stream: Stream) -> None:
    client = openai.OpenAI(api_key="key", base_url=serve(stream.events), max_retries=0)
    events = list(client.responses.create(model="m", input="A", stream=True))
    assert [event.type for event in events] == [event["type"] for event in stream.events]
    assert reports("responses", events) == stream.reports
    serve(stream.events[-1]["response"])
    assert outcome("responses", client.responses.create(model="m", input="A")) == stream.report


@streams("ollama chat")
def test_ollama_chat(ollama: Any, serve: Serve, stream: Stream) -> None:
    client = ollama.Client(host=serve(stream.events))
    assert reports("ollama", client.chat(**QUESTION, stream=True)) == stream.reports
    serve(stream.events[-1])
    assert outcome("ollama", client.chat(**QUESTION)) == stream.report


@streams("ollama generate")
def test_ollama_generate(ollama: Any, serve: Serve, stream: Stream) -> None:
    client = ollama.Client(host=serve(stream.events))
    assert reports("ollama", client.generate("m", "A", stream=True)) == stream.reports
    serve(stream.events[-1])
    assert outcome("ollama", client.generate("m", "A")) == stream.report


@streams("gemini")
def test_google_genai(genai: Any, serve: Serve, stream: Stream) -> None:
    client = genai.Client(api_key="key", http_options={"base_url": serve(stream.events)})
    assert reports("gemini", client.models.generate_content_stream(model="m", contents="A")) == stream.reports
    serve(stream.events[-1])
    response = client.models.generate_content(model="m", contents="A")
    assert outcome("gemini", response) == outcome("gemini", response.candidates[0]) == stream.report


@streams("bedrock")
def test_boto3_converse(boto3: Any, serve: Serve, stream: Stream) -> None:
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=serve(stream.events),
        region_name="us-east-1",
        aws_access_key_id="id",
        aws_secret_access_key="key",
    )
    question = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "A"}]}]}
    assert reports("bedrock", client.converse_stream(**question)["stream"]) == stream.reports
    whole = {**stream.events[-2]["messageStop"], "output": {"message": {"role": "assistant", "content": []}}}
    serve(whole)
    assert outcome("bedrock", client.converse(**question)) == stream.report


@streams("tgi")
def test_huggingface_hub(huggingface_hub: Any, serve: Serve, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    # HF_HUB_OFFLINE prevents downloads. If it is set, the client also refuses a server on this machine.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    client = huggingface_hub.InferenceClient(model=serve(stream.events), provider="hf-inference", token="key")
    assert reports("tgi", client.text_generation("A", stream=True, details=True)) == stream.reports
    details = {**stream.events[-1]["details"], "prefill": [], "tokens": []}
    serve([{"generated_text": "ABCABC", "details": details}])
    serve({"generated_text": "ABCABC", "details": details})
    assert outcome("tgi", client.text_generation("A", details=True)) == stream.report
