"""Stops cut out of HTTP answers, below the client: transports for httpx and httpx2."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from stopscan import StopMatch, StopSet
from stopscan_clients._machines.machine import Options
from stopscan_clients._native import LIMITS, Api
from stopscan_clients._request import SIGNED, Plan, Route, error_body, planned, route_of
from stopscan_clients._steps import Steps, arun, run
from stopscan_clients._wire.body import Body, streams
from stopscan_clients._wire.streams import AsyncStream, Stream, of_package, package_of

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
RETRY = "x-stainless-retry-count"  # on each request of openai, anthropic, groq and together, from 0 on


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
        self.most: int | None = None  # how many stops a request may have: the proxy's limit
        self._refused: set[Any] = set()  # hosts, paths and models whose server refuses stops
        self._raised: dict[bytes, Exception] = {}  # by the request's body: what came out of the place of a whole answer
        self._given = transport
        self._own: dict[Any, Any] = {}  # by the package and the proxy of the environment, if none was given

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
        self._not_again(request)
        response = yield send(self._sent(request, plan.body))
        if plan.key is not None and response.status_code in REFUSALS:
            yield getattr(response, self._READ)()
            response = yield send(self._sent(request, plan.bare))
            if response.is_success:
                self._refused.add((request.url.netloc, *plan.key))
        body = Body(response, plan, self._strict, self._on_match) if response.is_success else None
        if body is None or body.unread:
            return response
        if streams(response, plan):
            return self._answer(request, response, body, None if body.error is None else b"")
        content = yield getattr(response, self._READ)()
        if RETRY in request.headers:
            body.note = partial(self._raised.__setitem__, request.content)
        return self._answer(request, response, body, body.whole(content) if body.error is None else b"")

    def _not_again(self, request: Any) -> None:
        """Raises what came out of the place of a whole answer, if this is the same request again. The official clients
        read a whole answer in the call in which they repeat what fails, and the model would generate again."""
        error = self._raised.pop(request.content, None)
        if error is not None and request.headers.get(RETRY, "0") != "0":
            self._raised[request.content] = error
            raise error
        while len(self._raised) > 100:
            self._raised.pop(next(iter(self._raised)))

    def _inner(self, request: Any) -> Any:
        if self._given is not None:
            return self._given
        from urllib.request import getproxies, proxy_bypass  # what httpx has loaded, and scan_events does without

        host, proxies, package = request.url.host, getproxies(), package_of(request)
        proxy = None if proxy_bypass(host) else proxies.get(request.url.scheme, proxies.get("all"))
        key = package, proxy
        if key not in self._own:
            limits = package.Limits(max_connections=1000, max_keepalive_connections=100)
            url = proxy if proxy is None or "://" in proxy else f"http://{proxy}"
            self._own[key] = getattr(package, self._KIND)(proxy=url, limits=limits)
        return self._own[key]

    @property
    def _all(self) -> list[Any]:
        """The transports below."""
        return [transport for transport in (self._given, *self._own.values()) if transport is not None]

    def _plan(self, request: Any, route: Route) -> Plan | Any | None:
        """The plan, or the answer to a request whose stops cannot be."""
        signed = any(name in request.headers for name in SIGNED)
        try:
            host = request.url.netloc

            def refused(key: tuple[Any, ...]) -> bool:
                return (host, *key) in self._refused

            plan = planned(route, request.url.path, request.content, self._options, self._api, refused, signed)
            asked = 0 if plan is None else len(plan.options.stops) - len(self._options.stops)
            if self.most is not None and asked > self.most:
                raise ValueError(f"{asked} stops are more than the {self.most} that are allowed")
            return plan
        except (TypeError, ValueError) as error:
            return error_response(request, route, str(error))

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
        stream = of_package(self._STREAM, getattr(package, self._BASE))(response, body, content)
        return package.Response(response.status_code, headers=headers, stream=stream, extensions=extensions)


def error_response(request: Any, route: Any, message: str, status: int = 400) -> Any:
    """An answer of the transport's own, in the API's form."""
    content = json.dumps(error_body(route.errors, message, status)).encode()
    return package_of(request).Response(status, headers={"content-type": "application/json"}, content=content)


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

    _HANDLE, _READ, _KIND = "handle_request", "read", "HTTPTransport"
    _BASE, _STREAM = "SyncByteStream", Stream

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
    _BASE, _STREAM = "AsyncByteStream", AsyncStream

    async def handle_async_request(self, request: Any) -> Any:
        return await arun(self._exchange(request))

    async def aclose(self) -> None:
        for transport in self._all:
            await transport.aclose()

    async def __aenter__(self) -> AsyncStopTransport:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
