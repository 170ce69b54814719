"""sglang's `/generate`: each object of a stream has the whole text so far."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from stopscan.finish import from_sglang
from stopscan_conformance._apis import _faults as faults
from stopscan_conformance._apis._api import Api, End, Part, Request
from stopscan_conformance._apis._faults import COUNT, NAME
from stopscan_conformance._connection import Connection
from stopscan_conformance._wire import LINE_END, Wire

DONE = "[DONE]"


async def read(connection: Connection, request: Request) -> AsyncIterator[Part]:
    sampling = {**request.limit("max_new_tokens"), **request.named("stop")}
    body = {"text": request.text, "sampling_params": sampling, "stream": request.stream}
    said = ""
    async with connection.http.stream("POST", "/generate", json=body) as reply:
        if reply.is_error:
            await reply.aread()
            reply.raise_for_status()
        if not request.stream:
            answer = json.loads(await reply.aread())
            yield Part(answer["text"], "", from_sglang(answer), _head(answer))
            return
        async for line in _lines(reply):
            data = line.removeprefix("data:").strip()
            if line.startswith("data:") and data != DONE:
                answer = json.loads(data)
                if "error" in answer:
                    raise RuntimeError(f"an error in the stream: {answer['error']}")
                text, said = answer["text"][len(said) :], answer["text"]
                yield Part(text, "", from_sglang(answer), _head(answer))


async def _lines(reply: Any) -> AsyncIterator[str]:
    """Not httpx's `aiter_lines`, which ends a line at U+2028 within a text, too."""
    rest = ""
    async for text in reply.aiter_text():
        *lines, rest = LINE_END.split(rest + text)
        for line in lines:
            yield line


def _head(answer: dict[str, Any]) -> dict[str, Any]:
    names = {"id": "id", "prompt_tokens": "prompt", "completion_tokens": "tokens"}
    return {names[key]: value for key, value in answer.get("meta_info", {}).items() if key in names}


def form(wire: Wire, request: Request) -> Iterator[str]:
    answers = [wire.json()]
    if request.stream:
        events = [event.data for event in wire.events()]
        answers = [event for event in events if event != DONE]
        if events[-1:] != [DONE] or events.count(DONE) > 1:
            yield f"{DONE} does not come once, at the end"
    yield from faults.sent_as(wire, "text/event-stream" if request.stream else "application/json")
    yield from _answers_form([answer for answer in answers if isinstance(answer, dict)])
    for answer in answers:
        yield from faults.lacks("an answer", answer, text=str, meta_info=dict)


def _answers_form(answers: list[dict[str, Any]]) -> Iterator[str]:
    infos = [answer["meta_info"] for answer in answers if isinstance(answer.get("meta_info"), dict)]
    yield from faults.differ("the stream", infos, "id", "prompt_tokens")
    for info in infos:
        yield from faults.lacks("meta_info", info, id=NAME, prompt_tokens=COUNT, completion_tokens=COUNT)
        yield from faults.lacks("meta_info", info, finish_reason=(dict, type(None)))
        if info.get("prompt_tokens") == 0:
            yield "meta_info has 0 as prompt_tokens"
    ends = [index for index, info in enumerate(infos) if info.get("finish_reason")]
    if ends != [len(infos) - 1]:
        yield f"of {len(infos)} answers these have a finish reason: {ends}"
    for end in ends:
        yield from faults.lacks("the finish reason", infos[end]["finish_reason"], type=NAME)
    said = ""
    for answer in answers:
        if not str(answer.get("text")).startswith(said):
            yield f"{faults.short(said)} was taken back"
        said = str(answer.get("text"))


def told(end: End) -> End:
    return end


GENERATE = Api("generate", read, form, told, "finish_reason has no matched", raw=True)
