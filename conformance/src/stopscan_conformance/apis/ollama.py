"""Ollama's chat and generate APIs. Requests have their stops in the field `options`. As an extension, this field can
also have `stop_token_ids`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stopscan_conformance.apis import api as form
from stopscan_conformance.apis.api import COUNT, NAME, Api, Data, End, Part, Request, inner, string, unnamed
from stopscan_conformance.wire import Event, Wire

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
WORDS = {"stop": "eos", "length": "length"}
COUNTS = ("prompt_eval_count", "eval_count")  # the API reference says that these fields may be missing


def chat_body(model: str, request: Request) -> Data:
    return {"model": model, "stream": request.stream, "messages": request.messages, **_options(request)}


def generate_body(model: str, request: Request) -> Data:
    return {"model": model, "stream": request.stream, "prompt": request.text, **_options(request)}


def _options(request: Request) -> Data:
    """Returns the options of a request. Most of them are in the field `options`. `format` and `think` are fields of the
    request."""
    options = {**request.limit("num_predict"), **request.named("stop")}
    return {name: options.pop(name) for name in ("format", "think") if name in options} | {"options": options}


def read(wire: Wire, request: Request) -> Iterator[Part]:
    for event in _lines(wire, request):
        line = event.data
        if inner(line, "error") is not None:
            raise RuntimeError(f"an error in the answer: {form.short(line['error'])}")
        text = string(inner(line, "response")) or string(inner(line, "message", "content"))
        thinking = string(inner(line, "thinking")) or string(inner(line, "message", "thinking"))
        head = {"model": inner(line, "model") or None}
        if inner(line, "done") is True:
            head |= {"prompt": line.get("prompt_eval_count"), "tokens": line.get("eval_count")}
        yield Part(text, thinking, _end(line), head, event.time)


def _end(line: Any) -> End | None:
    if inner(line, "done") is not True:
        return None
    word = line.get("done_reason")
    return (WORDS[word], None) if isinstance(word, str) and word in WORDS else ("unknown", word)


def chat_form(wire: Wire, request: Request) -> Iterator[str]:
    yield from _form(wire, request, message=dict)
    for line in _lines(wire, request):
        message = inner(line.data, "message")
        if isinstance(message, dict):
            yield from form.lacks("a message", message, role={"assistant"}, content=str)


def generate_form(wire: Wire, request: Request) -> Iterator[str]:
    yield from _form(wire, request, response=str)


def _form(wire: Wire, request: Request, **content: type) -> Iterator[str]:
    yield from form.sent_as(wire, "application/x-ndjson" if request.stream else "application/json")
    lines = [line.data for line in _lines(wire, request)]
    for line in lines:
        yield from form.lacks("a line", line, model=NAME, created_at=NAME, done=bool, **content)
        if isinstance(line, dict) and not TIME.match(str(line.get("created_at"))):
            yield f"a line has {form.short(line.get('created_at'))} as created_at"
    yield from form.differ("the stream", lines, "model")
    done = [index for index, line in enumerate(lines) if inner(line, "done") is True]
    if done != [len(lines) - 1]:
        yield f"of {len(lines)} lines these have `done: true`: {done}"
    else:
        counts = {name: COUNT for name in COUNTS if name in lines[-1]}
        yield from form.lacks("the last line", lines[-1], done_reason={*WORDS}, **counts)


def _lines(wire: Wire, request: Request) -> Iterator[Event]:
    return wire.lines() if request.stream else wire.whole()


REFERENCE = "https://github.com/ollama/ollama/blob/main/docs/api.md"
CHAT = Api(
    "ollama-chat", "/api/chat", f"{REFERENCE}#generate-a-chat-completion", chat_body, read, chat_form, unnamed,
    limit="num_predict", holder="options", lists_only=True,
)  # fmt: skip
GENERATE = Api(
    "ollama-generate", "/api/generate", f"{REFERENCE}#generate-a-completion", generate_body, read, generate_form,
    unnamed, limit="num_predict", content="prompt", holder="options", lists_only=True,
)  # fmt: skip
