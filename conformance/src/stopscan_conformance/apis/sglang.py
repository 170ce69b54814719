"""sglang's `/generate`: each object of a stream has the whole text so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stopscan_conformance.apis import api as form
from stopscan_conformance.apis.api import COUNT, NAME, NULL, Api, Data, End, Part, Request, inner, string
from stopscan_conformance.apis.openai import DONE, ENDS, end_of
from stopscan_conformance.wire import Wire


def body(model: str, request: Request) -> Data:
    sampling = {**request.limit("max_new_tokens"), **request.named("stop")}
    return {"text": request.text, "stream": request.stream, "sampling_params": sampling}


def read(wire: Wire, request: Request) -> Iterator[Part]:
    before = ""
    for event in wire.events() if request.stream else wire.whole():
        answer = event.data
        if inner(answer, "error") is not None:
            raise RuntimeError(f"an error in the answer: {form.short(answer['error'])}")
        if isinstance(answer, dict):
            text, before = string(answer.get("text"))[len(before) :], string(answer.get("text"))
            info = answer.get("meta_info")
            head = {"id": inner(info, "id"), "prompt": inner(info, "prompt_tokens")}
            yield Part(text, "", _end(info), {**head, "tokens": inner(info, "completion_tokens")}, event.time)


def _end(info: Any) -> End | None:
    reason = inner(info, "finish_reason")
    return None if reason is None else end_of(inner(reason, "type"), inner(reason, "matched"))


def answer_form(wire: Wire, request: Request) -> Iterator[str]:
    answers = [wire.json()]
    if request.stream:
        events = [event.data for event in wire.events()]
        answers = [event for event in events if event != DONE]
        if events[-1:] != [DONE] or events.count(DONE) > 1:
            yield f"{DONE} does not come once, at the end"
    yield from form.sent_as(wire, "text/event-stream" if request.stream else "application/json")
    yield from _answers_form([answer for answer in answers if isinstance(answer, dict)])
    for answer in answers:
        yield from form.lacks("an answer", answer, text=str, meta_info=dict)


def _answers_form(answers: list[Data]) -> Iterator[str]:
    infos = form.objects([answer.get("meta_info") for answer in answers])
    yield from form.differ("the stream", infos, "id", "prompt_tokens")
    for info in infos:
        yield from form.lacks("meta_info", info, id=NAME, prompt_tokens=COUNT, completion_tokens=COUNT)
        yield from form.lacks("meta_info", info, finish_reason=(dict, NULL))
    ends = [index for index, info in enumerate(infos) if info.get("finish_reason")]
    if ends != [len(infos) - 1]:
        yield f"of {len(infos)} answers these have a finish reason: {ends}"
    for end in ends:
        yield from form.lacks("the finish reason", infos[end]["finish_reason"], type={*ENDS, "abort"})
    before = ""
    for answer in answers:
        if not str(answer.get("text")).startswith(before):
            yield f"the text {form.short(before)} is missing in the next event"
        before = str(answer.get("text"))


GENERATE = Api(
    "generate", "/generate", "https://docs.sglang.ai/basic_usage/native_api.html", body, read, answer_form,
    names="documented", limit="max_new_tokens", content="text", holder="sampling_params", raw=True, extra=True,
)  # fmt: skip
