from __future__ import annotations

import contextlib
import logging
import re
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast
from urllib.parse import unquote_to_bytes

import anyio
import anyio.to_process
import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

import stopscan_clients.request
from stopscan import StopSet
from stopscan_clients import AsyncStopTransport
from stopscan_clients.body import Plan
from stopscan_clients.native import Name
from stopscan_clients.request import SIGNED, error_body, plan_of, route_of, values_in

log = logging.getLogger("stopscan_clients.proxy")
T = TypeVar("T")
SHUTDOWN = "the proxy is shutting down"

# RFC 9110, 7.6.1: headers about one connection, which are not passed on.
HOP = b"""connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding
    upgrade expect host""".split()
# RFC 9112, 3.2.2: a server must accept a request line with a whole URL instead of a path.
ABSOLUTE = re.compile(rb"\Ahttps?://[^/]*", re.IGNORECASE)
CLOSE = {"connection": "close"}  # closes the connection after an error that is sent before the whole request was read
# If the body of a request has at most this many bytes and values, and is not compressed, it is parsed in the process
# that serves the streams. This takes at most 0.04 seconds, even if the body has long numbers or many lists. All other
# bodies are parsed in another process.
SHORT, FEW_VALUES = 1 << 18, 20_000
# Why the upstream server cannot be reached. The keys are classes of exceptions. If httpx raises an error, its cause may
# be one of these exceptions.
UNREACHABLE = {
    socket.gaierror: "its name has no address",
    ConnectionRefusedError: "it refuses connections",
    ssl.SSLError: "TLS fails",
}


@dataclass(frozen=True)
class Limits(stopscan_clients.request.Limits):
    """The limits of the proxy. Those for the stops in a request are the same as in stopscan's adapters for engines.

    - ``connect``: seconds to connect to the upstream server.
    - ``read``: seconds for which the upstream server may be silent.
    - ``request``: seconds for a client to send the body of a request. The command ``stopscan-proxy`` also allows this
      time for the head of a request, for the client to read waiting data, and between two requests.
    - ``connections``: the most clients that may be connected. Only the command counts them.
    - ``body``: the most bytes of a request's body, also after decompression.
    - ``stops``, ``patterns`` and ``regions``: the most of each in a request.
    - ``bytes``: the most bytes of a request's stops and patterns together, and also the most bytes of its regions.
    """

    connect: float = 10.0
    read: float = 600.0
    request: float = 60.0
    connections: int = 4096


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

    The options are those of ``StopTransport``. With ``api="none"`` the server gets no stops: use it for a server that
    handles stops wrongly. The proxy itself answers ``GET /health``, and ``GET /ready`` after it has asked the upstream
    server. All other paths are passed on.

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
    transport.limits, transport.plan_of = limits, _plan_of

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with transport:
            yield

    app = Starlette(lifespan=lifespan)
    app.router.default = _Proxy(url, transport, connections, limits)  # there are no other routes
    return app


async def full(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application for connections beyond the limit ``Limits.connections``: answers each request with an
    error."""
    await _Exchange(scope, receive, send).send_error(HTTPException(503, "the proxy has too many connections", CLOSE))


async def _plan_of(method: str, path: str, headers: Any, content: bytes, *options: Any) -> Plan:
    """Reads a request. Parsing holds the GIL, so a long body is read in another process, and no stream waits for it."""
    if len(content) <= SHORT and values_in(content) <= FEW_VALUES and "content-encoding" not in headers:
        return plan_of(method, path, headers, content, *options)
    read = partial(plan_of, method, path, headers, content, *options)
    return await anyio.to_process.run_sync(read, cancellable=True)


class _Connections(httpx.AsyncBaseTransport):
    """The connections to the upstream server, with a pool for each running request.

    httpcore's pool looks at all of its connections for each request. With a single pool and a thousand streams, this
    search took longer than the work on the events.
    """

    IDLE = 100  # the most idle connection pools to keep for later requests

    def __init__(self) -> None:
        self._tls = httpx.create_ssl_context()
        self._idle: list[httpx.AsyncHTTPTransport] = []

    @contextlib.asynccontextmanager
    async def pool(self) -> AsyncIterator[httpx.AsyncHTTPTransport]:
        # If a server closes an idle connection while a request is on its way, the request is lost. So connections
        # expire before servers close them (uvicorn: after 5 seconds).
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=1, keepalive_expiry=2)
        pool = self._idle.pop() if self._idle else httpx.AsyncHTTPTransport(verify=self._tls, limits=limits)
        try:
            yield pool
        finally:
            self._idle.append(pool)
            if len(self._idle) > self.IDLE:
                with anyio.CancelScope(shield=True):
                    await self._idle.pop().aclose()

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
        self._timeout = httpx.Timeout(limits.read, connect=limits.connect, pool=None).as_dict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # a close before an accept is answered with a 403
            return
        exchange = _Exchange(scope, receive, send)
        body = await exchange.attempt(exchange.body(self._limits))
        if body is None:
            return
        is_get = scope["method"] in ("GET", "HEAD")
        if exchange.path == "/health" and is_get:
            await JSONResponse({"status": "ok"})(scope, receive, send)
            return
        # If the client leaves, the upstream request is cancelled, even before the first bytes of the answer.
        async with self._connections.pool() as pool, anyio.create_task_group() as group:
            group.start_soon(exchange.until_gone, group.cancel_scope.cancel)
            if exchange.path == "/ready" and is_get:
                await exchange.attempt(self._ready(exchange, pool))
            else:
                request = self._request(exchange.target, scope, body, pool)
                await exchange.attempt(exchange.forward(self._transport, request))
            group.cancel_scope.cancel()

    async def _ready(self, exchange: _Exchange, pool: httpx.AsyncHTTPTransport) -> None:
        """Answers ``GET /ready`` with a 200 if the upstream server can be reached. Raises ``HTTPException`` if that
        server answers with a 5xx, which means that it is overloaded or still loading."""
        path = self._url.raw_path.partition(b"?")[0].rstrip(b"/") + b"/health"
        timeout = httpx.Timeout(self._limits.connect, pool=None).as_dict()
        request = httpx.Request("GET", self._url.copy_with(raw_path=path), extensions={"timeout": timeout})
        response = await pool.handle_async_request(request)
        await response.aclose()
        if response.status_code >= 500:
            raise HTTPException(503, f"the upstream server answers with {response.status_code}")
        await exchange.answer(JSONResponse({"status": "ok"}))

    def _request(self, path: bytes, scope: Scope, body: bytes, pool: httpx.AsyncHTTPTransport) -> httpx.Request:
        query = scope["query_string"]
        path = self._url.raw_path.partition(b"?")[0].rstrip(b"/") + path
        target = path + b"?" * bool(query) + query
        try:
            url = self._url.copy_with(raw_path=target)
        except httpx.InvalidURL:
            # The path is too long, or has a character that httpx refuses. No API that takes stops has such a path.
            url = self._url
        # With the extension `target`, httpx sends the path and the query as they came. Otherwise it would normalize the
        # path.
        extensions = {"timeout": self._timeout, "pool": pool, "target": target}
        headers = _end_to_end(scope["headers"], b"content-length")  # httpx sets it from the body
        if any(name.decode("latin-1").lower() in SIGNED for name, _ in scope["headers"]):
            headers += [(name, value) for name, value in scope["headers"] if name == b"host"]  # the host is signed too
        return httpx.Request(scope["method"], url, headers=headers, content=body, extensions=extensions)


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.target = ABSOLUTE.sub(b"", scope["raw_path"], count=1) or b"/"  # without the query
        self.path = unquote_to_bytes(self.target).decode(errors="replace")
        self._response: httpx.Response | None = None
        self._begun = False
        self._client_gone = False

    async def attempt(self, work: Awaitable[T]) -> T | None:
        """Returns the result of ``work``. If it raises, sends the error to the client, and returns ``None``.

        If the client has left or the proxy shuts down, ``work`` is cancelled. The cancellation is not raised again,
        because the caller has nothing more to do.
        """
        try:
            return await work
        except (Exception, anyio.get_cancelled_exc_class()) as error:
            if not (self._client_gone or isinstance(error, ClientDisconnect)):
                with contextlib.nullcontext() if isinstance(error, Exception) else anyio.move_on_after(1, shield=True):
                    await self.send_error(self._explained(error))
        return None

    async def body(self, limits: Limits) -> bytes:
        """Returns the request's body. Raises ``HTTPException`` if the body is too long or too slow."""
        if not self.target.startswith(b"/"):
            raise HTTPException(400, "the target of the request is neither a path nor a URL", CLOSE)
        if _has_two_lengths(self._scope["headers"]):  # RFC 9112, 6.3: such a request may smuggle in a second one
            raise HTTPException(400, "the request has a content-length beside a transfer-encoding", CLOSE)
        body = bytearray()
        with anyio.move_on_after(limits.request) as scope:
            async for piece in Request(self._scope, self._receive).stream():
                body += piece
                if len(body) > limits.body:
                    raise HTTPException(413, f"the request is longer than {limits.body:,} bytes", CLOSE)
        if scope.cancelled_caught:
            raise HTTPException(408, f"the request took longer than {limits.request:g} seconds", CLOSE)
        return bytes(body)

    async def until_gone(self, leave: Callable[[], Any]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._client_gone = True
        leave()

    async def answer(self, response: JSONResponse) -> None:
        await response(self._scope, self._receive, self._send)

    async def forward(self, transport: AsyncStopTransport, request: httpx.Request) -> None:
        """Sends the request to the upstream server, and passes its answer on to the client."""
        self._response = response = await transport.handle_async_request(request)
        try:
            pieces = aiter(cast("AsyncIterable[bytes]", response.stream))
            # If the answer is scanned for stops, its status and headers are not sent before the first bytes of the
            # body. So if an error comes first, the client gets the status of the error. Other answers send their
            # headers at once.
            if "stopscan" not in response.extensions:
                await self._begin(response)
            async for piece in pieces:
                if piece:
                    await self._begin(response)
                    await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            await self._begin(response)
            await self._send({"type": "http.response.body", "body": b""})
        finally:
            with anyio.CancelScope(shield=True):
                await cast("httpx.AsyncByteStream", response.stream).aclose()

    async def _begin(self, response: httpx.Response) -> None:
        if self._begun:
            return
        self._begun = True
        more = [b"content-length"] if _has_two_lengths(response.headers.raw) else []
        headers = [(name.lower(), value) for name, value in _end_to_end(response.headers.raw, *more)]
        await self._send({"type": "http.response.start", "status": response.status_code, "headers": headers})

    def _explained(self, error: BaseException) -> HTTPException:
        """Returns the HTTP error to send to the client for an exception."""
        if isinstance(error, HTTPException):
            return error
        if isinstance(error, httpx.TransportError):
            what = "did not answer" if self._response is None else "broke off its answer"
            what = "cannot be reached" if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else what
            status = 504 if isinstance(error, httpx.TimeoutException) else 502
            return HTTPException(status, f"the upstream server {what}: {_cause(error)}")
        if isinstance(error, TypeError | ValueError | httpx.RequestError):  # the answer cannot be cut
            return HTTPException(502, str(error), {"x-should-retry": "false"})  # a retry would generate again
        if not isinstance(error, Exception):
            return HTTPException(503, SHUTDOWN)
        return HTTPException(500, f"the proxy has failed: {type(error).__name__}")  # str(error) may contain an API key

    async def send_error(self, error: HTTPException) -> None:
        """Sends an error in the API's form. If no answer has begun, the error is the answer. If a stream that is
        scanned for stops has begun, the error is the last event of the stream. After an error in an answer that has
        begun, the end of the answer is not sent, so the connection closes."""
        status, message = error.status_code, error.detail
        if status >= 500 and message != SHUTDOWN:
            log.warning("%s: %s", self.target.decode("latin-1"), message)
        body = error_body(route_of("POST", self.path), message, status)
        failed = getattr(self._response and self._response.stream, "failed", None)
        if not self._begun:
            await self.answer(JSONResponse(body, status, error.headers))
        elif failed is not None:
            await self._send({"type": "http.response.body", "body": failed(body), "more_body": True})


def _has_two_lengths(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return {b"content-length", b"transfer-encoding"} <= {name.lower() for name, _ in headers}


def _cause(error: BaseException) -> str:
    """Returns why the upstream server failed, in words or as the name of the error. Does not return the error's
    message, which may contain a key."""
    name, below = type(error).__name__, [error]
    for cause in below:  # the loop appends the causes of an error to `below`, and so visits them too
        for kind, words in UNREACHABLE.items():
            if isinstance(cause, kind):
                return f"{words} ({getattr(cause, 'reason', None) or name})"
        below += [inner for inner in (cause.__cause__, cause.__context__) if inner is not None and inner not in below]
        below += [inner for inner in getattr(cause, "exceptions", ()) if inner not in below]
    return name


def _end_to_end(headers: Iterable[tuple[bytes, bytes]], *more: bytes) -> list[tuple[bytes, bytes]]:
    headers = list(headers)
    named = b",".join(value.lower() for name, value in headers if name.lower() == b"connection").split(b",")
    dropped = {*HOP, *map(bytes.strip, named), *more}
    return [(name, value) for name, value in headers if name.lower() not in dropped]
