"""Stops cut out of HTTP answers, below the client: transports for httpx and httpx2."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

from stopscan import StopMatch, StopSet
from stopscan.clients._body import Body, streams
from stopscan.clients._h2 import connection_of, reset
from stopscan.clients._machine import Options
from stopscan.clients._native import LIMITS, Api
from stopscan.clients._request import SIGNED, Plan, Route, error_body, planned, route_of

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

    def _inner(self, request: Any, kind: str) -> Any:
        if self._given is not None:
            return self._given
        host, proxies = request.url.host, getproxies()
        proxy = None if proxy_bypass(host) else proxies.get(request.url.scheme, proxies.get("all"))
        if proxy not in self._own:
            package = package_of(request)
            limits = package.Limits(max_connections=1000, max_keepalive_connections=100)
            self._own[proxy] = getattr(package, kind)(proxy=proxy, limits=limits)
        return self._own[proxy]

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

    def _answer(self, request: Any, response: Any, body: Body, stream: Any, content: bytes | None) -> Any:
        drop = (b"content-length", b"content-encoding", b"transfer-encoding")
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in drop]
        if content is not None and body.error is None:
            headers.append((b"content-length", str(len(content)).encode()))
        extensions = {**response.extensions, "stopscan": MappingProxyType(body.matches)}
        return package_of(request).Response(response.status_code, headers=headers, stream=stream, extensions=extensions)


def package_of(request: Any) -> Any:
    """httpx or httpx2, whichever the request is of: what answers it must be of the same."""
    for cls in type(request).__mro__:
        package = cls.__module__.partition(".")[0]
        if package.startswith("httpx"):
            return sys.modules[package]
    raise TypeError(f"{type(request).__name__} is no request of httpx or httpx2")


class StopTransport(_Transport, _SyncBase):
    """A transport for ``httpx.Client`` and ``httpx2.Client`` that ends each answer at a stop in the assistant's text.

    The stops are these and those of the request, in its API's own field and in the object ``stopscan`` of its body. An
    answer names its stop as its API does; all that fired are in ``response.extensions["stopscan"]``, a live mapping of
    choice to ``StopMatch``, and go to ``on_match(choice, match)``. A stream is closed at its stop, so that nothing more
    is generated; ``drain=True`` reads on for the usage.

    ``transport`` is the one below, by default the package's own, with the proxies of the environment. ``api`` is whose
    limits hold for the stops that go on to the server of a whole answer, by default those of the route. A stream of an
    API that is not known is a ``TypeError`` at its first step; with ``strict=False`` it passes as it is.

    >>> def client():
    ...     return OpenAI(http_client=DefaultHttpxClient(transport=StopTransport(["Observation:"])))
    """

    def handle_request(self, request: Any) -> Any:
        route = route_of(request.method, request.url.path)
        inner = self._inner(request, "HTTPTransport")
        if route is None:
            return inner.handle_request(request)
        request.read()
        plan = self._plan(request, route)
        if not isinstance(plan, Plan):
            return inner.handle_request(request) if plan is None else plan
        response = inner.handle_request(self._sent(request, plan.body))
        if plan.key is not None and response.status_code in REFUSALS:
            response.read()
            response.close()
            response = inner.handle_request(self._sent(request, plan.bare))
            if response.is_success:
                self._refused.add(plan.key)
        return self._cut(request, response, plan)

    def _cut(self, request: Any, response: Any, plan: Plan) -> Any:
        if not response.is_success:
            return response
        body = Body(response, plan, self._strict, self._on_match)
        if body.unread:
            return response
        content = None
        if not streams(response, plan) and body.error is None:
            content = body.whole(b"".join(response.iter_bytes()))
            response.close()
        stream = _sync_stream(package_of(request))(response, body, content)
        return self._answer(request, response, body, stream, content)

    def close(self) -> None:
        for transport in [self._given, *self._own.values()]:
            if transport is not None:
                transport.close()

    def __enter__(self) -> StopTransport:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncStopTransport(_Transport, _AsyncBase):
    """The async twin of ``StopTransport``, for ``httpx.AsyncClient`` and ``httpx2.AsyncClient``."""

    async def handle_async_request(self, request: Any) -> Any:
        route = route_of(request.method, request.url.path)
        inner = self._inner(request, "AsyncHTTPTransport")
        if route is None:
            return await inner.handle_async_request(request)
        await request.aread()
        plan = self._plan(request, route)
        if not isinstance(plan, Plan):
            return await inner.handle_async_request(request) if plan is None else plan
        response = await inner.handle_async_request(self._sent(request, plan.body))
        if plan.key is not None and response.status_code in REFUSALS:
            await response.aread()
            await response.aclose()
            response = await inner.handle_async_request(self._sent(request, plan.bare))
            if response.is_success:
                self._refused.add(plan.key)
        return await self._cut(request, response, plan)

    async def _cut(self, request: Any, response: Any, plan: Plan) -> Any:
        if not response.is_success:
            return response
        body = Body(response, plan, self._strict, self._on_match)
        if body.unread:
            return response
        content = None
        if not streams(response, plan) and body.error is None:
            content = body.whole(b"".join([piece async for piece in response.aiter_bytes()]))
            await response.aclose()
        stream = _async_stream(package_of(request))(response, body, content)
        return self._answer(request, response, body, stream, content)

    async def aclose(self) -> None:
        for transport in [self._given, *self._own.values()]:
            if transport is not None:
                await transport.aclose()

    async def __aenter__(self) -> AsyncStopTransport:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


@cache
def _sync_stream(package: Any) -> Any:
    """A stream of the package's own class, which its ``Response`` asks for."""

    class Stream(package.SyncByteStream):  # type: ignore[misc]
        def __init__(self, response: Any, body: Body, content: bytes | None = None) -> None:
            self._response, self._body, self._content = response, body, content

        def __iter__(self) -> Iterator[bytes]:
            body = self._body
            if self._content is not None or body.error is not None:
                yield from body.told(self._content or b"")
                return
            feed = body.feed
            for data in self._response.stream if body.plain else self._response.iter_bytes():
                out = feed(data)
                if out is data and not body.matches:
                    yield data  # most events
                    continue
                if body.ended:
                    body.shut(self._shut)
                yield from body.told(out)
                if body.ended:
                    return
            yield from body.told(body.end())

        def _shut(self) -> None:
            found = connection_of(self._response.stream)
            if found is not None and reset(found[0], found[2]):
                found[0]._write_outgoing_data(found[1])
            self._response.close()

        def close(self) -> None:
            # httpx2 closes the response with its iterator, and that sends no reset.
            (self._response.close if self._body.over else self._shut)()

    return Stream


@cache
def _async_stream(package: Any) -> Any:
    class Stream(package.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, response: Any, body: Body, content: bytes | None = None) -> None:
            self._response, self._body, self._content = response, body, content

        async def __aiter__(self) -> AsyncIterator[bytes]:
            body = self._body
            if self._content is not None or body.error is not None:
                for out in body.told(self._content or b""):
                    yield out
                return
            feed = body.feed
            async for data in self._response.stream if body.plain else self._response.aiter_bytes():
                out = feed(data)
                if out is data and not body.matches:
                    yield data  # most events
                    continue
                if body.ended:
                    try:
                        await self._shut()
                    except Exception as error:  # the closing events come first
                        body.error = body.error or error
                for piece in body.told(out):
                    yield piece
                if body.ended:
                    return
            for piece in body.told(body.end()):
                yield piece

        async def _shut(self) -> None:
            found = connection_of(self._response.stream)
            if found is not None and reset(found[0], found[2]):
                await found[0]._write_outgoing_data(found[1])
            await self._response.aclose()

        async def aclose(self) -> None:
            await (self._response.aclose() if self._body.over else self._shut())

    return Stream
