"""Stops cut out of HTTP answers, below the client: transports for httpx and httpx2."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from stopscan import StopMatch, StopSet
from stopscan.clients._machines.machine import Options
from stopscan.clients._native import LIMITS, Api
from stopscan.clients._request import SIGNED, Plan, Route, error_body, planned, route_of
from stopscan.clients._steps import Steps, arun, run
from stopscan.clients._wire.body import Body, streams
from stopscan.clients._wire.h2 import shutting

if TYPE_CHECKING:
    import httpx
    import httpx2

    class _SyncBase(  # type: ignore[misc]  # pyright: ignore[reportIncompatibleMethodOverride]
        httpx.BaseTransport, httpx2.BaseTransport
    ): ...

    class _AsyncBase(  # type: ignore[misc]  # pyright: ignore[reportIncompatibleMethodOverride]
        httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport
    ): ...
else:  # either may be missing, and both ask for no more than the methods
    _SyncBase = _AsyncBase = object

OnMatch = Callable[[int, StopMatch], object]
REFUSALS = (400, 422)


class _Transport:
    """What both transports share: all but the waiting."""

    _HANDLE: ClassVar[str]  # how the methods and classes of the kind are called
    _READ: ClassVar[str]
    _KIND: ClassVar[str]
    _BASE: ClassVar[str]
    _STREAM: ClassVar[Any]

    def __init__(
        self,
        stop: StopSet | str | Iterable[str] | None = (),
        /,
        *,
        transport: Any = None,
        api: Api | None = None,
        include_stop: bool = False,
        drain: bool = False,
        on_match: OnMatch | None = None,
        strict: bool = True,
    ) -> None:
        if api is not None and api not in LIMITS:
            raise ValueError(f"no limits are known of {api!r}; they are of {', '.join(LIMITS)}")
        self._options = Options(StopSet(stop), include_stop, drain)
        self._api = api
        self._on_match = on_match
        self._strict = strict
        self._most: int | None = None  # how many stops a request may have: the proxy's limit
        self._refused: set[Any] = set()  # routes and models whose server refuses stops
        self._given = transport
        self._own: dict[str | None, Any] = {}  # by the proxy of the environment, if none was given

    def _exchange(self, request: Any) -> Steps:
        """The answer to a request. What is to be waited for is yielded, and what came of it sent in: so both kinds of
        transport have the same steps."""
        send = getattr(self._inner(request), self._HANDLE)
        route = route_of(request.method, request.url.path)
        plan: Any = None
        if route is not None:
            yield getattr(request, self._READ)()
            plan = self._plan(request, route)
        if not isinstance(plan, Plan):
            return plan or (yield send(request))
        response = yield send(self._sent(request, plan.body))
        if plan.key is not None and response.status_code in REFUSALS:
            yield getattr(response, self._READ)()
            response = yield send(self._sent(request, plan.bare))
            if response.is_success:
                self._refused.add(plan.key)
        body = Body(response, plan, self._strict, self._on_match) if response.is_success else None
        if body is None or body.unread:
            return response
        content = b"" if body.error is not None else None
        if content is None and not streams(response, plan):
            content = body.whole((yield getattr(response, self._READ)()))
        return self._answer(request, response, body, content)

    def _inner(self, request: Any) -> Any:
        if self._given is not None:
            return self._given
        from urllib.request import getproxies, proxy_bypass  # what httpx has loaded, and scan_events does without

        host, proxies = request.url.host, getproxies()
        proxy = None if proxy_bypass(host) else proxies.get(request.url.scheme, proxies.get("all"))
        if proxy not in self._own:
            package = package_of(request)
            limits = package.Limits(max_connections=1000, max_keepalive_connections=100)
            self._own[proxy] = getattr(package, self._KIND)(proxy=proxy, limits=limits)
        return self._own[proxy]

    @property
    def _all(self) -> list[Any]:
        """The transports below."""
        return [transport for transport in (self._given, *self._own.values()) if transport is not None]

    def _plan(self, request: Any, route: Route) -> Plan | Any | None:
        """The plan, or the answer to a request whose stops cannot be."""
        signed = any(name in request.headers for name in SIGNED)
        try:
            refused = self._refused.__contains__
            plan = planned(route, request.url.path, request.content, self._options, self._api, refused, signed)
            if plan is not None and self._most is not None and len(plan.options.stops) > self._most:
                raise ValueError(f"{len(plan.options.stops)} stops are more than the {self._most} that are allowed")
            return plan
        except (TypeError, ValueError) as error:
            content = json.dumps(error_body(route.errors, str(error))).encode()
            return package_of(request).Response(400, headers={"content-type": "application/json"}, content=content)

    def _sent(self, request: Any, body: bytes | None) -> Any:
        """The request with another body. The answer is to be read here: it need not be compressed."""
        if body is None:
            return request
        drop = (b"content-length", b"transfer-encoding", b"accept-encoding")
        headers = [(name, value) for name, value in request.headers.raw if name.lower() not in drop]
        headers.append((b"accept-encoding", b"identity"))
        made = type(request)(request.method, request.url, headers=headers, content=body)
        made.extensions = request.extensions
        return made

    def _answer(self, request: Any, response: Any, body: Body, content: bytes | None) -> Any:
        drop = (b"content-length", b"content-encoding", b"transfer-encoding")
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in drop]
        if content is not None and body.error is None:
            headers.append((b"content-length", str(len(content)).encode()))
        extensions = {**response.extensions, "stopscan": MappingProxyType(body.matches)}
        package = package_of(request)
        stream = _of_package(self._STREAM, getattr(package, self._BASE))(response, body, content)
        return package.Response(response.status_code, headers=headers, stream=stream, extensions=extensions)


def package_of(request: Any) -> Any:
    """httpx or httpx2, whichever the request is of: what answers it must be of the same."""
    for cls in type(request).__mro__:
        package = cls.__module__.partition(".")[0]
        if package.startswith("httpx"):
            return sys.modules[package]
    raise TypeError(f"{type(request).__name__} is no request of httpx or httpx2")


class _Stream:
    """A body on its way. The package's ``Response`` asks for a stream of its own class: ``_of_package`` makes that."""

    def __init__(self, response: Any, body: Body, content: bytes | None) -> None:
        self._response, self._body, self._content = response, body, content
        self.failed = body.failed

    def __iter__(self) -> Iterator[bytes]:
        body, out = self._body, self._content
        if out is None:
            for data in self._response.stream if body.plain else self._response.iter_bytes():
                out = body.feed(data)
                if out is data and not body.matches:
                    yield data  # most events
                    continue
                if body.ended:
                    break
                yield from body.told(out)
            else:
                out = body.end()
            if body.ended:
                run(self._shut("close"))
        yield from body.told(out)

    def _shut(self, close: str) -> Steps:
        try:
            yield from shutting(self._response, close)
        except Exception as error:  # the closing events come first
            self._body.error = self._body.error or error

    def close(self) -> None:
        # httpx2 closes the response with its iterator, and that sends no reset.
        run(shutting(self._response, "close", self._body.over))


class _AsyncStream(_Stream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        body, out = self._body, self._content
        if out is None:
            async for data in self._response.stream if body.plain else self._response.aiter_bytes():
                out = body.feed(data)
                if out is data and not body.matches:
                    yield data
                    continue
                if body.ended:
                    break
                for piece in body.told(out):
                    yield piece
            else:
                out = body.end()
            if body.ended:
                await arun(self._shut("aclose"))
        for piece in body.told(out):
            yield piece

    async def aclose(self) -> None:
        await arun(shutting(self._response, "aclose", self._body.over))


@cache
def _of_package(stream: Any, base: Any) -> Any:
    return type("Stream", (stream, base), {})


class StopTransport(_Transport, _SyncBase):
    """A transport for ``httpx.Client`` and ``httpx2.Client`` that ends each answer at a stop in the assistant's text.

    - The stops are the stops of the transport and the stops of the request. A request has stops in its API's own field,
      and in the object ``stopscan`` of its body.
    - An answer names its stop as its API does. ``response.extensions["stopscan"]`` is a live mapping of choice to
      ``StopMatch``. ``on_match(choice, match)`` gets each match.
    - A stream is closed at its stop, so the server generates no more. ``drain=True`` reads on for the usage.
    - ``transport`` is the transport below. The default is the package's own, with the proxies of the environment.
    - ``api`` says whose limits hold for the stops that go on to the server of a whole answer. The default is the API of
      the route.
    - A stream of an unknown API is a ``TypeError`` at its first step. With ``strict=False`` such a stream passes
      unchanged.

    >>> def client():
    ...     return OpenAI(http_client=DefaultHttpxClient(transport=StopTransport(["Observation:"])))
    """

    _HANDLE, _READ, _KIND, _BASE, _STREAM = "handle_request", "read", "HTTPTransport", "SyncByteStream", _Stream

    def handle_request(self, request: Any) -> Any:
        return run(self._exchange(request))

    def close(self) -> None:
        for transport in self._all:
            transport.close()

    def __enter__(self) -> StopTransport:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncStopTransport(_Transport, _AsyncBase):
    """The async twin of ``StopTransport``, for ``httpx.AsyncClient`` and ``httpx2.AsyncClient``."""

    _HANDLE, _READ, _KIND = "handle_async_request", "aread", "AsyncHTTPTransport"
    _BASE, _STREAM = "AsyncByteStream", _AsyncStream

    async def handle_async_request(self, request: Any) -> Any:
        return await arun(self._exchange(request))

    async def aclose(self) -> None:
        for transport in self._all:
            await transport.aclose()

    async def __aenter__(self) -> AsyncStopTransport:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
