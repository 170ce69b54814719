"""OpenAI's Responses, with `stop` and `stop_token_ids` as an extension: the API has no stops of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from stopscan.finish import from_responses
from stopscan_conformance._apis import _faults as faults
from stopscan_conformance._apis._api import Api, End, Part, Request
from stopscan_conformance._apis._faults import NAME
from stopscan_conformance._apis.openai import DONE
from stopscan_conformance._connection import Connection
from stopscan_conformance._wire import Wire

PARTS = {"output_text": "message", "reasoning_text": "reasoning"}
LAST = {f"response.{status}": status for status in ("completed", "incomplete", "failed")}


def input_of(request: Request) -> Any:
    if not request.said.parts:
        return request.text
    return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": request.prompt}]}]


async def read(connection: Connection, request: Request) -> AsyncIterator[Part]:
    reply = await connection.openai.responses.create(
        model=connection.model,
        input=input_of(request),
        stream=request.stream,
        extra_body={**request.limit("max_output_tokens"), **request.named("stop")},
    )
    if not request.stream:
        for item in reply.output:
            for part in item.content or ():
                yield Part(*_told_by(part.type == "reasoning_text", getattr(part, "text", "")))
        yield _end(reply, reply)
        return
    async with reply:
        async for event in reply:
            if event.type in ("response.output_text.delta", "response.reasoning_text.delta"):
                yield Part(*_told_by(event.type == "response.reasoning_text.delta", event.delta))
            elif event.type in LAST:
                yield _end(event, event.response)


def _told_by(reasoning: bool, text: str) -> tuple[str, str]:
    return ("", text) if reasoning else (text, "")


def _end(payload: Any, response: Any) -> Part:
    head = {"id": response.id, "model": response.model}
    if response.usage is not None:
        head |= {"prompt": response.usage.input_tokens, "tokens": response.usage.output_tokens}
    return Part(finish=from_responses(payload), head=head)


def form(wire: Wire, request: Request) -> Iterator[str]:
    if request.stream:
        yield from faults.sent_as(wire, "text/event-stream")
        yield from _stream_form(wire)
    else:
        yield from faults.sent_as(wire, "application/json")
        yield from _whole_form("the response", wire.json())


def _response_form(what: str, response: Any, status: set[str]) -> Iterator[str]:
    yield from faults.in_seconds(what, "created_at", response)
    yield from faults.lacks(what, response, id=NAME, object={"response"}, created_at=(int, float), model=NAME)
    yield from faults.lacks(what, response, status=status, output=list)


def _whole_form(what: str, response: Any) -> Iterator[str]:
    yield from _response_form(what, response, {*LAST.values()})
    if not isinstance(response, dict):
        return
    yield from faults.summed("usage", response.get("usage"), "input_tokens", "output_tokens", "total_tokens")
    if response.get("status") == "incomplete":
        yield from faults.lacks(
            "incomplete_details", response.get("incomplete_details"), reason={"max_output_tokens", "content_filter"}
        )
    for item in faults.objects(response.get("output")):
        yield from _item_form(item)


def _item_form(item: Any) -> Iterator[str]:
    yield from faults.lacks("an item", item, id=NAME, type={*PARTS.values()})
    if not isinstance(item, dict):
        return
    if item.get("type") == "message":
        yield from faults.lacks(
            "the message", item, role={"assistant"}, status={"completed", "incomplete"}, content=list
        )
    for part in faults.objects(item.get("content")):
        yield from _part_form(part)


def _part_form(part: Any) -> Iterator[str]:
    yield from faults.lacks("a part", part, type={*PARTS}, text=str)
    if isinstance(part, dict) and part.get("type") == "output_text":
        yield from faults.lacks("a part", part, annotations=list)


@dataclass
class _Open:
    """The item that is open, and its part."""

    index: int
    id: str
    part: str | None = None
    text: str = ""
    done: set[str] = field(default_factory=set)


def _stream_form(wire: Wire) -> Iterator[str]:
    events = []
    for name, data in wire.events():
        if data == DONE:
            continue
        if not isinstance(data, dict):
            yield f"an event has the data {faults.short(data)}"
            continue
        if name != data.get("type"):
            yield f"the event {data.get('type')} is named {name}"
        events.append(data)
    kinds = [str(event.get("type")) for event in events]
    numbers = [event.get("sequence_number") for event in events]
    if numbers != [*range(len(events))]:
        at = next(index for index, number in enumerate(numbers) if number != index)
        yield f"event {at} has {numbers[at]!r} as sequence_number"
    if kinds[:1] != ["response.created"] or not {*kinds[-1:]} & {*LAST}:
        yield f"the stream goes from {kinds[:1]} to {kinds[-1:]}"
    if sum(kind in LAST for kind in kinds) > 1:
        yield "the stream ends twice"
    responses = [event["response"] for event in events if isinstance(event.get("response"), dict)]
    yield from faults.differ("the stream", responses, "id", "model")
    for event in events[:1]:
        yield from _response_form("the first response", event.get("response"), {"in_progress", "queued"})
    yield from _items_form(events)


def _items_form(events: list[dict[str, Any]]) -> Iterator[str]:
    """Items and their parts are added, grow and are done, in this order, and the last event has them all."""
    opened: _Open | None = None
    items: list[Any] = []
    for event in events:
        kind = str(event.get("type")).removeprefix("response.")
        if kind == "output_item.added":
            if opened is not None:
                yield "an item is added within another"
            yield from _place_form(event, kind, output_index={len(items)})
            yield from faults.lacks("an added item", event.get("item"), id=NAME, type={*PARTS.values()})
            (item,) = faults.objects([event.get("item")]) or [{}]
            opened = _Open(len(items), str(item.get("id")))
        elif f"response.{kind}" in LAST:
            if opened is not None:
                yield "an item is not done"
            yield from _last_form(event, kind, items)
        elif kind not in ("created", "queued", "in_progress"):
            if opened is None:
                yield f"{kind} outside an item"
                continue
            yield from _growth_form(event, kind, opened)
            if kind == "output_item.done":
                items.append(event.get("item"))
                opened = None


def _growth_form(event: dict[str, Any], kind: str, opened: _Open) -> Iterator[str]:
    if kind == "output_item.done":
        yield from _place_form(event, kind, output_index={opened.index})
        yield from _item_form(event.get("item"))
        if isinstance(event.get("item"), dict) and event["item"].get("id") != opened.id:
            yield "an item is done under another id"
        if opened.part is not None:
            yield "a part is not done"
        return
    yield from _place_form(event, kind, output_index={opened.index}, content_index={0}, item_id={opened.id})
    if kind == "content_part.added":
        yield from _part_form(event.get("part"))
        (part,) = faults.objects([event.get("part")]) or [{}]
        opened.part = str(part.get("type"))
    elif kind == "content_part.done":
        yield from _same_text("content_part.done", event.get("part"), opened.text)
        if opened.part is not None and opened.part not in opened.done:
            yield f"no {opened.part}.done"
        opened.part = None
    elif opened.part is None:
        yield f"{kind} outside a part"
    elif kind == f"{opened.part}.delta":
        yield from faults.lacks("a delta", event, delta=str)
        opened.text += str(event.get("delta"))
    elif kind == f"{opened.part}.done":
        yield from _same_text(kind, event, opened.text)
        opened.done.add(opened.part)
    else:
        yield f"{kind} in a part of {opened.part}"


def _place_form(event: dict[str, Any], kind: str, **place: set[Any]) -> Iterator[str]:
    yield from faults.lacks(kind, event, **place)


def _same_text(kind: str, holder: Any, text: str) -> Iterator[str]:
    said = holder.get("text") if isinstance(holder, dict) else None
    if said != text:
        yield f"{kind} has the text {faults.short(said)}, its deltas {faults.short(text)}"


def _last_form(event: dict[str, Any], kind: str, items: list[Any]) -> Iterator[str]:
    response = event.get("response")
    yield from _whole_form("the last response", response)
    if isinstance(response, dict):
        if response.get("status") != kind:
            yield f"response.{kind} has {response.get('status')} as status"
        if _said(response.get("output")) != _said(items):
            yield "the last response has other items than came before"


def _said(items: Any) -> list[Any]:
    return [
        (item.get("id"), [part.get("text") for part in faults.objects(item.get("content"))])
        for item in faults.objects(items)
    ]


def told(end: End) -> End:
    return ("eos", None) if end[0] in ("stop_sequence", "stop_token") else end


RESPONSES = Api("openai-responses", read, form, told)
