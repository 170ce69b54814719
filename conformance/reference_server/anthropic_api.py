"""Anthropic's Messages API. Its own option about stops is `stop_sequences`; all others are extensions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from api import Api, event
from fields import ANTHROPIC, Content, Lenient, Limit, Many, Stopping, Streamed, Strings, called, joined, parts, tool
from parts import Part
from pydantic import BeforeValidator, Field
from reply import Ask, Reply
from sse_starlette import ServerSentEvent

from stopscan.finish import to_anthropic

UNENDED = {"stop_reason": None, "stop_sequence": None}
DELTAS = {
    "answer": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool_call": ("input_json_delta", "partial_json"),
}
KINDS = {404: "not_found_error", 503: "overloaded_error"}


class TextBlock(Lenient):
    type: Literal["text"]
    text: str


class ThinkingBlock(Lenient):
    type: Literal["thinking", "redacted_thinking"]


class ToolUse(Lenient):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


class ToolResult(Lenient):
    type: Literal["tool_result"]
    tool_use_id: str
    content: Content = []


Block = Annotated[TextBlock | ThinkingBlock | ToolUse | ToolResult, Field(discriminator="type")]


class Message(Lenient):
    role: Literal["user", "assistant"]
    content: Annotated[Many[Block], BeforeValidator(parts)]

    def given(self) -> list[dict[str, Any]]:
        """The messages for a chat template: one for each tool's result, then one with the text and the tool calls."""
        results = [block for block in self.content if isinstance(block, ToolResult)]
        messages: list[dict[str, Any]] = [
            {"role": "tool", "tool_call_id": one.tool_use_id, "content": joined(one.content)} for one in results
        ]
        text = "".join(block.text for block in self.content if isinstance(block, TextBlock))
        uses = [called(one.name, one.input, one.id) for one in self.content if isinstance(one, ToolUse)]
        if text or uses or not results:
            messages.append({"role": self.role, "content": text, **({"tool_calls": uses} if uses else {})})
        return messages


class Tool(Lenient):
    type: Literal["custom"] | None = None
    name: str
    description: str | None = None
    input_schema: dict[str, Any]


class Choice(Lenient):
    type: Literal["auto", "none"]


class Thinking(Lenient):
    type: Literal["enabled", "disabled", "adaptive"]


class MessagesBody(Streamed, Stopping):
    taken = ANTHROPIC
    messages: Many[Message] = Field(min_length=1)
    max_tokens: Limit
    system: Content = []
    stop_sequences: Strings = []
    thinking: Thinking | None = None
    tools: Many[Tool] | None = None
    tool_choice: Choice | None = None

    def ask(self) -> Ask:
        system = [{"role": "system", "content": joined(self.system)}] if self.system else []
        given = [] if self.tool_choice and self.tool_choice.type == "none" else self.tools or []
        return Ask(
            [*system, *(one for message in self.messages for one in message.given())],
            self.max_tokens,
            self.model_copy(update={"stop": [*self.stop_sequences, *self.stop]}),
            stream=bool(self.stream),
            tools=[tool(one.name, one.description, one.input_schema) for one in given],
            think={"enabled": True, "disabled": False}.get(self.thinking.type) if self.thinking else None,
        )


class Messages(Api):
    path = "/v1/messages"
    body = MessagesBody

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {
            "type": "error",
            "error": {
                "type": KINDS.get(status, "invalid_request_error" if status < 500 else "api_error"),
                "message": message,
            },
        }

    def broken(self, reply: Reply, message: str) -> list[ServerSentEvent]:
        return [event(self.error(500, message), "error")]

    async def whole(self, reply: Reply) -> dict[str, Any]:
        blocks = [_block(part, part.call and part.call.arguments) for part in await reply.whole()]
        return {**_message(reply), "content": blocks, **to_anthropic(reply.finish), "usage": _usage(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[ServerSentEvent]:
        yield _event("message_start", message={**_message(reply), "content": [], **UNENDED, "usage": _usage(reply)})
        async for step, index, part in reply.blocks():
            if step == "start":
                yield _event("content_block_start", index=index, content_block=_block(part, {}))
            elif step == "delta":
                name, key = DELTAS[part.kind]
                yield _event("content_block_delta", index=index, delta={"type": name, key: part.text})
            else:
                yield _event("content_block_stop", index=index)
        yield _event("message_delta", delta=to_anthropic(reply.finish), usage=_usage(reply))
        yield _event("message_stop")


def _event(kind: str, **data: Any) -> ServerSentEvent:
    return event({"type": kind, **data}, kind)


def _block(part: Part, arguments: dict[str, Any] | None) -> dict[str, Any]:
    if part.call is not None:
        return {"type": "tool_use", "id": part.call.id, "name": part.call.name, "input": arguments}
    if part.kind == "answer":
        return {"type": "text", "text": part.text}
    return {"type": "thinking", "thinking": part.text, "signature": ""}


def _message(reply: Reply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _usage(reply: Reply) -> dict[str, Any]:
    details = {"thinking_tokens": reply.reasoning_tokens}
    return {"input_tokens": reply.prompt_tokens, "output_tokens": reply.tokens, "output_tokens_details": details}
