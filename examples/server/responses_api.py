"""OpenAI's Responses. The API has no stops of its own: all options about them are extensions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from api import event
from body import OPENAI, Content, Function, Lenient, Limit, Stopping, called, joined
from openai_api import OpenAI
from pydantic import BeforeValidator, Discriminator, Field, Tag
from reply import Ask, Reply
from responses_items import Item, items_of
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException

from stopscan.finish import to_responses


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
    """An earlier answer's, which no template wants to see again."""

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


class ResponsesBody(Stopping):
    taken = OPENAI
    model: str | None = None
    input: Annotated[list[Input], Field(min_length=1), BeforeValidator(inputs)]
    instructions: str | None = None
    max_output_tokens: Limit | None = None
    stream: bool | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["auto", "none"] | None = None

    def ask(self) -> Ask:
        system = [{"role": "system", "content": self.instructions}] if self.instructions else []
        given = [one.given() for one in self.input]
        messages = [*system, *(message for message in given if message is not None)]
        if len(messages) == len(system):
            raise HTTPException(400, "input: there is no message")
        tools = self.tools or [] if self.tool_choice != "none" else []
        return Ask(
            messages,
            self.max_output_tokens,
            self,
            stream=bool(self.stream),
            tools=[one.given() for one in tools] or None,
        )


class Responses(OpenAI):
    path = "/v1/responses"
    body = ResponsesBody

    def broken(self, reply: Reply, message: str) -> list[ServerSentEvent]:
        data: dict[str, Any] = {"type": "error", "code": "server_error", "message": message, "param": None}
        data["sequence_number"] = next(reply.events)
        return [event(data, "error")]

    async def whole(self, reply: Reply) -> dict[str, Any]:
        items = items_of(await reply.parts(), reply.id)
        status = to_responses(reply.finish)["status"]
        return _ended(reply, [item.whole(status) for item in items])

    async def events(self, reply: Reply) -> AsyncIterator[ServerSentEvent]:
        def tell(kind: str, **data: Any) -> ServerSentEvent:
            name = f"response.{kind}"
            return event({"type": name, "sequence_number": next(reply.events), **data}, name)

        yield tell("created", response=_response(reply, "in_progress"))
        yield tell("in_progress", response=_response(reply, "in_progress"))
        items: list[Item] = []
        done: list[dict[str, Any]] = []
        async for part in reply:
            if not items or not items[-1].takes(part):
                if items:
                    for name, data in items[-1].done("completed"):
                        yield tell(name, **data)
                    done.append(items[-1].whole("completed"))
                items.append(Item(part.kind, len(items), reply.id))
                for name, data in items[-1].begun(part):
                    yield tell(name, **data)
            name, data = items[-1].delta(part)
            yield tell(name, **data)
        ended = to_responses(reply.finish)
        if items:
            for name, data in items[-1].done(ended["status"]):
                yield tell(name, **data)
            done.append(items[-1].whole(ended["status"]))
        yield tell(ended["status"], response=_ended(reply, done))


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
        "tools": [{"type": "function", "strict": False, **one["function"]} for one in reply.ask.tools or ()],
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
