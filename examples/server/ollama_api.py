"""Ollama's chat and generate, with the extensions about stops among the options."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Annotated, Any, Literal

from body import Content, Function, Lenient, Stopping, Strict, Temperature, TopP, called, joined, tool
from parts import Call
from pydantic import Field
from reply import Ask, Reply

from stopscan.finish import to_ollama


class Options(Stopping):
    num_predict: Annotated[int, Field(ge=-2)] | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None


class Common(Strict):
    """What the two requests share."""

    model: str | None = None
    stream: bool | None = None
    options: Options = Options()
    format: Literal[""] | None = None
    think: Literal[True] | None = None
    keep_alive: Any = None  # the model is always there

    def asked(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> Ask:
        limit = self.options.num_predict
        return Ask(
            messages,
            limit if limit is not None and limit > 0 else None,  # -1: no limit, -2: as much as there is room for
            self.options.stopping(),
            stream=self.stream is not False,  # unlike everybody else
            tools=tools or None,
            temperature=self.options.temperature or 0.0,
            top_p=self.options.top_p or 0.0,
        )


class CalledFunction(Lenient):
    name: str
    arguments: dict[str, Any] = {}


class ToolCall(Lenient):
    function: CalledFunction


class Message(Lenient):
    role: Literal["system", "user", "assistant", "tool"]
    content: Content = []
    tool_calls: list[ToolCall] | None = None

    def given(self) -> dict[str, Any]:
        """The message as chat templates have it."""
        uses = [called(call.function.name, call.function.arguments, "") for call in self.tool_calls or ()]
        return {"role": self.role, "content": joined(self.content), **({"tool_calls": uses} if uses else {})}


class Tool(Lenient):
    type: Literal["function"] | None = None
    function: Function


class ChatBody(Common):
    messages: list[Message] = Field(min_length=1)
    tools: list[Tool] | None = None

    def ask(self) -> Ask:
        tools = [tool(one.function.name, one.function.description, one.function.parameters) for one in self.tools or ()]
        return self.asked([message.given() for message in self.messages], tools)


class GenerateBody(Common):
    prompt: str
    system: str | None = None
    raw: Literal[False] | None = None
    suffix: Literal[""] | None = None

    def ask(self) -> Ask:
        system = [{"role": "system", "content": self.system}] if self.system else []
        return self.asked([*system, {"role": "user", "content": self.prompt}])


class _Ollama:
    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": message}

    def broken(self, reply: Reply, message: str) -> list[str]:
        return [_line({"error": message})]

    async def whole(self, reply: Reply) -> dict[str, Any]:
        answer, reasoning, calls = await reply.whole()
        return {**_head(reply), **self.content(answer, reasoning, calls), **_tail(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[str]:
        async for kind, text, call in reply:
            answer, reasoning = (text, "") if kind == "answer" else ("", text)
            content = self.content(answer, reasoning, [call] if call is not None else [])
            yield _line({**_head(reply), **content, "done": False})
        yield _line({**_head(reply), **self.content("", "", []), **_tail(reply)})

    def content(self, answer: str, reasoning: str, calls: list[Call]) -> dict[str, Any]:
        raise NotImplementedError


class Chat(_Ollama):
    path = "/api/chat"
    body = ChatBody

    def content(self, answer: str, reasoning: str, calls: list[Call]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer}
        if reasoning:
            message["thinking"] = reasoning
        if calls:
            message["tool_calls"] = [{"function": {"name": one.name, "arguments": one.arguments}} for one in calls]
        return {"message": message}


class Generate(_Ollama):
    path = "/api/generate"
    body = GenerateBody

    def content(self, answer: str, reasoning: str, calls: list[Call]) -> dict[str, Any]:
        # It has no place for calls.
        written = "".join(json.dumps({"name": one.name, "arguments": one.arguments}) for one in calls)
        return {"response": answer + written, **({"thinking": reasoning} if reasoning else {})}


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data) + "\n"


def _head(reply: Reply) -> dict[str, Any]:
    return {"model": reply.model, "created_at": datetime.now(timezone.utc).isoformat()}


def _tail(reply: Reply) -> dict[str, Any]:
    nanoseconds = int((time.time() - reply.created) * 1e9)
    counts = {"prompt_eval_count": reply.prompt_tokens, "eval_count": reply.tokens, "total_duration": nanoseconds}
    return {**to_ollama(reply.finish), **counts}
