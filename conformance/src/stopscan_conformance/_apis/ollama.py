"""Ollama's chat and generate, with `stop_token_ids` among the options as an extension."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from stopscan.finish import from_ollama
from stopscan_conformance._apis import _faults as faults
from stopscan_conformance._apis._api import Api, End, Part, Request
from stopscan_conformance._apis._faults import COUNT, NAME
from stopscan_conformance._connection import Connection
from stopscan_conformance._wire import Wire

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


async def read_chat(connection: Connection, request: Request) -> AsyncIterator[Part]:
    reply = await connection.ollama.chat(
        model=connection.model, messages=request.messages, stream=request.stream, options=_options(request)
    )
    async for part in _parts(reply, request.stream):
        yield _part(part, part.message.content, part.message.thinking)


async def read_generate(connection: Connection, request: Request) -> AsyncIterator[Part]:
    reply = await connection.ollama.generate(
        model=connection.model, prompt=request.text, stream=request.stream, options=_options(request)
    )
    async for part in _parts(reply, request.stream):
        yield _part(part, part.response, part.thinking)


def _options(request: Request) -> dict[str, Any]:
    return {**request.limit("num_predict"), **request.named("stop")}


async def _parts(reply: Any, stream: bool) -> AsyncIterator[Any]:
    if not stream:
        yield reply
        return
    try:
        async for part in reply:
            yield part
    finally:
        await reply.aclose()


def _part(part: Any, text: str | None, reasoning: str | None) -> Part:
    head = {"model": part.model}
    if part.done:
        head |= {"prompt": part.prompt_eval_count, "tokens": part.eval_count}
    return Part(text or "", reasoning or "", from_ollama(part), head)


def chat_form(wire: Wire, request: Request) -> Iterator[str]:
    yield from _form(wire, request, message=dict)
    for line in _lines(wire, request):
        if isinstance(line, dict) and isinstance(line.get("message"), dict):
            yield from faults.lacks("a message", line["message"], role={"assistant"}, content=str)


def generate_form(wire: Wire, request: Request) -> Iterator[str]:
    yield from _form(wire, request, response=str)


def _form(wire: Wire, request: Request, **content: type) -> Iterator[str]:
    yield from faults.sent_as(wire, "application/x-ndjson" if request.stream else "application/json")
    lines = _lines(wire, request)
    for line in lines:
        yield from faults.lacks("a line", line, model=NAME, created_at=NAME, done=bool, **content)
        if isinstance(line, dict) and not TIME.match(str(line.get("created_at"))):
            yield f"a line has {faults.short(line.get('created_at'))} as created_at"
    yield from faults.differ("the stream", lines, "model")
    done = [index for index, line in enumerate(lines) if isinstance(line, dict) and line.get("done") is True]
    if done != [len(lines) - 1]:
        yield f"of {len(lines)} lines these are the last by their own account: {done}"
    else:
        yield from faults.lacks("the last line", lines[-1], done_reason=NAME, prompt_eval_count=COUNT, eval_count=COUNT)
        if lines[-1].get("prompt_eval_count") == 0:
            yield "the last line has 0 as prompt_eval_count"


def _lines(wire: Wire, request: Request) -> list[Any]:
    return [event.data for event in wire.lines()] if request.stream else [wire.json()]


def told(end: End) -> End:
    return ("eos", None) if end[0] in ("stop_sequence", "stop_token") else end


CHAT = Api("ollama-chat", read_chat, chat_form, told, lists_only=True)
GENERATE = Api("ollama-generate", read_generate, generate_form, told, lists_only=True)
