"""What each API is asked through its official client, and what of its answer is read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from stopscan_conformance import Server
from stopscan_conformance._answer import Answer, ask
from stopscan_conformance._apis import APIS as BY_NAME
from stopscan_conformance._apis import Request
from stopscan_conformance._paths import PATHS, body_of
from stopscan_conformance._says import Said, said
from stopscan_conformance._space import SAYS

each_api = pytest.mark.parametrize("api", [name for name in BY_NAME if not name.startswith("harmony")])
STOPS = {"stop": ["END"], "stop_token_ids": [5]}
MESSAGES = [{"role": "user", "content": "[think]"}]
HEAD = {"id": "1", "model": "reciter"}
USED = {"prompt": 3, "tokens": 7}
NO_STOP, STOP, EOS, LENGTH = None, ("stop_sequence", "END"), ("eos", None), ("length", None)


class Replay:
    """A server that says the same to all, and keeps what it is sent."""

    def __init__(self, said: Any, status: int = 200) -> None:
        text = said if isinstance(said, str) else json.dumps(said)
        media = "text/event-stream" if "data:" in text else "application/json"
        head = f"HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-type: {media}\r\ncontent-length: {len(text)}\r\n"
        self.answer = f"{head}\r\n{text}".encode()
        self.sent: list[tuple[str, Any]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        body = await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
        self.sent.append((head.split()[1], json.loads(body)))
        writer.write(self.answer)
        await writer.drain()
        writer.close()

    async def _asked(self, api: str, request: Request) -> Answer:
        serving = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        async with serving:
            port = serving.sockets[0].getsockname()[1]
            return await ask(Server(f"http://127.0.0.1:{port}", model="reciter"), BY_NAME[api], request)

    def asked(self, api: str, *, stream: bool, usage: bool = True) -> Answer:
        return asyncio.run(self._asked(api, Request("[think]", stream, STOPS, 9, usage)))


def events(*data: Any, named: bool = False, done: bool = False) -> str:
    lines = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" if named else f"data: {json.dumps(one)}\n\n"
             for one in data]  # fmt: skip
    return "".join(lines) + ("data: [DONE]\n\n" if done else "")


def choice(finish: str | None = None, **content: Any) -> dict[str, Any]:
    return {**HEAD, "object": "x", "created": 1, "choices": [{"index": 0, "finish_reason": finish, **content}]}


CHAT_USED = {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10}
INPUT_USED = {"input_tokens": 3, "output_tokens": 7, "total_tokens": 10}
MESSAGE = {**HEAD, "type": "message", "role": "assistant", "stop_reason": None, "stop_sequence": None}
OLLAMA = {"model": "reciter", "created_at": "2026-01-01T00:00:00Z"}
OLLAMA_END = {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 7}
RESPONSE = {**HEAD, "object": "response", "created_at": 1, "status": "completed", "output": []}
ITEM: dict[str, Any] = {"id": "i", "status": "completed"}
SAMPLING = {"max_new_tokens": 9, **STOPS}


def info(reason: Any, tokens: int) -> dict[str, Any]:
    return {"id": "1", "finish_reason": reason, "prompt_tokens": 3, "completion_tokens": tokens, "e2e_latency": 0.1}


READ = [
    (
        "openai-chat", False, ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 9, "stream": False}),
        {**choice("stop", message={"content": "one", "reasoning_content": "so"}, matched_stop="END"),
         "usage": CHAT_USED},
        ["one"], "so", STOP, {**HEAD, **USED},
    ),
    (
        "openai-chat", False, None,
        choice("length", message={"role": "assistant", "content": None, "reasoning": "so"}),
        [], "so", LENGTH, HEAD,
    ),
    (
        "openai-chat", True,
        ("/v1/chat/completions",
         {"messages": MESSAGES, "max_tokens": 9, "stream": True, "stream_options": {"include_usage": True}}),
        events(
            choice(delta={"role": "assistant", "content": ""}), choice(delta={"reasoning_content": "so"}),
            choice(delta={"content": "one", "reasoning": " on"}), choice(delta={"content": " two"}),
            choice("stop", delta={}, matched_stop="END"), {**choice(), "choices": [], "usage": CHAT_USED}, done=True,
        ),
        ["one", " two"], "so on", STOP, {**HEAD, **USED},
    ),
    (
        "openai-completions", False,
        ("/v1/completions", {"prompt": "[think]", "max_tokens": 9, "stream": False}),
        {**choice("stop", text="one", matched_stop="END"), "usage": CHAT_USED},
        ["one"], "", STOP, {**HEAD, **USED},
    ),
    (
        "openai-completions", True,
        ("/v1/completions",
         {"prompt": "[think]", "max_tokens": 9, "stream": True, "stream_options": {"include_usage": True}}),
        events(choice(text="one"), choice("length", text=None), {**choice(), "choices": [], "usage": CHAT_USED}),
        ["one"], "", LENGTH, {**HEAD, **USED},
    ),
    (
        "openai-responses", False,
        ("/v1/responses", {"input": "[think]", "max_output_tokens": 9, "stream": False}),
        {**RESPONSE, "usage": INPUT_USED, "output": [
            {**ITEM, "type": "reasoning", "content": [{"type": "reasoning_text", "text": "so"}]},
            {**ITEM, "type": "reasoning", "content": None},
            {**ITEM, "type": "message", "content": [{"type": "output_text", "text": "one", "annotations": []},
                                                    {"type": "refusal", "refusal": "no"}]},
        ]},
        ["one"], "so", ("refusal", None), {**HEAD, **USED},
    ),
    (
        "openai-responses", True,
        ("/v1/responses", {"input": "[think]", "max_output_tokens": 9, "stream": True}),
        events(
            {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}},
            {"type": "response.reasoning_text.delta", "delta": "so"},
            {"type": "response.reasoning_text.done", "text": "so"},
            {"type": "response.output_text.delta", "delta": "one"},
            {"type": "response.output_text.done", "text": "one"},
            {"type": "response.incomplete", "response": {
                **RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
                "usage": INPUT_USED}},
            named=True,
        ),
        ["one"], "so", LENGTH, {**HEAD, **USED},
    ),
    (
        "openai-responses", True, None,
        events({"type": "response.completed", "response": {**RESPONSE, "usage": None}}, named=True),
        [], "", EOS, HEAD,
    ),
    (
        "anthropic", False, ("/v1/messages", {"messages": MESSAGES, "max_tokens": 9, "stream": False}),
        {**MESSAGE, "stop_reason": "stop_sequence", "stop_sequence": "END", "usage": INPUT_USED, "content": [
            {"type": "thinking", "thinking": "so", "signature": ""}, {"type": "text", "text": "one"}]},
        ["one"], "so", STOP, {**HEAD, **USED},
    ),
    (
        "anthropic", False, None,
        {**MESSAGE, "stop_reason": "end_turn", "content": [{"type": "text", "text": None}]},
        [], "", EOS, HEAD,
    ),
    (
        "anthropic", True, ("/v1/messages", {"messages": MESSAGES, "max_tokens": 9, "stream": True}),
        events(
            {"type": "message_start", "message": {**MESSAGE, "content": [],
                                                  "usage": {"input_tokens": 3, "output_tokens": 0}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "not this"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one"}},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens", "stop_sequence": None},
             "usage": {"output_tokens": 7}},
            {"type": "message_stop"}, named=True,
        ),
        ["one"], "so", LENGTH, {**HEAD, **USED},
    ),
    (
        "ollama-chat", False,
        ("/api/chat", {"messages": MESSAGES, "stream": False, "tools": [], "options": {"num_predict": 9, **STOPS}}),
        {**OLLAMA, **OLLAMA_END, "message": {"role": "assistant", "content": "one", "thinking": "so"}},
        ["one"], "so", EOS, {"model": "reciter", **USED},
    ),
    (
        "ollama-chat", True,
        ("/api/chat", {"messages": MESSAGES, "stream": True, "tools": [], "options": {"num_predict": 9, **STOPS}}),
        "\n".join(json.dumps({**OLLAMA, **line}) for line in (
            {"message": {"role": "assistant", "content": "", "thinking": "so"}, "done": False, "eval_count": 1},
            {"message": {"role": "assistant", "content": "one"}, "done": False},
            {"message": {"role": "assistant", "content": ""}, **OLLAMA_END, "done_reason": "length"},
        )),
        ["one"], "so", LENGTH, {"model": "reciter", **USED},
    ),
    (
        "ollama-chat", True, None, json.dumps({**OLLAMA, "message": {"role": "assistant"}, "eval_count": 1}),
        [], "", NO_STOP, {"model": "reciter"},
    ),
    (
        "ollama-generate", False,
        ("/api/generate", {"prompt": "[think]", "stream": False, "options": {"num_predict": 9, **STOPS}}),
        {**OLLAMA, **OLLAMA_END, "response": "one", "thinking": "so"},
        ["one"], "so", EOS, {"model": "reciter", **USED},
    ),
    (
        "ollama-generate", True,
        ("/api/generate", {"prompt": "[think]", "stream": True, "options": {"num_predict": 9, **STOPS}}),
        "\n".join(json.dumps({**OLLAMA, **line}) for line in (
            {"response": "", "thinking": "so", "done": False}, {"response": "one", "done": False},
            {"response": "", **OLLAMA_END},
        )),
        ["one"], "so", EOS, {"model": "reciter", **USED},
    ),
    (
        "generate", False,
        ("/generate", {"text": "[think]", "stream": False, "sampling_params": SAMPLING}),
        {"text": "one", "meta_info": info({"type": "stop", "matched": "END"}, 7)},
        ["one"], "", STOP, {"id": "1", **USED},
    ),
    (
        "generate", True,
        ("/generate", {"text": "[think]", "stream": True, "sampling_params": SAMPLING}),
        ": ping\n\nid: {}\n\n" + events(
            {"text": "one", "meta_info": info(None, 2)}, {"text": "one two"},
            {"text": "one two", "meta_info": info({"type": "length", "length": 9}, 7)}, done=True,
        ),
        ["one", " two"], "", LENGTH, {"id": "1", **USED},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("api", "stream", "sent", "said", "chunks", "reasoning", "end", "head"),
    READ,
    ids=[f"{api}-{'stream' if stream else 'whole'}-{number}" for number, (api, stream, *_) in enumerate(READ)],
)
def test_what_is_asked_and_what_is_read(
    api: str,
    stream: bool,
    sent: tuple[str, dict[str, Any]] | None,
    said: Any,
    chunks: list[str],
    reasoning: str,
    end: Any,
    head: dict[str, Any],
) -> None:
    replay = Replay(said)
    answer = replay.asked(api, stream=stream)
    assert answer.error is None
    assert (answer.chunks, answer.reasoning, answer.end, answer.head) == (chunks, reasoning, end, head)
    if sent is not None:
        path, body = sent
        named = {"model": "reciter"} if api != "generate" else {}
        stops = {} if api.startswith("ollama") or api == "generate" else dict(STOPS)
        if api == "anthropic":
            stops["stop_sequences"] = stops.pop("stop")
        assert replay.sent == [(path, {**named, **body, **stops})]


@pytest.mark.parametrize("api", ["openai-chat", "openai-completions"])
def test_usage_is_asked_for_where_it_is_wanted(api: str) -> None:
    replay = Replay(events(done=True))
    replay.asked(api, stream=True, usage=False)
    ((_, body),) = replay.sent
    assert "stream_options" not in body


@each_api
@pytest.mark.parametrize("says", SAYS)
def test_the_curl_line_sends_what_the_client_sends(api: str, says: str) -> None:
    """It left out the usage that a stream is asked for, the newer limit, parts, and Anthropic's system message."""
    words = said(says, api, "END")
    for stream, usage in ((False, True), (True, True), (True, None)):
        request = Request("[think]", stream, STOPS, 9, usage, words or Said())
        replay = Replay({"error": "no"}, 422)
        asyncio.run(replay._asked(api, request))
        ((path, sent),) = replay.sent
        if api == "ollama-chat":
            assert sent.pop("tools") == []  # of the client itself
        assert (path, sent) == (PATHS[api], body_of(api, "reciter", request))


@each_api
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_is_the_answer(api: str, stream: bool) -> None:
    replay = Replay({"error": "no  stops"}, 422)
    answer = replay.asked(api, stream=stream)
    assert (answer.error, answer.refused, answer.chunks) == ('422: {"error": "no stops"}', True, [])
    assert len(replay.sent) == 1


def test_an_error_in_a_stream_of_sglang_is_told() -> None:
    said = events({"error": {"message": "at most 32 stop strings are allowed, got 63"}}, done=True)
    assert "got 63" in str(Replay(said).asked("generate", stream=True).error)
