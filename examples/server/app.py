"""The routes, the limits, and the errors in the form of each API."""

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
from anyio import CapacityLimiter, to_thread
from engine import Engine, EngineError
from parts import Form
from pydantic import ValidationError
from reply import Ask, Reply
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MAX_BODY = 4_000_000  # bytes
SEND_SECONDS = 60.0  # how long a reader may take for one event


class Body(Protocol):
    model: str | None

    def ask(self) -> Ask: ...


class Api(Protocol):
    """How an API says it. `broken` is what a stream ends with if the engine fails."""

    path: str
    body: Any  # a pydantic model that is a `Body`

    def error(self, status: int, message: str) -> dict[str, Any]: ...
    def broken(self, reply: Reply, message: str) -> list[Any]: ...
    async def whole(self, reply: Reply) -> dict[str, Any]: ...
    def events(self, reply: Reply) -> AsyncIterator[Any]: ...


APIS: list[Api] = [
    openai_api.Chat(),
    openai_api.Completions(),
    responses_api.Responses(),
    anthropic_api.Messages(),
    ollama_api.Chat(),
    ollama_api.Generate(),
    sglang_api.Generate(),
]
BY_PATH = {api.path: api for api in APIS}


def make_app(engine: Engine, form: str = "hermes") -> Starlette:
    """The server of a model that answers in `form`, one of `stopscan.segments.FORMATS`."""
    known = Form(form)
    preparing = CapacityLimiter(1)  # a tokenizer is for one thread

    def route(api: Api) -> Route:
        async def endpoint(request: Request) -> Response:
            body = api.body.model_validate_json(await _body(request))
            if body.model not in (None, engine.name, f"{engine.name}:latest"):
                raise HTTPException(404, f"there is no model {body.model!r}, only {engine.name!r}")
            ask = body.ask()
            reply = await to_thread.run_sync(ask.start, engine, known, limiter=preparing)
            if not ask.stream:
                return JSONResponse(await _unless_gone(request, api.whole(reply)))
            if api.path.startswith("/api/"):
                return StreamingResponse(_events(api, reply), media_type="application/x-ndjson")
            return EventSourceResponse(_events(api, reply), send_timeout=SEND_SECONDS)

        return Route(api.path, endpoint, methods=["POST"])

    async def models(request: Request) -> Response:
        _check(engine)
        return JSONResponse({"object": "list", "data": [{"id": engine.name, "object": "model"}]})

    async def tags(request: Request) -> Response:
        _check(engine)
        return JSONResponse({"models": [{"model": engine.name, "name": engine.name}]})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await to_thread.run_sync(engine.close)

    return Starlette(
        routes=[Route("/v1/models", models), Route("/api/tags", tags), *map(route, APIS)],
        lifespan=lifespan,
        exception_handlers={
            HTTPException: lambda request, error: _told(request, error.status_code, error.detail),
            ValidationError: lambda request, error: _told(request, 400, _first(error)),
            EngineError: lambda request, error: _told(request, 500, str(error)),
            Exception: lambda request, error: _told(request, 500, "the server has a defect"),
        },
    )


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(413, f"the body is longer than {MAX_BODY} bytes")
    return bytes(body)


async def _events(api: Api, reply: Reply) -> AsyncIterator[Any]:
    try:
        async for event in api.events(reply):
            yield event
    except EngineError as error:
        for event in api.broken(reply, str(error)):
            yield event


def _told(request: Request, status: int, message: str) -> JSONResponse:
    return JSONResponse(BY_PATH.get(request.url.path, APIS[0]).error(status, message), status)


def _first(error: ValidationError) -> str:
    """What is wrong, and where, in the words of a request."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def _check(engine: Engine) -> None:
    if engine.failure is not None:
        raise HTTPException(503, str(engine.failure))


async def _unless_gone(request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
    """The answer; if the client goes away first, None, and the answer is cancelled."""
    answering, leaving = asyncio.create_task(answer), asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
