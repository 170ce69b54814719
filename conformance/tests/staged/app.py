"""One ASGI application for all staged servers, each under its own name in the path."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from staged.forms import Chat, Completions, Form, Generate, Messages, OllamaChat, OllamaGenerate
from staged.generation import Generation, Scanner, right_decoder
from staged.request import Ask, Refusal, right_stops
from staged.responses import Responses

FORMS: dict[str, Form] = {form.path: form for form in (
    Chat(), Completions(), Responses(), Messages(), OllamaChat(), OllamaGenerate(), Generate(),
)}  # fmt: skip

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass
class Staged:
    """A test server. With the default values it is correct. Each field replaces a part of the server, and so can give
    it a defect."""

    name: str = "right"
    model: str = "reciter"
    told_model: str | None = None  # the model's name in answers, if it differs from `model`
    mark: bytes = b""  # bytes before a stream
    raw: Callable[[bytes], bytes] = lambda raw: raw  # changes the bytes of a request before they are parsed
    body: Callable[[Any], Any] = lambda body: body  # changes the body of a request before it is read
    stops: Callable[[Any], list[str]] = right_stops  # returns the stops for a request's value of `stop`
    ask: Callable[[Ask], Ask] = lambda ask: ask  # changes the request that was read
    status: int = 200
    dumps: Callable[[Any], str] = json.dumps
    encoded: Callable[[str], bytes] = str.encode
    unreadable: int = 400  # the status for a body that is not a JSON object
    scanner: Callable[[list[str]], Any] = Scanner
    decoder: Callable[[], Any] = right_decoder
    generation: type[Generation] = Generation
    chunks: Callable[[Generation], AsyncIterator[tuple[str, str]]] = lambda made: made.texts()
    told: Callable[[Generation], tuple[str, Any]] = lambda made: made.end
    counted: Callable[[Generation], int] = lambda made: made.tokens
    whole_answer: Callable[[Any], Any] = lambda data: data  # changes a whole answer before it is sent
    events: Callable[[AsyncIterator[Any]], AsyncIterator[Any]] = lambda events: events  # changes a stream's events
    frame: Callable[[str | None, str], str] | None = None  # how an event is written
    media: str | None = None
    key: str | None = None  # the API key that clients have to send
    on_leaving: str = "cancel"  # what happens to an answer whose client leaves: "cancel" or "go on"
    around: Callable[[Any], Any] = lambda app: app  # wraps the server, as an ASGI application
    memory: dict[str, Any] = field(default_factory=dict)  # kept for later requests; a right server keeps nothing

    async def answer(self, form: Form, body: Any, receive: Receive, send: Send, scope: Any) -> None:
        try:
            ask = form.read(self.body(body), self.stops)
            ask.client, ask.headers, ask.slower = scope["client"], dict(scope["headers"]), scope.get("slower", 1)
            ask = self.ask(ask)
            made = self.generation(self, ask)
        except (Refusal, KeyError, TypeError, IndexError) as refusal:
            await _send_json(send, getattr(refusal, "status", 400), form.error(str(refusal)))
            return
        work = asyncio.create_task(self._streamed(form, made, send) if ask.stream else self._whole(form, made, send))
        leaving = asyncio.create_task(_left(receive))
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not work.done() and self.on_leaving == "cancel":
            work.cancel()
        await asyncio.wait({work})

    async def _whole(self, form: Form, made: Generation, send: Send) -> None:
        data = self.whole_answer(await form.whole(made))
        media = "application/json" if self.media is None else self.media
        await _send(send, self.status, self.dumps(data).encode(), media)

    async def _streamed(self, form: Form, made: Generation, send: Send) -> None:
        await _begin(send, self.status, form.media if self.media is None else self.media)
        if self.mark:
            await send({"type": "http.response.body", "body": self.mark, "more_body": True})
        write = self.frame or (_line if form.media != "text/event-stream" else _event)
        async for data in self.events(form.events(made)):
            name = data.get("type") if form.named and isinstance(data, dict) else None
            text = data if isinstance(data, str) else self.dumps(data)
            await send({"type": "http.response.body", "body": self.encoded(write(name, text)), "more_body": True})
        await send({"type": "http.response.body"})


def _event(name: str | None, data: str) -> str:
    return f"{f'event: {name}' + chr(10) if name else ''}data: {data}\n\n"


def _line(name: str | None, data: str) -> str:
    return f"{data}\n"


async def _guarded(staged: Staged, form: Form, raw: bytes, scope: Any, receive: Receive, send: Send) -> None:
    sent = dict(scope["headers"])
    try:
        body = json.loads(staged.raw(raw))
        if not isinstance(body, dict):
            raise ValueError("no object")
    except ValueError:
        await _send_json(send, staged.unreadable, form.error("the body is not a JSON object"))
        return
    if staged.key and staged.key not in (sent.get(b"authorization", b"") + sent.get(b"x-api-key", b"")).decode():
        await _send_json(send, 401, form.error("the API key is wrong"))
    elif body.get("model", staged.model).partition(":")[0] != staged.model.partition(":")[0]:
        await _send_json(send, 404, form.error(f"there is no model {body['model']}"))
    else:
        await staged.answer(form, body, receive, send, scope)


async def _begin(send: Send, status: int, media: str) -> None:
    headers = [(b"content-type", media.encode())] if media else []
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _send_json(send: Send, status: int, data: Any, media: str = "application/json") -> None:
    await _send(send, status, json.dumps(data).encode(), media)


async def _send(send: Send, status: int, body: bytes, media: str) -> None:
    await _begin(send, status, media)
    await send({"type": "http.response.body", "body": body})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def application(every: Iterable[Staged]) -> Any:
    """Returns one ASGI application for all servers. The first part of a request's path is the name of the server. If
    `slower/8` comes next, the answer takes 8 times as long."""
    servers = {staged.name: staged for staged in every}

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await wrapped[scope["path"].split("/", 2)[1]](scope, receive, send)

    async def routed(scope: Any, receive: Receive, send: Send) -> None:
        _, name, path = scope["path"].split("/", 2)
        if path.startswith("slower/"):
            _, slower, path = path.split("/", 2)
            scope = {**scope, "slower": int(slower)}
        staged, form = servers[name], FORMS.get(f"/{path}")
        if path == "v1/models":
            await _send_json(send, 200, {"object": "list", "data": [{"id": staged.model, "object": "model"}]})
        elif form is None:
            await _send_json(send, 404, {"error": {"message": "no such route", "type": "invalid_request_error"}})
        else:
            body = b""
            while (message := await receive()).get("more_body") or message.get("body"):
                body += message["body"]
                if not message.get("more_body"):
                    break
            await _guarded(staged, form, body, scope, receive, send)

    wrapped = {name: staged.around(routed) for name, staged in servers.items()}
    return app
