"""Finds stops in streams of dicts, such as boto3's events or parsed lines of JSON, and in whole answers."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from inspect import isawaitable
from threading import Lock
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from stopscan import StopMatch, StopSet
from stopscan_clients.machine import Machine, ScanOptions, machine_of
from stopscan_clients.steps import at_once, called, run
from stopscan_clients.whole import cut

E = TypeVar("E", bound=Mapping[str, Any])  # the caller's type of events


def instead(value: Any) -> str:
    """Returns the error message for a value that is not a dict. The message says what to use instead."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return (
        f"{kind} is not a dict: give its client a StopTransport (http_client=httpx.Client(transport=...)), "
        "or pass only the texts to stopscan.scan"
    )


class _Events(Generic[E]):
    """The code that ``EventStream`` and ``AsyncEventStream`` share. They differ only in how they wait."""

    _CLOSERS: ClassVar[tuple[str, ...]]  # the methods that close a source

    def __init__(self, source: Any, iterator: Any, step: Callable[[], Any], options: ScanOptions) -> None:
        self._next, self._options = step, options
        sources = [source] if iterator is source else [source, iterator]
        self._closers = [method for each in sources if (method := self._closer(each)) is not None]
        self._machine: Machine | None = None
        self._matches: dict[int, StopMatch] = {}
        self._ready: deque[Any] = deque()
        self._turn = Lock()  # locked by the thread or task that reads or closes
        self._closing = False  # a stop has ended the stream, and the source must be closed
        self._closed = False
        self._over: Exception | None = None  # raised after the events that are ready

    @property
    def matches(self) -> Mapping[int, StopMatch]:
        """A live mapping from the index of a choice to its ``StopMatch``: it gets new matches while the stream is read.
        The ``offset`` of a match is an offset in the text of the choice. In APIs with content parts or blocks, it is an
        offset in the text of the part or block."""
        return MappingProxyType(self._matches)

    @property
    def held(self) -> dict[int, str]:
        """The held text of each choice."""
        return {} if self._machine is None else self._machine.held

    @property
    def closes(self) -> bool:
        """Whether the source has a method that closes it at a stop. A source without one, such as a list's iterator, is
        just not read any further."""
        return len(self._closers) > 0

    def __repr__(self) -> str:
        state = "open" if self._over is None else "over"
        return f"<{type(self).__name__} {state}, matches={self._matches}>"

    def _feed(self, event: Any) -> None:
        """Adds the output for an event to the events that are ready."""
        if type(event) is not dict:  # a subclass of dict is refused, too: it may have the text in attributes
            raise TypeError(instead(event))
        if self._machine is None and len(self._options.stops):
            self._machine = machine_of(event, self._options, self._matches)
        if self._machine is None:
            self._ready.append(event)
            return
        self._ready.extend([out for out, _ in self._machine.feed(event, event)])
        self._closing = self._machine.ended and not self._options.drain

    def _failed(self, error: Exception) -> None:
        """Handles the end of the source, or an error of the source or of an event. An error before any stop is raised
        at once. After a stop, the reader first gets the events that are ready, and then the error."""
        ends = isinstance(error, StopAsyncIteration)
        if not (ends or self._matches):
            raise error
        self._over = error
        if self._machine is not None:
            self._ready.extend([out for out, _ in self._machine.end(False if ends else None)])

    async def _step(self) -> Any:
        with self._taken():
            while not self._ready or self._closing:
                if self._closing:
                    await self._after_stop()
                elif self._over is not None:
                    error, self._over = self._over, StopAsyncIteration()
                    raise error
                else:
                    try:
                        self._feed(await self._next())
                    except Exception as error:
                        self._failed(error)
            return self._ready.popleft()

    async def _after_stop(self) -> None:
        # If the source is being closed when this step is cancelled, `_closing` stays true. So the next step closes the
        # source, and yields the events that are ready.
        over: Exception = StopAsyncIteration()
        try:
            await self._shut()
        except Exception as error:  # this error is raised after the events up to the stop
            over = error
        self._over, self._closing = over, False

    async def _shut(self) -> None:
        if self._closed:
            return
        async with AsyncExitStack() as stack:  # closes the source even if closing its iterator fails
            for close in self._closers:
                stack.push_async_callback(called, close)
        self._closed = True

    async def _leave(self) -> None:
        with self._taken():
            await self._shut()
            self._over = self._over or StopAsyncIteration()

    def _closer(self, source: Any) -> Any:
        methods = (getattr(source, name, None) for name in self._CLOSERS)
        return next((method for method in methods if callable(method)), None)

    @contextmanager
    def _taken(self) -> Iterator[None]:
        if not self._turn.acquire(blocking=False):
            raise RuntimeError("the stream is in use by another thread or task")
        try:
            yield
        finally:
            self._turn.release()


class EventStream(_Events[E], Iterator[E]):
    """An iterator over the events of a stream up to a stop, and a context manager. ``scan_events`` makes it."""

    _CLOSERS = ("close",)

    def __init__(self, source: Any, options: ScanOptions) -> None:
        iterator = iter(source)
        super().__init__(source, iterator, at_once(iterator.__next__), options)

    def __next__(self) -> E:
        try:
            event: E = run(self._step())
        except StopAsyncIteration:
            raise StopIteration from None
        return event

    def close(self) -> None:
        """Closes the source, as a stop does. The stream ends after the events that are ready. Held text stays in
        ``held``.

        Raises the error of the source if it cannot be closed, and ``RuntimeError`` while another thread uses the
        stream. In both cases the stream stays open, and ``close`` can be called again.
        """
        run(self._leave())

    def __enter__(self) -> EventStream[E]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncEventStream(_Events[E], AsyncIterator[E]):
    """The async twin of ``EventStream``. ``ascan_events`` makes it."""

    _CLOSERS = ("aclose", "close")

    def __init__(self, source: Any, options: ScanOptions) -> None:
        iterator = aiter(source)
        super().__init__(source, iterator, iterator.__anext__, options)

    async def __anext__(self) -> E:
        event: E = await self._step()
        return event

    async def aclose(self) -> None:
        """The async twin of ``EventStream.close``. Raises ``RuntimeError`` while another task uses the stream."""
        await self._leave()

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
    """Returns an iterator over ``events`` up to a stop in the assistant's text. Its ``matches`` tell which stop fired.

    - ``events`` is an iterable of dicts: boto3's stream, or parsed lines of JSON. Objects of a client library raise
      ``TypeError``: give the client a ``StopTransport`` instead.
    - When stops have ended all choices, the source is closed, so that the server stops generating, and the closing
      events of the API follow. ``drain=True`` reads the source to its end instead, and yields only the usage from it.
    - ``choices`` is the number of choices that the request asks for. The default is 1.
    - An unchanged event is the same object. A cut event is a copy.
    - Text that may be the beginning of a stop is held. Its event comes without the held text, which comes later,
      at the latest before the event that closes its part.
    - If the source raises, the error is raised here, and ``held`` has the held text.

    >>> chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ["one E", "ND", "two"]]
    >>> stream = scan_events(chunks, "END")
    >>> [chunk["choices"][0]["delta"].get("content") for chunk in stream]
    ['one ', '', None]
    >>> stream.matches[0].sequence
    'END'
    """
    if hasattr(events, "__aiter__"):
        raise TypeError(f"{type(events).__name__} is an async iterable: use ascan_events")
    return EventStream(events, _options(stop, include_stop, drain, region, choices))


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
    """Returns an async iterator over ``events`` up to a stop. The options are those of ``scan_events``.

    If a step is cancelled, no event is lost: the next step yields the events that were ready.

    >>> async def text(events):
    ...     async with ascan_events(events, "Observation:") as stream:
    ...         return "".join([event["choices"][0]["delta"].get("content") or "" async for event in stream])
    """
    if isawaitable(events):
        raise TypeError(f"{type(events).__name__} is not an async iterable: await it first")
    return AsyncEventStream(events, _options(stop, include_stop, drain, region, choices))


def truncate_response(response: E, stop: StopSet | str | Iterable[str] | None, /, *, include_stop: bool = False) -> E:
    """Returns a whole answer up to the stop, or the same dict if there is none.

    An error of the API is returned as it is. Raises ``TypeError`` for an answer of an unknown API, and for an object of
    a client library.

    >>> truncate_response({"choices": [{"index": 0, "message": {"content": "one END two"}}]}, "END")
    {'choices': [{'index': 0, 'message': {'content': 'one '}, 'finish_reason': 'stop', 'matched_stop': 'END'}]}
    """
    if type(response) is not dict:
        raise TypeError(instead(response))
    options = _options(stop, include_stop, False, None, None)
    kept: E = cut(options, response, {})
    return kept


def _options(stop: Any, include_stop: Any, drain: Any, region: Any, choices: Any) -> ScanOptions:
    if choices is not None and (type(choices) is not int or choices < 1):
        raise ValueError(f"choices must be a positive integer, not {choices!r}")
    begin = {} if region is None else {"region": region}
    options = ScanOptions(StopSet(stop), include_stop, drain, begin, 1 if choices is None else choices)
    options.scanner()  # made only to raise an error for a wrong option before the first event
    return options
