"""Stops in streams of dicts: boto3's events, anyone's parsed lines."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from inspect import isawaitable
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from stopscan import StopMatch, StopSet
from stopscan_clients.machine import Machine, Options, machine
from stopscan_clients.rows import api_of_answer, api_of_event, described
from stopscan_clients.whole import cut

E = TypeVar("E")  # the caller's own type of an event, a dict
BUSY = "the stream is in another thread's or task's step"


def instead(value: Any) -> str:
    """Returns what to use for something that is no dict."""
    return (
        f"{described(value)} is no dict: give its client a StopTransport (http_client=httpx.Client(transport=...)), "
        "or give stopscan.scan the texts alone"
    )


class _Events(Generic[E]):
    """What both streams share: all but the waiting."""

    def __init__(self, source: Any, options: Options) -> None:
        self._source = source
        self._options = options
        self._matches: dict[int, StopMatch] = {}
        self._machine: Machine | None = None
        self._ready: deque[Any] = deque()
        self._over = False
        self._failure: Exception | None = None  # of the close at a stop: comes behind the closing events
        self._lock = threading.Lock()  # held for a step

    @property
    def matches(self) -> Mapping[int, StopMatch]:
        """The stops that have fired, by choice: a live mapping."""
        return MappingProxyType(self._matches)

    @property
    def held(self) -> dict[int, str]:
        """The text that each choice withholds."""
        return {} if self._machine is None else self._machine.held

    @property
    def closes(self) -> bool:
        """Whether the source can be closed. One that cannot be, such as a list's iterator, goes on behind a stop."""
        return self._closing() is not None

    def __repr__(self) -> str:
        state = "over" if self._over else "open"
        return f"<{type(self).__name__} {state}, matches={self._matches}>"

    def _closing(self) -> Any:
        raise NotImplementedError

    def _feed(self, event: Any) -> bool:
        """Makes ready what comes out for an event. Returns whether the source is to be closed."""
        if not isinstance(event, dict):
            raise TypeError(instead(event))
        if self._machine is None:
            api = api_of_event(event) if len(self._options.stops) else None
            if api is None:
                self._ready.append(event)
                return False
            self._machine = machine(api, self._options, self._matches)
        self._ready.extend([out for out, _ in self._machine.feed(event)])
        return self._machine.ended and not self._options.drain

    def _fail(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _end(self) -> None:
        self._over = True
        if self._machine is not None:
            self._ready.extend([out for out, _ in self._machine.end()])


class EventStream(_Events[E], Iterator[E]):
    """The events of ``scan_events``: an iterator and a context manager, which closes the source."""

    def __next__(self) -> E:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(BUSY)
        try:
            while not self._ready and not self._over:
                try:
                    event = next(self._source)
                except StopIteration:
                    self._end()
                    continue
                if self._feed(event):
                    self._over = True
                    try:
                        self._shut()
                    except Exception as error:
                        self._failure = error
            if not self._ready:
                self._fail()
                raise StopIteration
            ready: E = self._ready.popleft()
            return ready
        finally:
            self._lock.release()

    def close(self) -> None:
        """Closes the source. What was ready is not given out any more. Another thread's step is a ``RuntimeError``, and
        the stream goes on."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(BUSY)
        try:
            self._shut()
            self._over = True
            self._ready.clear()
        finally:
            self._lock.release()

    def _shut(self) -> None:
        close = self._closing()
        if close is not None:
            close()

    def _closing(self) -> Any:
        return getattr(self._source, "close", None)

    def __enter__(self) -> EventStream[E]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncEventStream(_Events[E], AsyncIterator[E]):
    """The events of ``ascan_events``: an async iterator and context manager, which closes the source."""

    async def __anext__(self) -> E:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(BUSY)
        try:
            while not self._ready and not self._over:
                try:
                    event = await anext(self._source)
                except StopAsyncIteration:
                    self._end()
                    continue
                if self._feed(event):
                    self._over = True
                    try:
                        await self._shut()
                    except Exception as error:
                        self._failure = error
            if not self._ready:
                self._fail()
                raise StopAsyncIteration
            ready: E = self._ready.popleft()
            return ready
        finally:
            self._lock.release()

    async def aclose(self) -> None:
        """Closes the source, as ``EventStream.close`` does."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(BUSY)
        try:
            await self._shut()
            self._over = True
            self._ready.clear()
        finally:
            self._lock.release()

    async def _shut(self) -> None:
        close = self._closing()
        result = close() if close is not None else None
        if isawaitable(result):
            await result

    def _closing(self) -> Any:
        return getattr(self._source, "aclose", None) or getattr(self._source, "close", None)

    async def __aenter__(self) -> AsyncEventStream[E]:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def scan_events(
    events: Iterable[E],
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    drain: bool = False,
    region: str | None = None,
    choices: int | None = None,
) -> EventStream[E]:
    """Returns an iterator of the same events up to a stop in the assistant's text, with ``matches``.

    - ``events`` is an iterable of dicts: boto3's stream, or lines that you have parsed. Objects of a client are a
      ``TypeError``: give the client a ``StopTransport``.
    - When stops have ended all choices, the source is closed, so the server generates no more. The closing events of
      the API follow. ``drain=True`` reads the rest of the source for the usage, and gives out nothing else.
    - ``choices`` is how many choices the request has asked for, 1 if you do not say.
    - An event that is not changed is the same object. An event that is cut is a copy.
    - Text that may be the beginning of a stop is held. Its event comes with less text or no text. The rest comes later,
      at the latest before the event that closes its part.
    - If the source raises, the error reaches the caller, and ``held`` has the held text.

    >>> chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ["one E", "ND", "two"]]
    >>> stream = scan_events(chunks, "END")
    >>> [chunk["choices"][0]["delta"].get("content") for chunk in stream]
    ['one ', '', None]
    >>> stream.matches[0].sequence
    'END'
    """
    if not hasattr(events, "__iter__"):
        hint = "use ascan_events" if hasattr(events, "__aiter__") else "it is no iterable of events"
        raise TypeError(f"scan_events cannot read {type(events).__name__}: {hint}")
    if isinstance(events, Mapping | str | bytes):
        raise TypeError(f"scan_events reads an iterable of events, not one {type(events).__name__}")
    options = _options(stop, include_stop, drain, region, choices)
    return EventStream(_Source(events) if hasattr(events, "close") else iter(events), options)


def ascan_events(
    events: AsyncIterable[E],
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    drain: bool = False,
    region: str | None = None,
    choices: int | None = None,
) -> AsyncEventStream[E]:
    """Returns an async iterator of the events up to a stop, as ``scan_events`` does.

    If a step is cancelled, no event is lost: the events that were ready come with the next step.

    >>> async def text(events):
    ...     async with ascan_events(events, "Observation:") as stream:
    ...         return "".join([event["choices"][0]["delta"].get("content") or "" async for event in stream])
    """
    if not hasattr(events, "__aiter__"):
        hint = "await it first" if isawaitable(events) else "it is no async iterable of events"
        raise TypeError(f"ascan_events cannot read {type(events).__name__}: {hint}")
    options = _options(stop, include_stop, drain, region, choices)
    return AsyncEventStream(_AsyncSource(events), options)


class _Source:
    """An iterable that can be closed, as its own iterator may not be: boto3's stream."""

    def __init__(self, events: Any) -> None:
        self._next, self.close = iter(events).__next__, events.close

    def __next__(self) -> Any:
        return self._next()


class _AsyncSource:
    def __init__(self, events: Any) -> None:
        self._next = aiter(events).__anext__
        self.aclose = getattr(events, "aclose", None) or getattr(events, "close", None)

    def __anext__(self) -> Any:
        return self._next()


def truncate_response(response: E, stop: StopSet | str | Iterable[str] | None, /, *, include_stop: bool = False) -> E:
    """Returns a whole answer up to the stop, the very dict if there is none.

    Raises ``TypeError`` for an answer of an API that is not known here, and for an object of a client.

    >>> truncate_response({"choices": [{"index": 0, "message": {"content": "one END two"}}]}, "END")
    {'choices': [{'index': 0, 'message': {'content': 'one '}, 'finish_reason': 'stop', 'matched_stop': 'END'}]}
    """
    if not isinstance(response, dict):
        raise TypeError(instead(response))
    options = _options(stop, include_stop, False, None, None)
    api = api_of_answer(response)
    if api is None or not len(options.stops) or response.get("error"):
        return response
    left: Any = cut(api, options, response)[0]
    return left


def _options(stop: Any, include_stop: Any, drain: Any, region: Any, choices: Any) -> Options:
    for name, flag in (("include_stop", include_stop), ("drain", drain)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be True or False, not {flag!r}")
    if choices is not None and (type(choices) is not int or choices < 1):
        raise (ValueError if type(choices) is int else TypeError)(f"choices must be a number from 1 on, not {choices!r}")
    begin = {} if region is None else {"region": region}
    options = Options(StopSet(stop), include_stop, drain, begin, 1 if choices is None else choices)
    options.scanner()  # a region that is not there is an error now, and not at the first event
    return options
