"""A small server to copy, with exact stops: OpenAI's chat completions and Anthropic's messages, streamed and whole.

    pip install stopscan starlette uvicorn && uvicorn server:app --port 8000

Its model repeats the prompt: put yours into the first three functions. docs/server.md walks through this file.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from itertools import groupby
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from stopscan.finish import Finish, to_anthropic, to_openai
from stopscan.segments import SegmentSet, asplit

Json = dict[str, Any]
# The markers of the model's reasoning; `stopscan.segments.FORMATS` has those of today's models.
MARKERS = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
OPENAI = {"answer": "content", "reasoning": "reasoning_content"}
ANTHROPIC = {"answer": "text", "reasoning": "thinking"}
# The fields that both APIs take, and the types of their values. Any other field is refused: add those of your model.
FIELDS = {"model": (str,), "messages": (list,), "max_tokens": (int,), "stream": (bool,), "metadata": (dict,)}
FIELDS |= {"temperature": (int, float), "top_p": (int, float)}


async def model(prompt: str, body: Json) -> AsyncGenerator[str, None]:
    """Yields the text of each token. Your model goes here. `body` is the request, with all of its options."""
    for word in re.findall(r"\s*\S+", f"<think>They say: {prompt}</think>You say: {prompt}"):
        await asyncio.sleep(0.02)
        yield word


def prompt_of(body: Json) -> str:
    """Returns the prompt for the model. Your chat template goes here. It also needs Anthropic's `system`, and tools."""
    content = body["messages"][-1]["content"] or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def count_tokens(prompt: str) -> int:
    """Returns how many tokens a prompt has. Your tokenizer goes here."""
    return len(prompt.split())


class Answer:
    """One generation. `read` it to the end; then `finish` says why it ended."""

    def __init__(self, request: Request, body: Json, prompt: str, stops: SegmentSet, max_tokens: int) -> None:
        self.id, self.created, self.model = uuid4().hex, int(time.time()), body.get("model") or "echo"
        self.tokens, self.prompt_tokens, self._max_tokens = 0, count_tokens(prompt), max_tokens
        self.segments = asplit(self._limited(request, model(prompt, body)), stops)  # a stop closes the model

    @property
    def finish(self) -> Finish:
        return Finish.of(self.segments.match, "length" if self.tokens == self._max_tokens else "eos")

    async def read(self) -> AsyncIterator[tuple[str, str]]:
        """Yields pairs: a region, and a piece of its text. If the model fails, yields the held text first."""
        try:
            async for region, text, _ in self.segments:
                yield region, text
        except Exception:
            if self.segments.held:
                yield self.segments.region, self.segments.held
            raise

    async def _limited(self, request: Request, deltas: Any) -> AsyncIterator[str]:
        async with aclosing(deltas):
            async for delta in deltas:
                self.tokens += 1
                yield delta
                if self.tokens == self._max_tokens or await request.is_disconnected():
                    return


class Chat:
    """OpenAI's chat completions."""

    stop, limits, default_limit = "stop", ("max_completion_tokens", "max_tokens"), 4096
    fields = FIELDS | {"stop": (str, list), "stream_options": (dict,), "max_completion_tokens": (int,)}
    fields |= {"n": (int,), "seed": (int,), "user": (str,)}

    def error(self, status: int, message: str, field: str | None = None) -> Json:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": field, "code": None}}

    async def whole(self, answer: Answer) -> Json:
        message = {"role": "assistant", "content": ""}
        async for region, text in answer.read():
            message[OPENAI[region]] = message.get(OPENAI[region], "") + text
        choice = {"index": 0, "message": message, "logprobs": None, **to_openai(answer.finish)}
        return {**self._head(answer, "chat.completion"), "choices": [choice], "usage": self._usage(answer)}

    async def events(self, answer: Answer, usage: bool) -> AsyncIterator[str]:
        yield self._chunk(answer, {"role": "assistant", "content": ""})
        async for region, text in answer.read():
            yield self._chunk(answer, {OPENAI[region]: text})
        yield self._chunk(answer, {}, to_openai(answer.finish))
        if usage:
            yield sse({**self._head(answer, "chat.completion.chunk"), "choices": [], "usage": self._usage(answer)})
        yield "data: [DONE]\n\n"

    def _chunk(self, answer: Answer, delta: Json, finish: Any = None) -> str:
        choice = {"index": 0, "delta": delta, **(finish or {"finish_reason": None})}
        return sse({**self._head(answer, "chat.completion.chunk"), "choices": [choice]})

    def _head(self, answer: Answer, kind: str) -> Json:
        return {"id": answer.id, "object": kind, "created": answer.created, "model": answer.model}

    def _usage(self, answer: Answer) -> Json:
        total = answer.prompt_tokens + answer.tokens
        return {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.tokens, "total_tokens": total}


class Messages:
    """Anthropic's messages."""

    stop, limits, default_limit = "stop_sequences", ("max_tokens",), None  # the API requires a limit
    fields = FIELDS | {"stop_sequences": (list,), "top_k": (int,)}

    def error(self, status: int, message: str, field: str | None = None) -> Json:
        kind = "api_error" if status >= 500 else "not_found_error" if status == 404 else "invalid_request_error"
        return {"type": "error", "error": {"type": kind, "message": message}}

    async def whole(self, answer: Answer) -> Json:
        segments = groupby([segment async for segment in answer.read()], key=lambda segment: segment[0])
        content = [self._block(region, "".join(text for _, text in group)) for region, group in segments]
        return self._message(answer, content, to_anthropic(answer.finish))

    async def events(self, answer: Answer, usage: bool) -> AsyncIterator[str]:
        yield sse({"type": "message_start", "message": self._message(answer, [])})
        index, last = -1, None
        async for region, text in answer.read():
            if region != last:
                if last is not None:
                    yield sse({"type": "content_block_stop", "index": index})
                index, last = index + 1, region
                yield sse({"type": "content_block_start", "index": index, "content_block": self._block(region, "")})
            delta = {"type": f"{ANTHROPIC[region]}_delta", ANTHROPIC[region]: text}
            yield sse({"type": "content_block_delta", "index": index, "delta": delta})
        if last is not None:
            yield sse({"type": "content_block_stop", "index": index})
        end = {"delta": to_anthropic(answer.finish), "usage": {"output_tokens": answer.tokens}}
        yield sse({"type": "message_delta", **end})
        yield sse({"type": "message_stop"})

    def _message(self, answer: Answer, content: list[Json], finish: Any = None) -> Json:
        head = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant", "model": answer.model}
        usage = {"input_tokens": answer.prompt_tokens, "output_tokens": answer.tokens}
        return {**head, "content": content, **(finish or {"stop_reason": None, "stop_sequence": None}), "usage": usage}

    def _block(self, region: str, text: str) -> Json:
        return {"type": ANTHROPIC[region], ANTHROPIC[region]: text, **({} if region == "answer" else {"signature": ""})}


def sse(data: Json) -> str:
    name = f"event: {data['type']}\n" if "type" in data else ""  # Anthropic's events have names
    return f"{name}data: {json.dumps(data)}\n\n"


PATHS: dict[str, Any] = {"/v1/chat/completions": Chat(), "/v1/messages": Messages()}


async def endpoint(request: Request) -> Response:
    api, field = PATHS[request.url.path], None
    try:  # read before the generation, so that a bad request is answered with a 400 that names the bad field
        body = {**json.loads(await request.body())}
        for field, value in body.items():
            if value is None:
                continue
            if field not in api.fields or (field == "n" and value != 1):
                raise ValueError("not supported")
            if type(value) not in api.fields[field]:
                raise TypeError(f"{value!r} is not of the type {' or '.join(t.__name__ for t in api.fields[field])}")
        usage = (body.get("stream_options") or {}).get("include_usage") is True
        field = "messages"
        if not body.get(field):
            raise ValueError("not a list of messages")
        prompt = prompt_of(body)
        limits = ((name, body[name]) for name in api.limits if body.get(name) is not None)
        field, limit = next(limits, (api.limits[0], api.default_limit))
        if limit is None or limit < 1:
            raise ValueError(f"{limit!r} is not a positive integer")
        field = api.stop
        stops = SegmentSet(MARKERS, stop=body.get(field), stop_in=["answer"])  # they fire only in the answer
        field = None
        json.dumps(body, ensure_ascii=False).encode()  # raises for half a surrogate pair, which no answer can contain
        answer = Answer(request, body, prompt, stops, limit)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        return JSONResponse(api.error(400, f"bad {field or 'request'}: {error}", field), 400)
    if body.get("stream"):
        return StreamingResponse(guarded(api, answer, api.events(answer, usage)), media_type="text/event-stream")
    return JSONResponse(await api.whole(answer))


async def guarded(api: Any, answer: Answer, events: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yields the events, and always closes the generator of the model's tokens. If the model fails, the last event is
    an error."""
    async with aclosing(answer.segments):
        try:
            async for event in events:
                yield event
        except Exception:
            logging.exception("the model failed")
            yield sse(api.error(500, "the model failed"))


def failed(request: Request, error: Exception) -> Response:
    status, detail = getattr(error, "status_code", 500), getattr(error, "detail", "the model failed")
    return JSONResponse(PATHS.get(request.url.path, Chat()).error(status, detail), status)


routes = [Route(path, endpoint, methods=["POST"]) for path in PATHS]
app = Starlette(routes=routes, exception_handlers={HTTPException: failed, Exception: failed})
