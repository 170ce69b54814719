"""OpenAI's chat and text completions, with the extensions of the engines: `stop_token_ids`, `matched_stop`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from body import (
    Content,
    Function,
    Lenient,
    Limit,
    Nothing,
    Stopping,
    Strict,
    Temperature,
    TopP,
    Zero,
    called,
    joined,
    tool,
)
from parts import Call
from pydantic import Field
from reply import Ask, Reply
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException

from stopscan.finish import to_openai


class StreamOptions(Lenient):
    include_usage: bool | None = None


class Common(Stopping):
    """What the two requests share."""

    model: str | None = None
    max_tokens: Limit | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    n: Literal[1] | None = None
    presence_penalty: Zero = None
    frequency_penalty: Zero = None
    # These change nothing of the answer.
    user: Any = None
    metadata: Any = None

    def asked(self, prompt: Any, max_tokens: int | None, **options: Any) -> Ask:
        return Ask(
            prompt,
            max_tokens,
            self.stopping(),
            stream=bool(self.stream),
            temperature=self.temperature or 0.0,
            top_p=self.top_p or 0.0,
            usage=bool(self.stream_options and self.stream_options.include_usage),
            **options,
        )


class CalledFunction(Lenient):
    name: str
    arguments: str = "{}"


class ToolCall(Lenient):
    id: str = ""
    function: CalledFunction


class Message(Lenient):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = []
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    def given(self) -> dict[str, Any]:
        """The message as chat templates have it."""
        message: dict[str, Any] = {"role": self.role, "content": joined(self.content)}
        if self.tool_calls:
            message["tool_calls"] = [
                called(call.function.name, arguments(call.function.arguments), call.id) for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        return message


class Tool(Lenient):
    type: Literal["function"]
    function: Function

    def given(self) -> dict[str, Any]:
        return tool(self.function.name, self.function.description, self.function.parameters)


class TextFormat(Strict):
    type: Literal["text"]


class ChatBody(Common):
    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: Limit | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    parallel_tool_calls: Literal[True] | None = None
    logprobs: Nothing = None
    top_logprobs: Nothing = None
    response_format: TextFormat | None = None

    def ask(self) -> Ask:
        tools = [one.given() for one in self.tools or ()] if self.tool_choice != "none" else []
        messages = [message.given() for message in self.messages]
        return self.asked(messages, self.max_completion_tokens or self.max_tokens, tools=tools or None)


class CompletionBody(Common):
    prompt: str | list[str] | list[int] | list[list[int]]
    best_of: Literal[1] | None = None
    echo: Nothing = None
    logprobs: Nothing = None
    suffix: Nothing = None

    def ask(self) -> Ask:
        prompt: Any = self.prompt
        if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
            if len(prompt) > 1:
                raise HTTPException(400, f"prompt: {len(prompt)} prompts are more than one")
            prompt = prompt[0]
        return self.asked(prompt, self.max_tokens, apart=False)


class _OpenAI:
    def error(self, status: int, message: str) -> dict[str, Any]:
        return error(status, message)

    def broken(self, reply: Reply, message: str) -> list[ServerSentEvent]:
        return [event(error(500, message))]


class Chat(_OpenAI):
    path = "/v1/chat/completions"
    body = ChatBody

    async def whole(self, reply: Reply) -> dict[str, Any]:
        answer, reasoning, calls = await reply.whole()
        message: dict[str, Any] = {"role": "assistant", "content": answer}
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = [_call(call) for call in calls]
        choice = {"index": 0, "message": message, "logprobs": None, **to_openai(reply.finish)}
        return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[ServerSentEvent]:
        head = _head(reply, "chat.completion.chunk")

        def chunk(delta: dict[str, Any], **finish: Any) -> ServerSentEvent:
            choice = {"index": 0, "delta": delta, "finish_reason": None, **finish}
            return event({**head, "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        calls = 0
        async for kind, text, call in reply:
            if call is not None:
                yield chunk({"tool_calls": [{"index": calls, **_call(call)}]})
                calls += 1
            else:
                yield chunk({"content" if kind == "answer" else "reasoning_content": text})
        yield chunk({}, **to_openai(reply.finish))
        for last in _last(reply, head):
            yield last


class Completions(_OpenAI):
    path = "/v1/completions"
    body = CompletionBody

    async def whole(self, reply: Reply) -> dict[str, Any]:
        choice = {"index": 0, "text": (await reply.whole()).answer, "logprobs": None, **to_openai(reply.finish)}
        return {**_head(reply, "text_completion"), "choices": [choice], "usage": _usage(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[ServerSentEvent]:
        head = _head(reply, "text_completion")

        def chunk(text: str, **finish: Any) -> ServerSentEvent:
            choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": None, **finish}
            return event({**head, "choices": [choice]})

        async for _, text, _ in reply:
            yield chunk(text)
        yield chunk("", **to_openai(reply.finish))
        for last in _last(reply, head):
            yield last


def error(status: int, message: str) -> dict[str, Any]:
    """The form of an error in all of OpenAI's APIs."""
    code = "model_not_found" if status == 404 else None
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def event(data: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data))


def arguments(text: str) -> Any:
    """The arguments of a call that a client sends back: an object, or what the model wrote instead."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _last(reply: Reply, head: dict[str, Any]) -> list[ServerSentEvent]:
    usage = [event({**head, "choices": [], "usage": _usage(reply)})] if reply.ask.usage else []
    return [*usage, ServerSentEvent("[DONE]")]


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
    return {"id": call.id, "type": "function", "function": function}


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": reply.id, "object": kind, "created": int(reply.created), "model": reply.model}


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.tokens,
        "total_tokens": reply.prompt_tokens + reply.tokens,
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
    }
