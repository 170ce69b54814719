"""`Server`, and `ask`, which sends a request and returns an `Answer` with everything that the server sent.

Every request of the kit goes through `ask`. It follows redirects, as the official clients do. A correct server may
answer requests one after another, so the time limit is multiplied by the number of running requests. Time in which this
process did not run does not count towards the limit.
"""

from __future__ import annotations

import asyncio
import ssl
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate, parsedate_to_datetime
from functools import cache, cached_property
from time import perf_counter, time
from typing import Any

import httpx

from stopscan_conformance import official
from stopscan_conformance.apis import Api, End, Part, Request
from stopscan_conformance.wire import Wire

REFUSALS = (400, 404, 405, 413, 415, 422, 501)  # statuses that mean: the server does not support the request
BUSY = (429, 503)  # if the answer also has a Retry-After, the request is sent again
RETRIES = 2  # the official clients, too, send a request again up to two times
TICK = 0.001
SLEPT = 0.004  # seconds; if a wait of `TICK` seconds takes longer than this, this process did not run


@dataclass(eq=False)
class Flight:
    """A running request. `most` is how many requests have run at the same moment as this one, at most. This request is
    counted too."""

    most: int = 1


class Server:
    """A server at `url` (without `/v1`).

    - `model`: the default is the first model that `/v1/models` lists.
    - `api_key` is sent with each request.
    - `timeout`: the seconds that an answer may take. With n requests at once, each may take n times as long.
    - `clients`: whether the official clients also read the answers.

    >>> cases("anthropic")[0].run(Server("http://127.0.0.1:8000")).outcome
    'pass'
    """

    def __init__(
        self,
        url: str,
        /,
        *,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        clients: bool = False,
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.timeout = timeout
        self.api_key = api_key
        self.clients = clients
        self.named = model
        self.alias: Any = None  # the model's name in answers, which may differ from `model`
        self.probed: dict[str, Any] = {}  # the result of `probe` by API
        self._flights: list[Flight] = []

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the APIs require, and the API key."""
        versions = {"anthropic-version": "2023-06-01"}
        keys = {"Authorization": f"Bearer {self.api_key}", "x-api-key": self.api_key} if self.api_key else {}
        return {**versions, **keys}

    @property
    def model(self) -> str:
        # If the server lists no model, uses "default_model". mlx_lm.server takes this name for the model that it was
        # started with.
        return self.named or next(iter(self.models), "default_model")

    @cached_property
    def models(self) -> list[str]:
        """The names that `/v1/models` lists. The list is empty if the route is missing or broken."""
        try:
            options: dict[str, Any] = {"headers": self.headers, "timeout": self.timeout, "follow_redirects": True}
            listed: Any = httpx.get(f"{self.url}/v1/models", **options).json()
            return [str(model["id"]) for model in listed["data"]]
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
            return []

    def has(self, model: Any) -> bool:
        """Whether `model` is a correct name of the model in an answer."""
        known = (None, self.model, self.alias)
        return model in known or str(model).startswith(f"{self.model}:") or model in self.models

    def connect(self) -> httpx.AsyncClient:
        """Returns a connection for one request, or for several requests one after another."""
        return httpx.AsyncClient(
            base_url=self.url, headers=self.headers, timeout=None, verify=_tls(), follow_redirects=True
        )

    @contextmanager
    def flying(self) -> Iterator[Flight]:
        flight = Flight()
        self._flights.append(flight)
        for one in self._flights:
            one.most = max(one.most, len(self._flights))
        flight.most = len(self._flights)
        try:
            yield flight
        finally:
            self._flights.remove(flight)


@dataclass
class Answer:
    """The answer to a request, or the part of it that came.

    - `error`: why the answer is missing or ends early.
    - `faults`: violations of the API's form.
    - `times`: when each chunk came.
    - `first`: the seconds until the first text came.
    - `seconds`: the seconds until the end.
    - `last`: when the finish reason came.
    - `gaps`: when this process did not run.
    """

    wire: Wire = field(default_factory=Wire)
    chunks: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    reasoning: str = ""
    end: End | None = None
    head: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    timed_out: bool = False
    faults: list[str] = field(default_factory=list)
    read_again: bool = False  # whether the official client also read the answer; `unread` says what it read wrong
    unread: str | None = None
    began: float = 0.0
    first: float = 0.0
    last: float = 0.0
    seconds: float = 0.0
    gaps: list[tuple[float, float]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    @property
    def refused(self) -> bool:
        """Whether the status refuses the request: the server does not support the request, or cannot answer it now."""
        return self.wire.status in REFUSALS or self.busy

    @property
    def busy(self) -> bool:
        """Whether the server asks the client to send the request later."""
        return self.wire.status in BUSY and self.wire.retry_after is not None

    def add(self, part: Part) -> None:
        if (part.text or part.reasoning) and self.end is not None:
            self.fault("text after the finish reason")
        if part.text:
            self.chunks.append(part.text)
            self.times.append(part.time)
            self.first = self.first or part.time - self.began
        self.reasoning += part.reasoning
        if part.end is not None:
            if self.end is not None:
                self.fault("a second finish reason")
            self.end = part.end
            self.last = part.time
        self.head.update((key, value) for key, value in part.head.items() if value is not None)

    def fault(self, what: str) -> None:
        if what not in self.faults:
            self.faults.append(what)

    def slept(self, begin: float, end: float) -> float:
        """Returns the seconds between `begin` and `end` in which this process did not run."""
        at = bisect_left(self.gaps, (begin,)) - 1
        near = self.gaps[max(0, at) :]
        return sum(max(0.0, min(end, after) - max(begin, before)) for before, after in near)


async def ask(
    server: Server,
    api: Api,
    request: Request,
    /,
    *,
    leave: int = 0,
    kept: httpx.AsyncClient | None = None,
    body: Any = None,
) -> Answer:
    """Returns the answer of `server`, or the part that came within the server's time limit.

    Errors of the server are not raised: they are in the answer. If the server answers with 429 or 503 and a
    Retry-After, the request is sent again, up to `RETRIES` times. If the Retry-After is longer than the server's time
    limit, the request is not sent again.

    If `leave` is not 0, closes the connection after that many pieces of text. If `kept` is given, uses this client,
    whose connection stays open. If `body` is given, sends it in place of the body of `request`.
    """
    sent = api.written(server.model, request) if body is None else body
    for _ in range(RETRIES):
        answer = await _ask(server, api, request, leave, kept, sent)
        pause = _pause(answer.wire.retry_after) if answer.busy else None
        if pause is None or pause > server.timeout:
            return answer
        await asyncio.sleep(pause)
    return await _ask(server, api, request, leave, kept, sent)


def _pause(retry_after: str | None) -> float | None:
    """Returns how many seconds the header Retry-After asks the client to wait, or None if its value is neither a number
    nor a date."""
    try:
        return max(0.0, float(retry_after or ""))
    except ValueError:
        date = parsedate_to_datetime(retry_after) if retry_after and parsedate(retry_after) else None
        return None if date is None else max(0.0, date.timestamp() - time())


async def _ask(
    server: Server, api: Api, request: Request, leave: int, kept: httpx.AsyncClient | None, sent: Any
) -> Answer:
    answer = Answer()
    async with _watch() as gaps:
        with server.flying() as flight:
            try:
                client = kept or server.connect()
            except Exception as error:
                answer.error = _described(error, answer.wire)
                return answer
            begin, known = perf_counter(), len(gaps)
            answer.began = begin
            options: dict[str, Any] = {"content": sent} if isinstance(sent, str) else {"json": sent}
            task = asyncio.ensure_future(_send(client, api, request, answer, leave, options))
            try:
                # The time limit may grow while the request runs: when other requests start, or when this process does
                # not run for some time. So it is computed again in each turn of the loop.
                while not task.done():
                    slept = sum(after - before for before, after in gaps[known:])
                    remaining = begin + server.timeout * flight.most + slept - perf_counter()
                    if remaining <= 0:
                        answer.timed_out = True
                        break
                    await asyncio.wait({task}, timeout=remaining)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if kept is None:
                    await client.aclose()
            answer.gaps = gaps[known:]
            answer.seconds = perf_counter() - begin
    if answer.timed_out:
        answer.error = f"no end of the answer in {server.timeout * flight.most:g} s"
    elif (failed := task.exception()) is not None:
        answer.error = _described(failed, answer.wire)
    _read(server, api, request, answer, leave)
    if server.clients and answer.wire.status == 200 and not (leave or answer.error):
        answer.unread = await official.fault(api, request, answer.wire, answer.text)
        answer.read_again = True
    return answer


async def _send(
    client: httpx.AsyncClient, api: Api, request: Request, answer: Answer, leave: int, options: Mapping[str, Any]
) -> None:
    wire = answer.wire
    headers = {"Content-Type": "application/json", **request.extras.headers}
    async with client.stream("POST", api.path, headers=headers, **options) as reply:
        wire.status = reply.status_code
        wire.retry_after = reply.headers.get("retry-after")
        wire.media_type = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        async for part in reply.aiter_bytes():
            wire.add(part, perf_counter())
            if leave and sum(bool(one.text or one.reasoning) for one in api.read(wire, request)) >= leave:
                return


def _read(server: Server, api: Api, request: Request, answer: Answer, leave: int) -> None:
    wire = answer.wire
    if wire.status is None:
        return
    if not 200 <= wire.status < 300:
        answer.error = f"{wire.status}: {' '.join(wire.text.split())[:200]}"
        return
    try:
        for part in api.read(wire, request):
            answer.add(part)
    except RuntimeError as error:
        answer.error = answer.error or str(error)
    if leave:
        return
    for fault in [*_transport(wire), *api.form(wire, request)]:
        answer.fault(fault)
    if not server.has(answer.head.get("model")):
        answer.fault(f"the model is {answer.head['model']!r}, not {server.model!r}")


def _transport(wire: Wire) -> Iterator[str]:
    if wire.status != 200:
        yield f"the status is {wire.status}, not 200"
    try:
        wire.body.decode()
    except UnicodeDecodeError as error:
        yield f"bytes that are not UTF-8: {bytes(wire.body[max(0, error.start - 8) : error.end + 8])!r}"


def _described(error: BaseException, wire: Wire) -> str:
    """Returns the error in one line."""
    cause = error.__cause__ if wire.status is None else None
    return ": ".join(part for part in (type(error).__name__, str(error)[:200], str(cause or "")) if part)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # making a context takes 20 ms, so all connections share one


@dataclass
class _Watch:
    """Notes the times in which this process, and so the event loop, did not run. All requests of an event loop share
    one `_Watch`."""

    users: int = 0
    gaps: list[tuple[float, float]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    async def tick(self) -> None:
        before = perf_counter()
        while True:
            await asyncio.sleep(TICK)
            now = perf_counter()
            if now - before > SLEPT:
                self.gaps.append((before, now))
            before = now


_WATCHES: dict[int, _Watch] = {}


@asynccontextmanager
async def _watch() -> AsyncIterator[list[tuple[float, float]]]:
    loop = id(asyncio.get_running_loop())
    watch = _WATCHES.setdefault(loop, _Watch())
    watch.users += 1
    if watch.task is None:
        watch.task = asyncio.ensure_future(watch.tick())
    try:
        yield watch.gaps
    finally:
        watch.users -= 1
        if not watch.users:
            watch.task.cancel()
            del _WATCHES[loop]
