"""The routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anthropic_api
import ollama_api
import openai_api
import responses_api
import sglang_api
from engine import Engine
from reply import Ask, Reply
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


class Api(Protocol):
    """How an API says it."""

    path: str
    media_type: str

    def read(self, body: dict[str, Any]) -> Ask: ...
    def error(self, status: int, message: str) -> dict[str, Any]: ...
    async def whole(self, reply: Reply) -> dict[str, Any]: ...
    def events(self, reply: Reply) -> AsyncIterator[str]: ...


APIS: list[Api] = [
    openai_api.Chat(),
    openai_api.Completions(),
    responses_api.Responses(),
    anthropic_api.Messages(),
    ollama_api.Chat(),
    ollama_api.Generate(),
    sglang_api.Generate(),
]


def make_app(engine: Engine) -> Starlette:
    def route(api: Api) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                body = await request.json()
                if not isinstance(body, dict):
                    raise ValueError("the body is no object")
                if body.get("model", engine.name) not in (engine.name, f"{engine.name}:latest"):
                    message = f"there is no model {body['model']!r}, only {engine.name!r}"
                    return JSONResponse(api.error(404, message), 404)
                reply = api.read(body).start(engine)
            except (ValueError, TypeError, AttributeError) as error:
                return JSONResponse(api.error(400, str(error)), 400)
            if reply.ask.stream:  # which Starlette cancels if the client goes away
                return StreamingResponse(api.events(reply), media_type=api.media_type)
            try:
                return JSONResponse(await _unless_gone(request, api.whole(reply)))
            except Exception as error:
                return JSONResponse(api.error(500, str(error)), 500)

        return Route(api.path, endpoint, methods=["POST"])

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": engine.name, "object": "model"}]})

    async def tags(request: Request) -> Response:
        return JSONResponse({"models": [{"model": engine.name, "name": engine.name}]})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        engine.close()

    routes = [Route("/v1/models", models), Route("/api/tags", tags), *map(route, APIS)]
    return Starlette(routes=routes, lifespan=lifespan)


async def _unless_gone(request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
    """The answer; if the client goes away first, None, and the answer is cancelled."""
    answering, leaving = asyncio.create_task(answer), asyncio.create_task(_gone(request))
    await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
    if answering.done():
        leaving.cancel()
        return answering.result()
    answering.cancel()
    return None


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
