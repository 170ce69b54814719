from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import anyio
import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from stopscan import StopSet
from stopscan_clients import AsyncStopTransport
from stopscan_clients.native import Name
from stopscan_clients.request import SIGNED, error_body, route_of

log = logging.getLogger("stopscan_clients.proxy")

# RFC 9110, 7.6.1; what is said of a connection is not said of the next one.
HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade expect host content-length".split()
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the proxy: seconds to connect, seconds for which the upstream may be silent, bytes of a request's
    body, and stops of a request.
    """

    connect: float = 10
    read: float = 600
    body: int = 1 << 26
    stops: int = 64


def proxy(
    upstream: str,
    stop: StopSet | str | Iterable[str] | None = (),
    /,
    *,
    api: Name | None = None,
    include_stop: bool = False,
    drain: bool = False,
    strict: bool = True,
    limits: Limits | None = None,
) -> Starlette:
    """Returns an ASGI application that passes each request on to the URL ``upstream``, and ends each answer at a stop.

    The options are those of ``StopTransport``. ``api="none"`` sends no stops to the server, for a server that gets
    stops wrong. The proxy answers ``GET /health`` itself. All other paths are passed on.

    >>> app = proxy("http://127.0.0.1:8000", ["Observation:"])
    """
    url = httpx.URL(upstream)
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"the upstream must be an http or https URL, not {upstream!r}")
    connections = _Connections()
    transport = AsyncStopTransport(
        stop, transport=connections, api=api, include_stop=include_stop, drain=drain, strict=strict
    )
    limits = limits or Limits()
    transport.most = limits.stops

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with transport:
            yield

    routes = [Route("/health", _health), Mount("/", app=_Proxy(url, transport, connections, limits))]
    return Starlette(routes=routes, lifespan=lifespan)


async def _health(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


class _Connections(httpx.AsyncBaseTransport):
    """The connections to the upstream: a pool for each request that is under way.

    For each request httpcore's pool looks at all of its connections: in one pool, those of a thousand streams took
    longer than their events.
    """

    IDLE = 100  # pools that wait for the next request; those of a burst above that are closed

    def __init__(self) -> None:
        self._tls = httpx.create_ssl_context()
        self._idle: list[httpx.AsyncHTTPTransport] = []

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[httpx.AsyncHTTPTransport]:
        # Shorter than servers wait (uvicorn 5 seconds): one that closes a connection just now has lost the request.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=1, keepalive_expiry=2)
        pool = self._idle.pop() if self._idle else httpx.AsyncHTTPTransport(verify=self._tls, limits=limits)
        try:
            yield pool
        finally:
            if len(self._idle) < self.IDLE:
                self._idle.append(pool)
            else:
                with anyio.CancelScope(shield=True):
                    await pool.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await request.extensions["pool"].handle_async_request(request)
        return response

    async def aclose(self) -> None:
        while self._idle:
            await self._idle.pop().aclose()


class _Proxy:
    def __init__(
        self, url: httpx.URL, transport: AsyncStopTransport, connections: _Connections, limits: Limits
    ) -> None:
        self._url, self._transport, self._connections, self._limits = url, transport, connections, limits
        read = limits.read
        self._timeout = httpx.Timeout(read, connect=limits.connect, pool=None).as_dict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # before it is accepted: a 403
            return
        exchange = _Exchange(scope, send)
        body = await self._body(Request(scope, receive))
        if body is None:
            return
        if len(body) > self._limits.body:
            await exchange.refuse(413, f"the request is longer than {self._limits.body:,} bytes")
            return
        # Whoever leaves takes the upstream's work along, also while a prompt is processed and nothing was sent yet.
        async with self._connections.one() as pool, anyio.create_task_group() as group:
            group.start_soon(exchange.until_gone, receive, group.cancel_scope.cancel)
            await exchange.run(self._request(scope, body, pool), self._transport)
            group.cancel_scope.cancel()

    async def _body(self, request: Request) -> bytes | None:
        """The request's body, one piece more than is allowed at most; ``None`` if the client has left."""
        body = bytearray()
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > self._limits.body:
                    break
        except ClientDisconnect:
            return None
        return bytes(body)

    def _request(self, scope: Scope, body: bytes, pool: httpx.AsyncHTTPTransport) -> httpx.Request:
        path = self._url.raw_path.partition(b"?")[0].rstrip(b"/") + scope["raw_path"]
        query = scope["query_string"]
        target = path + b"?" * bool(query) + query
        try:
            url = self._url.copy_with(raw_path=target)
        except httpx.InvalidURL:  # longer than httpx takes, or with a character of no URL: no route with stops
            url = self._url
        # httpx writes paths in its own way. The target goes on as it came.
        extensions = {"timeout": self._timeout, "pool": pool, "target": target}
        headers = _end_to_end(scope["headers"])
        if any(name.decode("latin-1").lower() in SIGNED for name, _ in scope["headers"]):
            headers += [(name, value) for name, value in scope["headers"] if name == b"host"]  # is signed, too
        return httpx.Request(scope["method"], url, headers=headers, content=body, extensions=extensions)


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._route = route_of(scope["method"], scope["path"])
        self._path = scope["path"]
        self._failed: Callable[[dict[str, Any]], bytes] | None = None
        self._begun = False
        self._client_left = False

    async def run(self, request: httpx.Request, transport: AsyncStopTransport) -> None:
        try:
            response = await transport.handle_async_request(request)
            try:
                await self._pass(response)
            finally:
                with anyio.CancelScope(shield=True):
                    await response.stream.aclose()
        except httpx.TimeoutException:
            await self._fail(504, "the upstream server did not answer in time")
        except httpx.TransportError as error:
            await self._fail(502, f"the upstream server cannot be reached: {type(error).__name__}")
        except (TypeError, ValueError, httpx.RequestError) as error:
            await self._fail(502, str(error), read=True)
        except anyio.get_cancelled_exc_class():
            if not self._client_left:  # the proxy ends, and so has the time of grace
                with anyio.move_on_after(1, shield=True):
                    await self._fail(503, "the proxy is shutting down")
            raise

    async def until_gone(self, receive: Receive, leave: Callable[[], Any]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._client_left = True
        leave()

    async def _pass(self, response: httpx.Response) -> None:
        headers = [(name.lower(), value) for name, value in _end_to_end(response.headers.raw)]
        length = [pair for pair in response.headers.raw if pair[0].lower() == b"content-length"]
        self._failed = getattr(response.stream, "failed", None)
        pieces = aiter(cast("AsyncIterable[bytes]", response.stream))
        # What is wrong with a whole answer is known before its head goes out.
        first = [await anext(pieces, b"")] if getattr(response.stream, "whole", False) else []
        await self._send(
            {"type": "http.response.start", "status": response.status_code, "headers": [*headers, *length]}
        )
        self._begun = True
        for piece in first:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        async for piece in pieces:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def refuse(self, status: int, message: str, read: bool = False) -> None:
        body = json.dumps(error_body(self._form, message, status)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if read:
            headers.append((b"x-should-retry", b"false"))  # the official clients' own: the model would generate again
        if status == 413:
            headers.append((b"connection", b"close"))  # the rest of the body is not read
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    @property
    def _form(self) -> str:
        return self._route.errors if self._route is not None else "openai"

    async def _fail(self, status: int, message: str, read: bool = False) -> None:
        """An error in the API's form, of an answer that was ``read`` or of none. When the answer has begun, it is an
        event of a stream with stops. In any case the connection closes then."""
        log.warning("%s: %s", self._path, message)
        if not self._begun:
            await self.refuse(status, message, read)
        elif self._failed is not None:
            last = self._failed(error_body(self._form, message, status))
            await self._send({"type": "http.response.body", "body": last, "more_body": True})


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    headers = list(headers)
    named = {
        name.strip().lower() for key, value in headers if key.lower() == b"connection" for name in value.split(b",")
    }
    return [(key, value) for key, value in headers if key.lower() not in HOP and key.lower() not in named]
