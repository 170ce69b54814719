"""OpenAI's chat and text completions, with the extensions of the engines: `stop_token_ids`, `matched_stop`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from stopscan.finish import from_openai
from stopscan_conformance._apis import _faults as faults
from stopscan_conformance._apis._api import Api, Part, Request
from stopscan_conformance._apis._faults import NAME
from stopscan_conformance._connection import Connection
from stopscan_conformance._wire import Wire

DONE = "[DONE]"
MATCHED_STOP = "the choice has neither matched_stop nor stop_reason"
# The second name is vLLM's and mlx-lm's, the first everybody else's.
REASONING = ("reasoning_content", "reasoning")


async def read_chat(connection: Connection, request: Request) -> AsyncIterator[Part]:
    reply = await connection.openai.chat.completions.create(
        model=connection.model, messages=request.messages, **options(request)
    )
    async for answer in _answers(reply, request.stream):
        for choice in answer.choices:
            message = choice.delta if request.stream else choice.message
            reasoning = next(filter(None, (getattr(message, name, None) for name in REASONING)), "")
            yield Part(message.content or "", reasoning)
        yield _end(answer)


async def read_completions(connection: Connection, request: Request) -> AsyncIterator[Part]:
    reply = await connection.openai.completions.create(model=connection.model, prompt=request.text, **options(request))
    async for answer in _answers(reply, request.stream):
        for choice in answer.choices:
            yield Part(choice.text or "")
        yield _end(answer)


def options(request: Request) -> dict[str, Any]:
    asked = (
        {True: {"include_usage": True}, None: {"include_usage": False}}.get(request.usage) if request.stream else None
    )
    usage = {"stream_options": asked} if asked else {}
    limits = {} if request.max_tokens is None else dict.fromkeys(request.said.limits, request.max_tokens)
    return {"stream": request.stream, **usage, "extra_body": {**request.named("stop"), **limits}}


async def _answers(reply: Any, stream: bool) -> AsyncIterator[Any]:
    if not stream:
        yield reply
        return
    async with reply:
        async for chunk in reply:
            yield chunk


def _end(answer: Any) -> Part:
    head = {"id": answer.id, "model": answer.model}
    if answer.usage is not None:
        head |= {"prompt": answer.usage.prompt_tokens, "tokens": answer.usage.completion_tokens}
    return Part(finish=from_openai(answer) if answer.choices else None, head=head)


def chat_form(wire: Wire, request: Request) -> Iterator[str]:
    if request.stream:
        yield from _stream_form(wire, request, "chat.completion.chunk", delta=dict)
        choices = [choice for event in wire.events() for choice in _choices(event.data)]
        deltas = faults.objects([choice.get("delta") for choice in choices])
        roles = [delta.get("role") for delta in deltas]
        if roles[:1] != ["assistant"]:
            yield f"the first delta has {roles[0] if roles else None!r} as role"
        for role in [role for role in roles if role not in ("assistant", None)][:1]:
            yield f"a delta has {faults.short(role)} as role"
        for delta in deltas:
            yield from faults.lacks("a delta", {"content": None, **delta}, content=(str, type(None)))
    else:
        yield from _whole_form(wire, "chat.completion", message=dict)
        for choice in _choices(wire.json()):
            yield from faults.lacks("the message", choice.get("message"), role={"assistant"}, content=(str, type(None)))


def completions_form(wire: Wire, request: Request) -> Iterator[str]:
    if request.stream:
        yield from _stream_form(wire, request, "text_completion", text=str)
    else:
        yield from _whole_form(wire, "text_completion", text=str)


def _whole_form(wire: Wire, kind: str, **content: type) -> Iterator[str]:
    answer = wire.json()
    yield from faults.sent_as(wire, "application/json")
    yield from faults.lacks("the answer", answer, id=NAME, object={kind}, created=int, model=NAME, choices=list)
    yield from faults.in_seconds("the answer", "created", answer)
    if isinstance(answer, dict) and "usage" in answer:  # "usage" is not required
        yield from faults.summed("usage", answer.get("usage"), "prompt_tokens", "completion_tokens", "total_tokens")
    if len(_choices(answer)) != 1:
        yield f"there are {len(_choices(answer))} choices"
    for choice in _choices(answer):
        yield from faults.lacks("the choice", choice, index={0}, finish_reason=NAME, **content)
        yield from faults.told_apart("the choice", choice)


def _stream_form(wire: Wire, request: Request, kind: str, **content: type) -> Iterator[str]:
    events = [event.data for event in wire.events()]
    chunks = [event for event in events if event != DONE]
    yield from faults.sent_as(wire, "text/event-stream")
    if events[-1:] != [DONE]:
        yield f"the stream does not end with {DONE}"
    if DONE in events[:-1]:
        yield f"the stream goes on after {DONE}"
    yield from faults.differ("the stream", chunks, "id", "model")
    for chunk in chunks:
        yield from faults.lacks("a chunk", chunk, id=NAME, object={kind}, created=int, model=NAME, choices=list)
        yield from faults.in_seconds("a chunk", "created", chunk)
        for choice in _choices(chunk):
            yield from faults.lacks("a choice", choice, index={0}, finish_reason=(NAME, type(None)), **content)
            yield from faults.told_apart("a choice", choice)
    yield from _usage_form(chunks, request)
    yield from _end_form([choice for chunk in chunks for choice in _choices(chunk)])


def _usage_form(chunks: list[Any], request: Request) -> Iterator[str]:
    """ "An additional chunk will be streamed before the data: [DONE] message", and it has no choices."""
    bare = [chunk for chunk in chunks if isinstance(chunk, dict) and chunk.get("choices") == []]
    told = [chunk for chunk in chunks if isinstance(chunk, dict) and chunk.get("usage") is not None]
    if not request.usage:
        if bare:
            yield "a chunk without choices, although no usage was asked for"
        return
    if not (len(told) == 1 and told == bare == chunks[-1:]):
        yield "the usage does not come once, in a last chunk without choices"
    for chunk in told:
        yield from faults.summed("usage", chunk["usage"], "prompt_tokens", "completion_tokens", "total_tokens")


def _end_form(choices: list[Any]) -> Iterator[str]:
    reasons = [choice.get("finish_reason") for choice in choices]
    ends = [index for index, reason in enumerate(reasons) if reason is not None]
    if len(ends) != 1:
        yield f"{len(ends)} finish reasons"
    elif ends[0] != len(choices) - 1:
        yield "a choice after the finish reason"


def _choices(chunk: Any) -> list[dict[str, Any]]:
    return faults.objects(chunk.get("choices")) if isinstance(chunk, dict) else []


def told(end: tuple[str, str | int | None]) -> tuple[str, str | int | None]:
    return end


CHAT = Api("openai-chat", read_chat, chat_form, told, MATCHED_STOP, asks_for_usage=True)
COMPLETIONS = Api(
    "openai-completions", read_completions, completions_form, told, MATCHED_STOP, asks_for_usage=True, raw=True
)
