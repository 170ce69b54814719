"""Anthropic's messages, with `stop_token_ids` as an extension."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from stopscan.finish import from_anthropic
from stopscan_conformance._apis import _faults as faults
from stopscan_conformance._apis._api import Api, End, Part, Request
from stopscan_conformance._apis._faults import COUNT, NAME
from stopscan_conformance._connection import Connection
from stopscan_conformance._wire import Wire

NULL = type(None)
MOST_TOKENS = 6000  # the API wants a limit
REASONS = {
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded",
}  # fmt: skip
MESSAGE = {"id": NAME, "type": {"message"}, "role": {"assistant"}, "model": NAME, "content": list}
BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
}
DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}


async def read(connection: Connection, request: Request) -> AsyncIterator[Part]:
    reply = await connection.anthropic.messages.create(
        model=connection.model,
        stream=request.stream,
        **content(request),
        extra_body=request.named("stop_sequences"),
    )
    if not request.stream:
        for block in reply.content:
            yield Part(getattr(block, "text", None) or "", getattr(block, "thinking", None) or "")
        yield Part(finish=from_anthropic(reply), head=_head(reply) | _tokens(reply))
        return
    async with reply:
        async for event in reply:
            if event.type == "message_start":
                yield Part(finish=from_anthropic(event), head=_head(event.message))
            elif event.type == "content_block_delta":
                yield Part(getattr(event.delta, "text", None) or "", getattr(event.delta, "thinking", None) or "")
            elif event.type == "message_delta":
                yield Part(finish=from_anthropic(event), head=_tokens(event))


def content(request: Request) -> dict[str, Any]:
    """The turns, of which the system's is a field of its own, and the limit."""
    system = [turn["content"] for turn in request.messages if turn["role"] == "system"]
    turns = [turn for turn in request.messages if turn["role"] != "system"]
    limit = request.max_tokens or MOST_TOKENS
    return {"messages": turns, "max_tokens": limit, **({"system": "\n".join(system)} if system else {})}


def _head(message: Any) -> dict[str, Any]:
    return {"id": message.id, "model": message.model, "prompt": getattr(message.usage, "input_tokens", None)}


def _tokens(message: Any) -> dict[str, Any]:
    return {"tokens": getattr(message.usage, "output_tokens", None)}


def form(wire: Wire, request: Request) -> Iterator[str]:
    if request.stream:
        yield from faults.sent_as(wire, "text/event-stream")
        yield from _stream_form(wire)
        return
    message = wire.json()
    yield from faults.sent_as(wire, "application/json")
    yield from faults.lacks(
        "the message", message, **MESSAGE, stop_reason=REASONS, stop_sequence=(NAME, NULL), usage=dict
    )
    if isinstance(message, dict):
        yield from faults.summed("usage", message.get("usage"), "input_tokens", "output_tokens", None)
        for block in faults.objects(message.get("content")):
            yield from _block_form(block)


def _block_form(block: Any) -> Iterator[str]:
    wrong = list(faults.lacks("a block", block, type={*BLOCKS}))
    yield from wrong or faults.lacks("a block", block, **BLOCKS[block["type"]])


def _stream_form(wire: Wire) -> Iterator[str]:
    events = []
    for name, data in wire.events():
        if not isinstance(data, dict):
            yield f"an event has the data {str(data)[:40]!r}"
            continue
        kind = data.get("type")
        if name != kind:
            yield f"the event {kind} is named {name}"
        if kind != "ping":
            events.append(data)
    kinds = [str(event.get("type")) for event in events]
    if kinds[:1] != ["message_start"] or kinds[-2:] != ["message_delta", "message_stop"]:
        yield f"the stream goes from {kinds[:1]} to {kinds[-2:]}"
    for kind in ("message_start", "message_delta", "message_stop"):
        if kinds.count(kind) != 1:
            yield f"{kinds.count(kind)} times {kind}"
    yield from _blocks_form(events)
    for event in events:
        if event.get("type") == "message_start":
            yield from _start_form(event.get("message"))
        elif event.get("type") == "message_delta":
            yield from faults.lacks(
                "the last delta", event.get("delta"), stop_reason=REASONS, stop_sequence=(NAME, NULL)
            )
            yield from faults.lacks("the last usage", event.get("usage"), output_tokens=COUNT)


def _start_form(message: Any) -> Iterator[str]:
    yield from faults.lacks("the message", message, **MESSAGE, stop_reason=NULL, stop_sequence=NULL, usage=dict)
    if isinstance(message, dict):
        yield from faults.summed("the first usage", message.get("usage"), "input_tokens", "output_tokens", None)
        if message.get("content"):
            yield "the message begins with content"


def _blocks_form(events: list[dict[str, Any]]) -> Iterator[str]:
    """Blocks follow each other, numbered from 0, and deltas belong to the one that is open."""
    count, opened = 0, None
    for event in events:
        kind, index = event.get("type"), event.get("index")
        if kind == "content_block_start":
            if opened is not None:
                yield "a block begins in another"
            if index != count:
                yield f"block {count} has the index {index}"
            yield from _block_form(event.get("content_block"))
            block = event.get("content_block")
            count, opened = count + 1, block.get("type") if isinstance(block, dict) else ""
        elif kind in ("content_block_delta", "content_block_stop"):
            if opened is None:
                yield f"{kind} outside a block"
            elif index != count - 1:
                yield f"{kind} of block {index} in block {count - 1}"
            elif kind == "content_block_delta":
                yield from _delta_form(event.get("delta"), opened)
            if kind == "content_block_stop":
                opened = None
        elif kind == "message_delta" and opened is not None:
            yield "a block is not closed"
        elif kind not in ("message_start", "message_delta", "message_stop"):
            yield f"an event of the type {kind}"


def _delta_form(delta: Any, block: Any) -> Iterator[str]:
    wrong = list(faults.lacks("a delta", delta, type={*DELTAS}))
    yield from wrong or faults.lacks("a delta", delta, **{delta["type"].removesuffix("_delta"): str})
    if not wrong and DELTAS[delta["type"]] != block:
        yield f"{delta['type']} in a block of {block}"


def told(end: End) -> End:
    return ("eos", None) if end[0] == "stop_token" else end


MESSAGES = Api("anthropic", read, form, told, "stop_reason is not stop_sequence", lists_only=True)
