"""Ollama's chat and generate APIs. The extensions about stops are in the field `options` of a request."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Annotated, Any, Literal

from api import Api
from engine import Engine
from fields import OLLAMA, OLLAMA_OPTIONS, Many, Message, Stopping, Streamed, Tool, given
from parts import Part, said
from pydantic import Field
from reply import Ask, Reply
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from stopscan.finish import to_ollama


class Options(Stopping):
    taken = OLLAMA_OPTIONS
    num_predict: Annotated[int, Field(ge=-2)] | None = None


class Common(Streamed):
    """The fields that chat and generate requests share."""

    taken = OLLAMA
    options: Options | None = None
    think: bool | Literal["low", "medium", "high"] | None = None

    def asked(self, prompt: Any, tools: Sequence[dict[str, Any]] = (), **options: Any) -> Ask | None:
        """Returns the `Ask`, or None for a request without a prompt, which only loads the model."""
        if not prompt:
            return None
        stopping = self.options or Options()
        limit = stopping.num_predict
        return Ask(
            prompt,
            limit if limit is not None and limit > 0 else None,  # -1 and -2 (fill the context) mean no limit
            stopping,
            stream=self.stream is not False,  # a stream is the default, unlike in the other APIs
            tools=tools,
            think=None if self.think is None else bool(self.think),
            **options,
        )


class ChatBody(Common):
    messages: Many[Message] = []
    tools: Many[Tool] | None = None

    def ask(self) -> Ask | None:
        tools = [one.function.given() for one in self.tools or ()]
        return self.asked(given(self.messages), tools)


class GenerateBody(Common):
    prompt: str = ""
    system: str | None = None
    raw: bool | None = None

    def ask(self) -> Ask | None:
        if self.raw:
            return self.asked(self.prompt, apart=False)
        system = [{"role": "system", "content": self.system}] if self.system else []
        return self.asked([*system, {"role": "user", "content": self.prompt}] if self.prompt else [])


class _Ollama(Api):
    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": message}

    def broken(self, reply: Reply, message: str) -> list[str]:
        return [_line({"error": message})]

    def streamed(self, events: AsyncIterator[str]) -> Response:
        return StreamingResponse(events, media_type="application/x-ndjson")

    def loaded(self, name: str) -> dict[str, Any]:
        """The answer to a request that only loads the model, which is always loaded here."""
        return {**_head(name), **self.content([]), "done": True, "done_reason": "load"}

    async def whole(self, reply: Reply) -> dict[str, Any]:
        return {**_head(reply.model), **self.content(await reply.whole()), **_tail(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[str]:
        async for part in reply:
            yield _line({**_head(reply.model), **self.content([part]), "done": False})
        yield _line({**_head(reply.model), **self.content([]), **_tail(reply)})

    def content(self, parts: list[Part]) -> dict[str, Any]:
        raise NotImplementedError


class Chat(_Ollama):
    path = "/api/chat"
    body = ChatBody

    def content(self, parts: list[Part]) -> dict[str, Any]:
        calls = [{"function": call} for call in _calls(parts)]
        message = {
            "role": "assistant",
            "content": said(parts),
            "thinking": said(parts, "reasoning"),
            "tool_calls": calls,
        }
        return {"message": {name: value for name, value in message.items() if value or name == "content"}}


class Generate(_Ollama):
    path = "/api/generate"
    body = GenerateBody

    def content(self, parts: list[Part]) -> dict[str, Any]:
        written = "".join(map(json.dumps, _calls(parts)))  # /api/generate has no field for calls
        thinking = said(parts, "reasoning")
        return {"response": said(parts) + written, **({"thinking": thinking} if thinking else {})}


def _calls(parts: list[Part]) -> list[dict[str, Any]]:
    return [{"name": part.call.name, "arguments": part.call.arguments} for part in parts if part.call]


def about(engine: Engine) -> list[Route]:
    """The routes that clients call before they ask for answers."""
    details = {"format": "safetensors", "family": "", "families": None, "parameter_size": "", "quantization_level": ""}
    about = {"modified_at": _now(), "size": 0, "digest": "", "details": details}

    async def models(request: Request) -> Response:
        engine.check()
        return JSONResponse({"models": [{"name": engine.name, "model": engine.name, **about}]})

    async def show(request: Request) -> Response:
        info = {"general.architecture": "mlx", "mlx.context_length": engine.context}
        return JSONResponse({"details": details, "model_info": info, "capabilities": ["completion", "tools"]})

    async def release(request: Request) -> Response:
        return JSONResponse({"version": version("stopscan")})

    return [
        Route("/api/tags", models),
        Route("/api/ps", models),
        Route("/api/show", show, methods=["POST"]),
        Route("/api/version", release),
    ]


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data) + "\n"


def _head(model: str) -> dict[str, Any]:
    return {"model": model, "created_at": _now()}


def _tail(reply: Reply) -> dict[str, Any]:
    nanoseconds = int((time.time() - reply.created) * 1e9)
    counts = {"prompt_eval_count": reply.prompt_tokens, "eval_count": reply.tokens, "total_duration": nanoseconds}
    return {**to_ollama(reply.finish), **counts}
