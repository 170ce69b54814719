"""OpenAI's Responses. The API has no stops of its own: all options about them are extensions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from api import event
from fields import OPENAI, Content, Function, Lenient, Limit, Many, Stopping, Streamed, called, joined
from openai_api import OpenAI
from parts import Part
from pydantic import BeforeValidator, Discriminator, Field, Tag
from reply import Ask, Reply
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException

from stopscan.finish import to_responses

STATUS = {"start": "in_progress", "delta": "in_progress", "stop": "completed"}
# By kind of item: the name of the events that bring its text, and the further fields of these events.
DELTAS: dict[str, tuple[str, dict[str, Any]]] = {
    "answer": ("output_text", {"content_index": 0, "logprobs": []}),
    "reasoning": ("reasoning_text", {"content_index": 0}),
    "tool_call": ("function_call_arguments", {}),
}


class Message(Lenient):
    role: Literal["system", "developer", "user", "assistant"]
    content: Content

    def given(self) -> dict[str, Any]:
        return {"role": self.role, "content": joined(self.content)}


class FunctionCall(Lenient):
    call_id: str
    name: str
    arguments: str

    def given(self) -> dict[str, Any]:
        use = called(self.name, self.arguments, self.call_id)
        return {"role": "assistant", "content": "", "tool_calls": [use]}


class FunctionOutput(Lenient):
    call_id: str
    output: Content

    def given(self) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": self.call_id, "content": joined(self.output)}


class Reasoning(Lenient):
    """The reasoning of an earlier answer. It is left out of the prompt, because chat templates expect none."""

    def given(self) -> None:
        return None


def kind(item: Any) -> Any:
    return item.get("type", "message") if isinstance(item, dict) else None


Input = Annotated[
    Annotated[Message, Tag("message")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionOutput, Tag("function_call_output")]
    | Annotated[Reasoning, Tag("reasoning")],
    Discriminator(kind),
]


def inputs(value: Any) -> Any:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


class Tool(Function):
    type: Literal["function"]


class ResponsesBody(Streamed, Stopping):
    taken = OPENAI
    input: Annotated[Many[Input], Field(min_length=1), BeforeValidator(inputs)]
    instructions: str | None = None
    max_output_tokens: Limit | None = None
    tools: Many[Tool] | None = None
    tool_choice: Literal["auto", "none"] | None = None

    def ask(self) -> Ask:
        system = [{"role": "system", "content": self.instructions}] if self.instructions else []
        given = [one.given() for one in self.input]
        messages = [*system, *(message for message in given if message is not None)]
        if len(messages) == len(system):
            raise HTTPException(400, "input: it has no message other than reasoning")
        tools = [one.given() for one in self.tools or ()] if self.tool_choice != "none" else []
        return Ask(messages, self.max_output_tokens, self, stream=bool(self.stream), tools=tools)


class Responses(OpenAI):
    path = "/v1/responses"
    body = ResponsesBody

    def broken(self, reply: Reply, message: str) -> list[ServerSentEvent]:
        data: dict[str, Any] = {"type": "error", "code": "server_error", "message": message, "param": None}
        data["sequence_number"] = next(reply.events)
        return [event(data, "error")]

    async def whole(self, reply: Reply) -> dict[str, Any]:
        items = [_item(reply, index, part, "completed") for index, part in enumerate(await reply.whole())]
        if items:
            items[-1]["status"] = to_responses(reply.finish)["status"]
        return _ended(reply, items)

    async def events(self, reply: Reply) -> AsyncIterator[ServerSentEvent]:
        def tell(kind: str, **data: Any) -> ServerSentEvent:
            name = f"response.{kind}"
            return event({"type": name, "sequence_number": next(reply.events), **data}, name)

        yield tell("created", response=_response(reply, "in_progress"))
        yield tell("in_progress", response=_response(reply, "in_progress"))
        output = []
        async for step, index, part in reply.blocks():
            status = to_responses(reply.finish)["status"] if step == "end" else STATUS[step]
            item = _item(reply, index, part, status)
            content = item.get("content")  # a call has no content
            name, more = DELTAS[part.kind]
            place = {"item_id": item["id"], "output_index": index}
            if step == "start":
                yield tell("output_item.added", output_index=index, item={**item, "content": []} if content else item)
                if content:
                    yield tell("content_part.added", **place, content_index=0, part=content[0])
            elif step == "delta":
                yield tell(f"{name}.delta", **place, **more, delta=part.text)
            else:
                called = {"name": part.call.name, "arguments": part.text} if part.call else {"text": part.text}
                yield tell(f"{name}.done", **place, **more, **called)
                if content:
                    yield tell("content_part.done", **place, content_index=0, part=content[0])
                yield tell("output_item.done", output_index=index, item=item)
                output.append(item)
        yield tell(to_responses(reply.finish)["status"], response=_ended(reply, output))


def _item(reply: Reply, index: int, part: Part, status: str) -> dict[str, Any]:
    item: dict[str, Any] = {"id": f"item_{reply.id}_{index}", "status": status}
    if part.call is not None:
        return {
            **item,
            "type": "function_call",
            "call_id": part.call.id,
            "name": part.call.name,
            "arguments": part.text,
        }
    if part.kind == "reasoning":
        return {**item, "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": part.text}]}
    content = {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
    return {**item, "type": "message", "role": "assistant", "content": [content]}


def _response(reply: Reply, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": reply.created,
        "model": reply.model,
        "status": status,
        "incomplete_details": None,
        "error": None,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto" if reply.ask.tools else "none",
        "tools": [{"type": "function", "strict": False, **one["function"]} for one in reply.ask.tools],
        "usage": None,
    }


def _ended(reply: Reply, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.tokens,
        "output_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
        "total_tokens": reply.prompt_tokens + reply.tokens,
    }
    return {**_response(reply, ""), **to_responses(reply.finish), "output": output, "usage": usage}
