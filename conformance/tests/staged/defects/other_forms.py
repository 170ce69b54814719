"""Answers of Anthropic's messages, Ollama's routes and sglang's `/generate` in a wrong form, or without an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from staged.defects.defect import Defect, wrong
from staged.edits import (
    after,
    before,
    but_first,
    chunk,
    done,
    drop,
    every,
    first,
    lose,
    numbered,
    put,
    twice,
    typed,
)  # fmt: skip

CASE = "split"
START, DELTA, STOP = typed("content_block_start"), typed("content_block_delta"), typed("content_block_stop")
BEGIN, TURN, END = typed("message_start"), typed("message_delta"), typed("message_stop")


def anthropic(
    name: str, /, *, columns: str = "form", case: str = CASE, whole: bool = False, **changes: object
) -> Defect:
    return wrong(f"anthropic: {name}", case, columns, "anthropic", whole=whole, **changes)


def ollama(name: str, /, *, columns: str = "form", case: str = CASE, whole: bool = False, **changes: object) -> Defect:
    return wrong(f"ollama: {name}", case, columns, "ollama-chat", whole=whole, **changes)


def sglang(name: str, /, *, columns: str = "form", case: str = CASE, whole: bool = False, **changes: object) -> Defect:
    return wrong(f"sglang: {name}", case, columns, "generate", whole=whole, **changes)


ANTHROPIC = [
    anthropic("no message_start", events=every(BEGIN, drop)),
    anthropic("no names", frame=lambda name, data: f"data: {data}\n\n"),
    anthropic("other names", frame=lambda name, data: f"event: message\ndata: {data}\n\n"),
    anthropic(
        "blocks from 1",
        events=every(lambda data: isinstance(data, dict) and "index" in data, put(lambda index: index + 1, "index")),
    ),
    anthropic(
        "each block 0",
        case="think",
        events=every(lambda data: isinstance(data, dict) and "index" in data, put(0, "index")),
    ),
    anthropic("a delta of another block", events=first(DELTA, put(5, "index"))),
    anthropic("an empty delta", columns="text form", events=first(DELTA, put(None, "delta", "text"))),
    anthropic("a delta is a number", columns="text", events=first(DELTA, put(5, "delta", "text"))),
    anthropic("no block begins", events=every(START, drop)),
    anthropic(
        "a block for each delta",
        events=but_first(
            DELTA, before({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        ),
    ),
    anthropic("blocks that do not end", case="think", events=every(STOP, drop)),
    anthropic("a block ends twice", events=every(STOP, twice)),
    anthropic("no message_delta", columns="finish form", events=every(TURN, drop)),
    anthropic("no message_stop", events=every(END, drop)),
    anthropic(
        "the reason in message_stop",
        columns="finish form",
        events=every(TURN, put(lambda delta: {"stop_reason": None, "stop_sequence": None}, "delta")),
    ),
    anthropic("the reason at the start", events=every(BEGIN, put("end_turn", "message", "stop_reason"))),
    anthropic("null sequences left out", case="no-stop", events=every(TURN, lose("delta", "stop_sequence"))),
    anthropic("null sequences left out of an answer", case="no-stop", whole=True, whole_answer=lose("stop_sequence")),
    anthropic("null reasons left out at the start", events=every(BEGIN, lose("message", "stop_reason"))),
    anthropic("no usage at the end", columns="form", events=every(TURN, lose("usage", "output_tokens"))),
    anthropic("no usage at the start", columns="form", events=every(BEGIN, lose("message", "usage"))),
    anthropic("no usage", whole=True, columns="form", whole_answer=lose("usage")),
    anthropic("no role", events=every(BEGIN, lose("message", "role"))),
    anthropic("the user's role", whole=True, whole_answer=put("user", "role")),
    anthropic("another type", whole=True, whole_answer=put("chat.completion", "type")),
    anthropic(
        "content is text",
        whole=True,
        columns="text form",
        whole_answer=put(lambda blocks: "".join(block["text"] for block in blocks), "content"),
    ),
    anthropic("content at the start", events=every(BEGIN, put([{"type": "text", "text": ""}], "message", "content"))),
    anthropic(
        "text deltas in a thinking block",
        case="think",
        columns="form",
        events=first(START, put({"type": "text", "text": ""}, "content_block")),
    ),
    anthropic(
        "a thinking block without a signature", case="think", whole=True, whole_answer=lose("content", 0, "signature")
    ),
    anthropic("[DONE]", columns="form", events=every(END, after("[DONE]"))),
    anthropic("an unknown event", events=every(END, before({"type": "usage", "output_tokens": 6}))),
    anthropic("a stream as JSON", media="application/json"),
    anthropic("one id for all answers", case="twice-the-same", whole=True, whole_answer=put("msg", "id")),
]

OLLAMA = [
    ollama("a stream as events", media="text/event-stream"),
    ollama("a stream as JSON", media="application/json"),
    ollama("events", columns="text", frame=lambda name, data: f"data: {data}\n\n"),
    ollama("no last line", columns="finish form", events=every(done, drop)),
    ollama("two last lines", events=every(done, twice)),
    ollama("each line is the last", columns="form", case="no-stop-limit", events=every(chunk, put(True, "done"))),
    ollama("no model", whole=True, whole_answer=lose("model")),
    ollama("no time", events=every(chunk, lose("created_at"))),
    ollama("no role", events=every(chunk, lose("message", "role"))),
    ollama("the user's role", whole=True, whole_answer=put("user", "message", "role")),
    ollama("no reason", events=every(done, lose("done_reason"))),
    ollama("not done", columns="finish form", whole=True, whole_answer=put(False, "done")),
]


def pieces(data: Any, said: list[str]) -> Any:
    """Only what is new, as other APIs have it."""
    if not isinstance(data, dict):
        return data
    new = data["text"][len("".join(said)) :]
    said.append(new)
    return {**data, "text": new}


async def deltas(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    said: list[str] = []
    async for data in source:
        yield pieces(data, said)


SGLANG = [
    sglang("deltas", columns="text form", events=deltas),
    sglang("no [DONE]", events=every(done, drop)),
    sglang("no id", whole=True, whole_answer=lose("meta_info", "id")),
    sglang(
        "another id in each answer",
        events=numbered(lambda data, n: put(f"id-{n}", "meta_info", "id")(data) if chunk(data) else data),
    ),
    sglang("no finish reason", columns="finish form", whole=True, whole_answer=put(None, "meta_info", "finish_reason")),
    sglang(
        "a bare finish reason",
        columns="finish form",
        whole=True,
        whole_answer=put("stop", "meta_info", "finish_reason"),
    ),
    sglang("no prompt tokens", whole=True, whole_answer=lose("meta_info", "prompt_tokens")),
    sglang("no meta_info", columns="finish form", whole=True, whole_answer=lose("meta_info")),
]


async def pings(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for data in source:
        yield data
    while True:
        yield {"type": "ping"}
        await asyncio.sleep(0.05)


async def only_pings(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    first = True
    async for data in source:
        if first or "klm" in str(data):
            yield data
        first = False
    while True:
        yield {"type": "ping"}
        await asyncio.sleep(0.05)


async def stays(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for data in source:
        yield data
    await asyncio.sleep(60)


async def silent(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    await asyncio.sleep(60)
    yield {}


async def breaks_off(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    number = 0
    async for data in source:
        yield data
        number += 1
        if number == 4:
            raise ConnectionAbortedError


ENDLESS = [
    anthropic("pings for ever at the end", events=pings),
    anthropic("pings for ever", columns="text finish form", events=only_pings),
    ollama("the connection stays open", events=stays),
    wrong("silent streams", CASE, "text finish form", events=silent),
    wrong("streams that break off", CASE, "text finish form", events=breaks_off),
]

DEFECTS = [*ANTHROPIC, *OLLAMA, *SGLANG, *ENDLESS]
