"""Makes the web server: the routes of all APIs, and errors in the form of each API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anthropic_api
import ollama_api
import openai_api
import responses_api
import sglang_api
from anyio import to_thread
from api import Api
from engine import Engine, EngineError
from prompts import Prompts
from pydantic import ValidationError
from reply import Ask, Model, Reply
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from stopscan.engines import Checkpoint, Defaults
from stopscan.segments import FORMATS

LONGEST = 1_000  # the most characters of an error message, which may quote the request

APIS: list[Api] = [
    openai_api.Chat(),
    openai_api.Completions(),
    responses_api.Responses(),
    anthropic_api.Messages(),
    ollama_api.Chat(),
    ollama_api.Generate(),
    sglang_api.Generate(),
]
# The API in whose form an error is sent, by the beginning of the path.
FORMS = {"/v1/messages": APIS[3], "/api": APIS[4], "/generate": APIS[6], "": APIS[0]}


def make_app(engine: Engine, form: str = "hermes", defaults: Defaults = Defaults()) -> Starlette:  # noqa: B008
    """Returns the server of a model. `form`, a key of `FORMATS`, says how the model marks reasoning and calls."""
    checkpoint = Checkpoint(engine.tokenizer, graph=FORMATS[form])
    model = Model(engine, checkpoint, Prompts(engine.tokenizer), defaults)

    def route(api: Api) -> Route:
        def started(raw: bytes) -> Reply | None:
            try:
                body = api.body.model_validate_json(raw)
            except ValidationError as error:
                raise HTTPException(400, _first(error)) from None
            if body.model not in (None, engine.name, f"{engine.name}:latest"):
                raise HTTPException(404, f"there is no model {body.model!r}, only {engine.name!r}")
            ask: Ask | None = body.ask()
            return None if ask is None else ask.start(model)

        async def endpoint(request: Request) -> Response:
            raw = await request.body()
            engine.check()  # before the answer: a stream that has begun already has the status 200
            reply = await to_thread.run_sync(started, raw)
            if reply is None:
                return JSONResponse(api.loaded(engine.name))
            if not reply.ask.stream:
                return JSONResponse(await _unless_gone(request, api.whole(reply)))
            return api.streamed(_events(api, reply))

        return Route(api.path, endpoint, methods=["POST"])

    def told(request: Request, status: int, message: str) -> JSONResponse:
        return JSONResponse(_form(request.url.path).error(status, message[:LONGEST]), status)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok" if engine.failure is None else str(engine.failure)}, engine.status)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await to_thread.run_sync(engine.close)

    return Starlette(
        routes=[
            Route("/health", health),
            *openai_api.about(engine),
            *ollama_api.about(engine),
            *map(route, APIS),
        ],
        lifespan=lifespan,
        exception_handlers={
            HTTPException: lambda request, error: told(request, error.status_code, error.detail),
            EngineError: lambda request, error: told(request, max(engine.status, 500), str(error)),
            Exception: lambda request, error: told(request, 500, "internal error"),
        },
    )


def _form(path: str) -> Api:
    return next(api for begin, api in FORMS.items() if path == begin or path.startswith(f"{begin}/"))


async def _events(api: Api, reply: Reply) -> AsyncIterator[Any]:
    try:
        async for event in api.events(reply):
            yield event
    except EngineError as error:
        for event in api.broken(reply, str(error)):
            yield event


def _first(error: ValidationError) -> str:
    """Returns the path of the first wrong field in the request, and what is wrong with it."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


async def _unless_gone(request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
    """Returns the answer. If the client goes away first, cancels the answer and returns None."""
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
