"""Transports for httpx and httpx2 that end HTTP answers at stops. ``Body`` finds the stops, and the
transports do the I/O."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from stopscan import StopMatch, StopSet
from stopscan_clients.body import EVENTS, Body, Plan
from stopscan_clients.machine import ScanOptions
from stopscan_clients.native import Name, limits_of
from stopscan_clients.request import NO_LIMITS, TooLargeError, error_body, is_signed, plan_of, route_of
from stopscan_clients.steps import at_once, each, run, settled

if TYPE_CHECKING:
    import httpx
    import httpx2

    class _SyncBase(  # type: ignore[misc]  # pyright: ignore[reportIncompatibleMethodOverride]
        httpx.BaseTransport, httpx2.BaseTransport
    ): ...

    class _AsyncBase(  # type: ignore[misc]  # pyright: ignore[reportIncompatibleMethodOverride]
        httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport
    ): ...
else:  # at run time either package may be missing, and neither checks the base class of a transport
    _SyncBase = _AsyncBase = object

REFUSALS = (400, 422)
DECODED = {"gzip", "deflate"}  # the encodings that httpx and httpx2 always decode
CANCEL = 8  # the error code CANCEL of HTTP/2: RFC 9113, section 7


def package_of(request: Any) -> Any:
    """Returns the package that has made the request, httpx or httpx2. The response must be an object of the same
    package."""
    return sys.modules[type(request.headers).__module__.partition(".")[0]]


def decoded_by(package: Any) -> set[str]:
    """Returns the content encodings that httpx or httpx2 decodes: gzip and deflate, and `br` and `zstd` if the packages
    for them are installed."""
    return {*getattr(getattr(package, "_decoders", None), "SUPPORTED_DECODERS", DECODED)} - {"identity"}


def without_headers(message: Any, *names: bytes) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in message.headers.raw if name.lower() not in names]


class _Transport:
    """The code that ``StopTransport`` and ``AsyncStopTransport`` share. They differ only in how they wait."""

    _HANDLE: ClassVar[str]  # this and the next three: the names of the sync or async methods and classes
    _READ: ClassVar[str]
    _CLOSE: ClassVar[str]
    _KIND: ClassVar[str]
    limits = NO_LIMITS  # the limits of a request; only the proxy sets some
    plan_of: Callable[..., Any] = staticmethod(plan_of)  # the proxy sets a function that may use another process

    def __init__(
        self,
        stop: StopSet | str | Iterable[str] | None = (),
        /,
        *,
        transport: Any = None,
        api: Name | None = None,
        include_stop: bool = False,
        drain: bool = False,
        on_match: Callable[[int, StopMatch], object] | None = None,
        strict: bool = True,
    ) -> None:
        if api is not None:
            limits_of(api)
        if transport is not None and not hasattr(transport, self._HANDLE):
            raise TypeError(f"transport needs a method {self._HANDLE}: {type(transport).__name__} has none")
        self._options = ScanOptions(StopSet(stop), include_stop, drain)
        self._options.scanner()  # made only to raise an error for a wrong option before the first answer
        self._api, self._on_match, self._strict = api, on_match, strict
        self._given = transport
        self._own: dict[Any, Any] = {}  # the transports that are made if none was given, by package and proxy URL

    async def _exchange(self, request: Any) -> Any:
        """Returns the answer to a request."""
        send = getattr(self._inner(request), self._HANDLE)
        route = route_of(request.method, request.url.path)
        if request.method == "HEAD":
            return await settled(send(request))
        content = b""
        if route is not None or "json" in request.headers.get("content-type", ""):  # uploads are not read
            await settled(getattr(request, self._READ)())
            content = request.content
        head = request.method, request.url.path, dict(request.headers)
        try:
            plan = await settled(self.plan_of(*head, content, self._options, self._api, self.limits))
        except TooLargeError as error:
            return error_response(request, route, str(error), 413)
        except (RecursionError, TypeError, ValueError) as error:
            return error_response(request, route, str(error))
        response = await settled(send(self._sent(request, plan, plan.body)))
        if plan.bare is not None and response.status_code in REFUSALS:
            await settled(getattr(response, self._READ)())
            response = await settled(send(self._sent(request, plan, plan.bare)))
        if not len(plan.options.stops) or not response.is_success:
            return response
        return await self._cut(request, route, response, plan)

    async def _cut(self, request: Any, route: Any, response: Any, plan: Plan) -> Any:
        """Returns the response with a body that ends at the stops."""
        media: str = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = Body(plan, media, self._strict, self._on_match)
        encodings = re.findall(r"[^\s,]+", response.headers.get("content-encoding", "").lower())
        decoded = decoded_by(package_of(request))
        unknown = {*encodings} - {*decoded, "identity"}  # httpx leaves a body with an unknown encoding undecoded
        whole = not plan.streamed and media.endswith("json") and media not in EVENTS
        expected = route is not None or plan.own or plan.streamed or media in EVENTS  # may have stops
        if not (expected or whole) or (unknown and not (expected and self._strict)):
            return response  # such as a download
        if unknown:
            names = ", ".join(sorted(unknown))
            body.fail(TypeError(f"cannot find stops in an answer with the content-encoding {names!r}"))
        if not whole:
            return self._response(request, response, body, not decoded.intersection(encodings))
        content = await settled(getattr(response, self._CLOSE if unknown else self._READ)())
        try:
            content = b"".join(body.emit(b"" if unknown else body.whole(content)))
        except Exception as error:
            # The error becomes a response: if it were raised, the official clients would retry, and the model would
            # generate again.
            return error_response(request, route, f"{type(error).__name__}: {error}", 502)
        return self._response(request, response, body, True, content)

    def _inner(self, request: Any) -> Any:
        if self._given is not None:
            return self._given
        from urllib.request import getproxies, proxy_bypass  # imported here, because scan_events does not need it

        host, proxies, package = request.url.host, getproxies(), package_of(request)
        proxy = None if proxy_bypass(host) else proxies.get(request.url.scheme, proxies.get("all"))
        key = package, proxy
        if key not in self._own:
            limits = package.Limits(max_connections=1000, max_keepalive_connections=100)
            url = proxy if proxy is None or "://" in proxy else f"http://{proxy}"
            self._own[key] = getattr(package, self._KIND)(proxy=url, limits=limits)
        return self._own[key]

    async def _close_all(self) -> None:
        for transport in (self._given, *self._own.values()):
            if transport is not None:
                await settled(getattr(transport, self._CLOSE)())

    def _sent(self, request: Any, plan: Plan, body: bytes | None) -> Any:
        """Returns the request with ``body``. If ``body`` is ``None``, the request keeps the body that it has. If there
        are stops, the request asks for an uncompressed answer, because the transport must read the answer. A signed
        request is returned unchanged."""
        if body is None and (is_signed(request.headers) or not len(plan.options.stops)):
            return request
        new: dict[str, Any] = {"stream": request.stream} if body is None else {"content": body}
        old = () if body is None else (b"content-length", b"content-encoding", b"transfer-encoding")
        headers = [*without_headers(request, b"accept-encoding", *old), (b"accept-encoding", b"identity")]
        made = package_of(request).Request
        return made(request.method, request.url, headers=headers, extensions=request.extensions, **new)

    def _response(self, request: Any, response: Any, body: Body, plain: bool, content: bytes | None = None) -> Any:
        headers = without_headers(response, b"content-length", b"content-encoding", b"transfer-encoding")
        if content:  # an empty body needs no length, and a 204 must not have one
            headers.append((b"content-length", str(len(content)).encode()))
        extensions = {**response.extensions, "stopscan": MappingProxyType(body.matches)}
        package = package_of(request)
        stream = package.ByteStream(content) if content is not None else _stream_of(package)(response, body, plain)
        return package.Response(response.status_code, headers=headers, stream=stream, extensions=extensions)


def error_response(request: Any, route: Any, message: str, status: int = 400) -> Any:
    """Returns an error of the transport itself in the API's form. A header tells the official clients not to try
    again."""
    content = json.dumps(error_body(route, message, status)).encode()
    headers = {"content-type": "application/json", "content-length": str(len(content)), "x-should-retry": "false"}
    package = package_of(request)
    return package.Response(status, headers=headers, stream=package.ByteStream(content))


class _Stream:
    """The stream of a response. ``_stream_of`` makes a class that inherits from this class and from the stream classes
    of httpx or httpx2, because these packages accept no other streams."""

    def __init__(self, response: Any, body: Body, plain: bool) -> None:
        self._response, self._body, self._plain = response, body, plain
        self.failed = body.failed

    def __iter__(self) -> Iterator[bytes]:
        source = iter(self._response.stream if self._plain else self._response.iter_bytes())
        return each(self._pieces(at_once(source.__next__), "close"))

    def __aiter__(self) -> AsyncIterator[bytes]:
        source = aiter(self._response.stream if self._plain else self._response.aiter_bytes())
        return self._pieces(source.__anext__, "aclose")

    async def _pieces(self, step: Callable[[], Any], close: str) -> AsyncGenerator[bytes, None]:
        body = self._body
        if body.error is not None:
            raise body.error
        while not (body.over or body.ended):
            try:
                out = body.feed(data := await step())
            except StopAsyncIteration:
                data, out = None, body.end()
            except Exception as error:
                data, out = None, body.fail(error)
            if body.ended:
                try:
                    await shut(self._response, close)
                except Exception as error:  # raised after the closing events
                    body.error = body.error or error
            elif data is not None and out is data and not body.matches:
                yield data  # the usual case
                continue
            for piece in body.emit(out):
                yield piece

    def close(self) -> None:
        # httpx2 also calls `close` if the client stops reading early. Closing only the response would not reset the
        # HTTP/2 stream, but `shut` does.
        run(shut(self._response, "close", self._body.over))

    async def aclose(self) -> None:
        await shut(self._response, "aclose", self._body.over)


@cache
def _stream_of(package: Any) -> Any:
    return type("Stream", (_Stream, package.SyncByteStream, package.AsyncByteStream), {})


def connection_of(stream: Any) -> tuple[Any, Any, int] | None:
    """Returns a tuple for the stream of a response: its HTTP/2 connection, its request and its HTTP/2 stream number.

    Reads private fields of httpcore 1.0 and httpcore2 2.16. Returns ``None`` if the stream does not have these fields.
    """
    for _ in range(8):
        connection = getattr(stream, "_connection", None)
        if hasattr(connection, "_h2_state") and hasattr(connection, "_write_outgoing_data"):
            request, number = getattr(stream, "_request", None), getattr(stream, "_stream_id", None)
            return (connection, request, number) if request is not None and number is not None else None
        stream = getattr(stream, "_httpcore_stream", None) or getattr(stream, "_stream", None)
    return None


async def shut(response: Any, close: str, over: bool = False) -> None:
    """Closes a response. An HTTP/2 stream that is not ``over`` is reset first, so that the server stops generating.
    httpcore itself sends no reset."""
    http2 = None if over else connection_of(response.stream)
    if http2 is not None:
        connection, request, number = http2
        with suppress(Exception):  # h2 raises if the stream has ended meanwhile
            connection._h2_state.reset_stream(number, error_code=CANCEL)
            await settled(connection._write_outgoing_data(request))
    await settled(getattr(response, close)())


class StopTransport(_Transport, _SyncBase):
    """A transport for ``httpx.Client`` and ``httpx2.Client`` that ends each answer at a stop in the assistant's text.

    - The stops are those of the transport and those of the request. A request has stops in its API's own field, and in
      the object ``stopscan`` of its body.
    - An answer names its stop in the fields of its API. ``response.extensions["stopscan"]`` is a live mapping of choice
      to ``StopMatch``. ``on_match(choice, match)`` is called for each match.
    - A stream is closed at its stop, so that the server stops generating. ``drain=True`` reads the stream to
      its end instead, so that the usage also comes.
    - ``transport`` sends the requests. The default is that of httpx or httpx2, with the proxies that environment
      variables name.
    - If the answer is not a stream, the server also gets the stops that its API accepts. ``api`` names that API. The
      default is the API of the route.
    - A stream of an unknown API raises ``TypeError`` at its first step. With ``strict=False`` such a stream is passed
      on unchanged.

    >>> def client():
    ...     return OpenAI(http_client=DefaultHttpxClient(transport=StopTransport(["Observation:"])))
    """

    _HANDLE, _READ, _CLOSE, _KIND = "handle_request", "read", "close", "HTTPTransport"

    def handle_request(self, request: Any) -> Any:
        return run(self._exchange(request))

    def close(self) -> None:
        run(self._close_all())

    def __enter__(self) -> StopTransport:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncStopTransport(_Transport, _AsyncBase):
    """The async twin of ``StopTransport``, for ``httpx.AsyncClient`` and ``httpx2.AsyncClient``."""

    _HANDLE, _READ, _CLOSE, _KIND = "handle_async_request", "aread", "aclose", "AsyncHTTPTransport"

    async def handle_async_request(self, request: Any) -> Any:
        return await self._exchange(request)

    async def aclose(self) -> None:
        await self._close_all()

    async def __aenter__(self) -> AsyncStopTransport:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
