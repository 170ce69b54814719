"""OpenAI's Responses API. It has no field for stops, so `stop` and `stop_token_ids` are extensions of servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stopscan_conformance.apis import api as form
from stopscan_conformance.apis.api import NAME, NULL, Api, Data, End, Part, Request, inner, string, unnamed
from stopscan_conformance.apis.openai import DONE
from stopscan_conformance.wire import Wire

PARTS = {"output_text": "message", "reasoning_text": "reasoning", "summary_text": "reasoning"}
LAST = {f"response.{status}": status for status in ("completed", "incomplete", "failed")}
# Reasoning comes as a text or as a summary. Both have the same events in the same order, but the names of the events
# differ. So that `_growth_form` can check both in the same way, it replaces a name from a summary's events (a key of
# SUMMARY) by the value: "content_part" is the name for a text, and "summary_text" is the type of the part.
SUMMARY = {"reasoning_summary_part": "content_part", "reasoning_summary_text": "summary_text"}
REASONING = {"response.reasoning_text.delta", "response.reasoning_summary_text.delta"}


def body(model: str, request: Request) -> Data:
    given: Any = request.text
    if request.extras.parts:
        text = request.extras.prefix + request.prompt
        given = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
    limit = request.limit("max_output_tokens")
    return {"model": model, "input": given, "stream": request.stream, **limit, **request.named("stop")}


def read(wire: Wire, request: Request) -> Iterator[Part]:
    if not request.stream:
        for event in wire.whole():
            for item in form.objects(inner(event.data, "output")):
                for part in form.objects(item.get("content")) or form.objects(item.get("summary")):
                    yield Part(*_told(part.get("type") != "output_text", part.get("text")), time=event.time)
            yield Part(end=_end(event.data), head=_head(event.data), time=event.time)
        return
    for event in wire.events():
        kind = inner(event.data, "type")
        if kind == "response.output_text.delta" or kind in REASONING:
            yield Part(*_told(kind in REASONING, inner(event.data, "delta")), time=event.time)
        elif kind in LAST:
            response = inner(event.data, "response")
            yield Part(end=_end(response), head=_head(response), time=event.time)
        elif kind == "error":
            raise RuntimeError(f"an error in the answer: {form.short(event.data)}")


def _told(reasoning: bool, text: Any) -> tuple[str, str]:
    return ("", string(text)) if reasoning else (string(text), "")


def _end(response: Any) -> End | None:
    status = inner(response, "status")
    if status == "completed":
        return "eos", None
    reason = inner(response, "incomplete_details", "reason")
    if status == "incomplete" and reason == "max_output_tokens":
        return "length", None
    return None if status is None else ("unknown", f"{status}, {reason}" if reason else status)


def _head(response: Any) -> Data:
    head = {"id": inner(response, "id") or None, "model": inner(response, "model") or None}
    usage = inner(response, "usage")
    return {**head, "prompt": inner(usage, "input_tokens"), "tokens": inner(usage, "output_tokens")}


def answer_form(wire: Wire, request: Request) -> Iterator[str]:
    if request.stream:
        yield from form.sent_as(wire, "text/event-stream")
        yield from _stream_form(wire)
    else:
        yield from form.sent_as(wire, "application/json")
        yield from _whole_form("the response", wire.json())


def _response_form(what: str, response: Any, status: set[str]) -> Iterator[str]:
    yield from form.in_seconds(what, "created_at", response)
    yield from form.lacks(what, response, id=NAME, object={"response"}, created_at=(int, float), model=NAME)
    yield from form.lacks(what, response, status=status, output=list)


def _whole_form(what: str, response: Any) -> Iterator[str]:
    yield from _response_form(what, response, {*LAST.values()})
    if not isinstance(response, dict):
        return
    yield from form.summed("usage", response.get("usage"), "input_tokens", "output_tokens", "total_tokens")
    if response.get("status") == "incomplete":
        yield from form.lacks(
            "incomplete_details", response.get("incomplete_details"), reason={"max_output_tokens", "content_filter"}
        )
    items = form.objects(response.get("output"))
    for item in items:
        yield from _item_form(item)
    # The last item must have the same status as the response, for example "incomplete" if the token limit ended the
    # response. OpenAI's reference on the status of an item: "One of in_progress, completed, or incomplete".
    status = response.get("status")
    if items and status in ("completed", "incomplete") and items[-1].get("status", status) != status:
        yield f"the last item of a response that is {status} is {form.short(items[-1]['status'])}"


def _item_form(item: Any) -> Iterator[str]:
    yield from form.lacks("an item", item, id=NAME, type={*PARTS.values()})
    if not isinstance(item, dict):
        return
    if item.get("type") == "message":
        yield from form.lacks("the message", item, role={"assistant"}, status={"completed", "incomplete"}, content=list)
    if item.get("type") == "reasoning":
        yield from form.lacks("the reasoning", {"content": None, **item}, summary=list, content=(list, NULL))
    for part in [*form.objects(item.get("content")), *form.objects(item.get("summary"))]:
        yield from _part_form(part)


def _part_form(part: Any) -> Iterator[str]:
    yield from form.lacks("a part", part, type={*PARTS}, text=str)
    if isinstance(part, dict) and part.get("type") == "output_text":
        yield from form.lacks("a part", part, annotations=list)


@dataclass
class _Open:
    """An item that has begun in a stream and is not done, and the part of the item that is open."""

    index: int
    id: str
    part: str | None = None
    parts: int = 0  # the number of parts that are done
    text: str = ""
    done: set[str] = field(default_factory=set)


def _stream_form(wire: Wire) -> Iterator[str]:
    events = yield from form.named_events(event for event in wire.events() if event.data != DONE)
    kinds = [str(event.get("type")) for event in events]
    numbers = [event.get("sequence_number") for event in events]
    if numbers != [*range(len(events))]:
        at = next(index for index, number in enumerate(numbers) if number != index)
        yield f"event {at} has {numbers[at]!r} as sequence_number"
    if kinds[:1] != ["response.created"] or not {*kinds[-1:]} & {*LAST}:
        yield f"the stream begins with {kinds[:1]} and ends with {kinds[-1:]}"
    if sum(kind in LAST for kind in kinds) > 1:
        yield "the stream ends twice"
    responses = [event["response"] for event in events if isinstance(event.get("response"), dict)]
    yield from form.differ("the stream", responses, "id", "model")
    for event in events[:1]:
        yield from _response_form("the first response", event.get("response"), {"in_progress", "queued"})
    yield from _items_form(events)


def _items_form(events: list[dict[str, Any]]) -> Iterator[str]:
    """Checks the order of the events: for each item and for each of its parts, "added" comes first, then the deltas,
    and then "done". The last event of the stream must have all items."""
    opened: _Open | None = None
    items: list[Any] = []
    for event in events:
        kind = str(event.get("type")).removeprefix("response.")
        if kind == "output_item.added":
            if opened is not None:
                yield "an item is added within another"
            yield from form.lacks(kind, event, output_index={len(items)})
            yield from form.lacks("an added item", event.get("item"), id=NAME, type={*PARTS.values()})
            (item,) = form.objects([event.get("item")]) or [{}]
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
        yield from form.lacks(kind, event, output_index={opened.index})
        yield from _item_form(event.get("item"))
        if isinstance(event.get("item"), dict) and event["item"].get("id") != opened.id:
            yield "an item is done under another id"
        if opened.part is not None:
            yield "a part is not done"
        return
    name, _, step = kind.partition(".")
    place = "summary_index" if name in SUMMARY else "content_index"
    kind = f"{SUMMARY.get(name, name)}.{step}"
    yield from form.lacks(kind, event, output_index={opened.index}, item_id={opened.id}, **{place: {opened.parts}})
    if kind == "content_part.added":
        yield from _part_form(event.get("part"))
        (part,) = form.objects([event.get("part")]) or [{}]
        opened.part = str(part.get("type"))
    elif kind == "content_part.done":
        yield from _same_text("content_part.done", event.get("part"), opened.text)
        if opened.part is not None and opened.part not in opened.done:
            yield f"no {opened.part}.done"
        opened.part, opened.text = None, ""
        opened.done.clear()
        opened.parts += 1
    elif opened.part is None:
        yield f"{kind} outside a part"
    elif kind == f"{opened.part}.delta":
        yield from form.lacks("a delta", event, delta=str)
        opened.text += str(event.get("delta"))
    elif kind == f"{opened.part}.done":
        yield from _same_text(kind, event, opened.text)
        opened.done.add(opened.part)
    else:
        yield f"{kind} in a part of {opened.part}"


def _same_text(kind: str, holder: Any, text: str) -> Iterator[str]:
    given = holder.get("text") if isinstance(holder, dict) else None
    if given != text:
        yield f"{kind} has the text {form.short(given)}, its deltas {form.short(text)}"


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
        (item.get("id"), [part.get("text") for name in ("summary", "content") for part in form.objects(item.get(name))])
        for item in form.objects(items)
    ]


RESPONSES = Api(
    "openai-responses", "/v1/responses", "https://platform.openai.com/docs/api-reference/responses", body, read,
    answer_form, unnamed, limit="max_output_tokens", content="input", stops=False,
)  # fmt: skip
