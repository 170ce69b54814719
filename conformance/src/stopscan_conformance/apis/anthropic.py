"""Anthropic's Messages API: its requests and the form of its answers. `stop_token_ids` is an extension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stopscan_conformance.apis import api as form
from stopscan_conformance.apis.api import COUNT, NAME, NULL, Api, Data, End, Part, Request, inner, string
from stopscan_conformance.wire import Wire

MOST_TOKENS = 6000  # sent if a request has no limit, because the API requires one
REASONS = {
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded",
}  # fmt: skip
ENDS = {"end_turn": "eos", "max_tokens": "length", "stop_sequence": "stop_sequence"}
MESSAGE = {"id": NAME, "type": {"message"}, "role": {"assistant"}, "model": NAME, "content": list}
BLOCKS: dict[str, Data] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
}
# An empty block is a fault: if a client sends the block back, Anthropic answers with a 400 ("messages: text content
# blocks must be non-empty").
EMPTY = "an empty text block; if there is no text, there is no block"
INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}


def body(model: str, request: Request) -> Data:
    """Returns the body of a request. It always has `max_tokens`. The API takes the texts of system turns in the field
    `system`, and the other turns in `messages`."""
    system = [turn["content"] for turn in request.messages if turn["role"] == "system"]
    turns = [turn for turn in request.messages if turn["role"] != "system"]
    content = {"messages": turns, "max_tokens": request.max_tokens or MOST_TOKENS}
    instructions = {"system": "\n".join(system)} if system else {}
    return {"model": model, "stream": request.stream, **content, **instructions, **request.named("stop_sequences")}


def read(wire: Wire, request: Request) -> Iterator[Part]:
    if not request.stream:
        for event in wire.whole():
            for block in form.objects(inner(event.data, "content")):
                yield Part(string(block.get("text")), string(block.get("thinking")), time=event.time)
            usage = inner(event.data, "usage")
            yield Part(end=_end(event.data), head=_head(event.data) | _tokens(usage), time=event.time)
        return
    for event in wire.events():
        kind = inner(event.data, "type")
        if kind == "message_start":
            message = inner(event.data, "message")
            yield Part(end=_end(message), head=_head(message), time=event.time)
        elif kind == "content_block_delta":
            delta = inner(event.data, "delta")
            yield Part(string(inner(delta, "text")), string(inner(delta, "thinking")), time=event.time)
        elif kind == "message_delta":
            end = _end(inner(event.data, "delta"))
            yield Part(end=end, head=_tokens(inner(event.data, "usage")), time=event.time)
        elif kind == "error":
            raise RuntimeError(f"an error in the answer: {form.short(inner(event.data, 'error'))}")


def _end(message: Any) -> End | None:
    word = inner(message, "stop_reason")
    if word is None:
        return None
    if not isinstance(word, str) or word not in ENDS:
        return "unknown", word
    return ENDS[word], inner(message, "stop_sequence")


def _head(message: Any) -> Data:
    head = {"id": inner(message, "id") or None, "model": inner(message, "model") or None}
    return {**head, "prompt": _input_tokens(inner(message, "usage"))}


def _input_tokens(usage: Any) -> int | None:
    """Returns how many input tokens there are, or None if the answer has no count. The API counts tokens that it read
    from its cache, and tokens that it wrote to the cache, in two more fields. The result is the sum of all three."""
    counts = [inner(usage, name) for name in INPUT]
    return sum(count for count in counts if isinstance(count, int)) if isinstance(counts[0], int) else None


def _tokens(usage: Any) -> Data:
    return {"tokens": inner(usage, "output_tokens")}


def answer_form(wire: Wire, request: Request) -> Iterator[str]:
    if request.stream:
        yield from form.sent_as(wire, "text/event-stream")
        yield from _stream_form(wire)
        return
    message = wire.json()
    yield from form.sent_as(wire, "application/json")
    yield from form.lacks(
        "the message", message, **MESSAGE, stop_reason=REASONS, stop_sequence=(NAME, NULL), usage=dict
    )
    if isinstance(message, dict):
        yield from form.summed("usage", message.get("usage"), "input_tokens", "output_tokens", None)
        for block in form.objects(message.get("content")):
            yield from _block_form(block)
            if block.get("type") == "text" and block.get("text") == "":
                yield EMPTY


def _block_form(block: Any) -> Iterator[str]:
    wrong = list(form.lacks("a block", block, type={*BLOCKS}))
    yield from wrong or form.lacks("a block", block, **BLOCKS[block["type"]])


def _stream_form(wire: Wire) -> Iterator[str]:
    events = yield from form.named_events(wire.events())
    events = [event for event in events if event.get("type") != "ping"]
    kinds = [str(event.get("type")) for event in events]
    if kinds[:1] != ["message_start"] or kinds[-2:] != ["message_delta", "message_stop"]:
        yield f"the stream begins with {kinds[:1]} and ends with {kinds[-2:]}"
    for kind in ("message_start", "message_delta", "message_stop"):
        if kinds.count(kind) != 1:
            yield f"{kind} comes {kinds.count(kind)} times, not once"
    yield from _blocks_form(events)
    for event in events:
        if event.get("type") == "message_start":
            yield from _start_form(event.get("message"))
        elif event.get("type") == "message_delta":
            yield from form.lacks("the last delta", event.get("delta"), stop_reason=REASONS, stop_sequence=(NAME, NULL))
            yield from form.lacks("the last usage", event.get("usage"), output_tokens=COUNT)
    yield from _usages_form(events)


def _start_form(message: Any) -> Iterator[str]:
    yield from form.lacks("the message", message, **MESSAGE, stop_reason=NULL, stop_sequence=NULL, usage=dict)
    if isinstance(message, dict):
        yield from form.summed("the first usage", message.get("usage"), "input_tokens", "output_tokens", None)
        if message.get("content"):
            yield "the message begins with content"


def _usages_form(events: list[Data]) -> Iterator[str]:
    """Compares the token counts at the beginning of a stream with those at its end. A count includes all tokens so far,
    so it cannot become smaller."""
    first = next((inner(event, "message", "usage") for event in events if event.get("type") == "message_start"), None)
    last = next((inner(event, "usage") for event in events if event.get("type") == "message_delta"), None)
    begun, ended = inner(first, "output_tokens"), inner(last, "output_tokens")
    if isinstance(begun, int) and isinstance(ended, int) and begun > max(ended, 1):
        yield f"the first usage has {begun} output_tokens, the last {ended}"
    before, after = _input_tokens(first), _input_tokens(last)
    if before is not None and after is not None and after < before:
        yield f"the last usage has {after} input tokens, the first {before}"


def _blocks_form(events: list[dict[str, Any]]) -> Iterator[str]:
    """Checks that content blocks are numbered from 0 and do not overlap, and that each delta is for the open block."""
    count, opened, text = 0, None, ""
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
            text = string(inner(block, "text"))
        elif kind in ("content_block_delta", "content_block_stop"):
            if opened is None:
                yield f"{kind} outside a block"
            elif index != count - 1:
                yield f"{kind} of block {index} in block {count - 1}"
            elif kind == "content_block_delta":
                yield from _delta_form(event.get("delta"), opened)
                text += string(inner(event.get("delta"), "text"))
            if kind == "content_block_stop":
                if opened == "text" and not text:
                    yield EMPTY
                opened = None
        elif kind == "message_delta" and opened is not None:
            yield "a block is not closed"
        elif kind not in ("message_start", "message_delta", "message_stop"):
            yield f"an event of the type {kind}"


def _delta_form(delta: Any, block: Any) -> Iterator[str]:
    wrong = list(form.lacks("a delta", delta, type={*DELTAS}))
    yield from wrong or form.lacks("a delta", delta, **{delta["type"].removesuffix("_delta"): str})
    if not wrong and DELTAS[delta["type"]] != block:
        yield f"{delta['type']} in a block of {block}"


def reported(end: End) -> End:
    return ("eos", None) if end[0] == "stop_token" else end


MESSAGES = Api(
    "anthropic", "/v1/messages", "https://docs.anthropic.com/en/api/messages", body, read, answer_form, reported,
    names="documented", stop="stop_sequences", lists_only=True,
)  # fmt: skip
