"""OpenAI's chat and text completions, with extensions that sglang also has: `stop_token_ids`, `matched_stop`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from api import Api, event
from engine import Engine
from fields import OPENAI, Lenient, Limit, Many, Message, Stopping, Streamed, Tool, given
from parts import Call, Part, said
from pydantic import Discriminator, Field, Tag
from reply import Ask, Reply
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from stopscan.finish import to_openai


class StreamOptions(Lenient):
    include_usage: bool | None = None


class Common(Streamed, Stopping):
    """The fields that requests for chat and text completions share."""

    taken = OPENAI
    max_tokens: Limit | None = None
    stream_options: StreamOptions | None = None

    def asked(self, prompt: Any, max_tokens: int | None, **options: Any) -> Ask:
        usage = bool(self.stream_options and self.stream_options.include_usage)
        return Ask(prompt, max_tokens, self, stream=bool(self.stream), usage=usage, **options)


class ChatBody(Common):
    messages: Many[Message] = Field(min_length=1)
    max_completion_tokens: Limit | None = None
    tools: Many[Tool] | None = None
    tool_choice: Literal["auto", "none"] | None = None

    def ask(self) -> Ask:
        tools = [one.function.given() for one in self.tools or ()] if self.tool_choice != "none" else []
        return self.asked(given(self.messages), self.max_completion_tokens or self.max_tokens, tools=tools)


def form(prompt: Any) -> str:
    """Returns the form of a prompt: "text", "texts", "ids" or "lists" (of ids). Reads only the first item of a list."""
    if not isinstance(prompt, list):
        return "text"
    if prompt and isinstance(prompt[0], list):
        return "lists"
    return "ids" if prompt and not isinstance(prompt[0], str) else "texts"


class CompletionBody(Common):
    prompt: Annotated[
        Annotated[str, Tag("text")]
        | Annotated[Many[str], Tag("texts")]
        | Annotated[Many[int], Tag("ids")]
        | Annotated[Many[Many[int]], Tag("lists")],
        Discriminator(form),
    ]

    def ask(self) -> Ask:
        prompt: Any = self.prompt
        if form(prompt) in ("texts", "lists"):
            if len(prompt) > 1:
                raise HTTPException(400, f"prompt: {len(prompt)} prompts, but only one is supported")
            prompt = prompt[0] if prompt else ""
        return self.asked(prompt, self.max_tokens, apart=False)


class OpenAI(Api):
    def error(self, status: int, message: str) -> dict[str, Any]:
        code = "model_not_found" if "there is no model" in message else None
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class _Choices(OpenAI):
    """The common code of chat and completions: an answer with one choice, whole or in chunks."""

    kinds: tuple[str, str]  # the field `object` of a whole answer, and of a chunk
    last: dict[str, Any]  # the content of the chunk with the finish reason

    def content(self, parts: list[Part]) -> dict[str, Any]:
        raise NotImplementedError

    def deltas(self, reply: Reply) -> AsyncIterator[dict[str, Any]]:
        raise NotImplementedError

    async def whole(self, reply: Reply) -> dict[str, Any]:
        choice = {"index": 0, **self.content(await reply.whole()), "logprobs": None, **to_openai(reply.finish)}
        return {**_head(reply, self.kinds[0]), "choices": [choice], "usage": _usage(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[ServerSentEvent]:
        head = _head(reply, self.kinds[1])

        def chunk(content: dict[str, Any], **finish: Any) -> ServerSentEvent:
            choice = {"index": 0, **content, "logprobs": None, "finish_reason": None, **finish}
            return event({**head, "choices": [choice]})

        async for delta in self.deltas(reply):
            yield chunk(delta)
        yield chunk(self.last, **to_openai(reply.finish))
        if reply.ask.usage:
            yield event({**head, "choices": [], "usage": _usage(reply)})
        yield ServerSentEvent("[DONE]")


class Chat(_Choices):
    path, body = "/v1/chat/completions", ChatBody
    kinds, last = ("chat.completion", "chat.completion.chunk"), {"delta": {}}

    def content(self, parts: list[Part]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said(parts)}
        if reasoning := said(parts, "reasoning"):
            message["reasoning_content"] = reasoning
        if calls := [_call(part.call, part.text) for part in parts if part.call]:
            message["tool_calls"] = calls
        return {"message": message}

    async def deltas(self, reply: Reply) -> AsyncIterator[dict[str, Any]]:
        yield {"delta": {"role": "assistant", "content": ""}}
        calls = 0
        async for kind, text, call in reply:
            if call is None:
                yield {"delta": {"content" if kind == "answer" else "reasoning_content": text}}
            else:
                yield {"delta": {"tool_calls": [{"index": calls, **_call(call, text)}]}}
                calls += 1


class Completions(_Choices):
    path, body = "/v1/completions", CompletionBody
    kinds, last = ("text_completion", "text_completion"), {"text": ""}

    def content(self, parts: list[Part]) -> dict[str, Any]:
        return {"text": said(parts)}

    async def deltas(self, reply: Reply) -> AsyncIterator[dict[str, Any]]:
        async for _, text, _ in reply:
            yield {"text": text}


def about(engine: Engine) -> list[Route]:
    """The routes that clients call before they ask for answers."""
    model = {"id": engine.name, "object": "model", "created": 0, "owned_by": "stopscan"}

    async def models(request: Request) -> Response:
        engine.check()
        name = request.path_params.get("name")
        if name not in (None, engine.name):
            raise HTTPException(404, f"there is no model {name!r}, only {engine.name!r}")
        return JSONResponse({"object": "list", "data": [model]} if name is None else model)

    return [Route("/v1/models", models), Route("/v1/models/{name:path}", models)]


def _call(call: Call, arguments: str) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": reply.id, "object": kind, "created": int(reply.created), "model": reply.model}


def _usage(reply: Reply) -> dict[str, Any]:
    usage: dict[str, Any] = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.tokens}
    usage["total_tokens"] = reply.prompt_tokens + reply.tokens
    if reply.ask.apart:
        usage["completion_tokens_details"] = {"reasoning_tokens": reply.reasoning_tokens}
    return usage
