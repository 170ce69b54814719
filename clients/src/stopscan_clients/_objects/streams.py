from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from stopscan import StopMatch
from stopscan_clients._machines.apis import machine_of
from stopscan_clients._machines.machine import Machine, Options
from stopscan_clients._objects.events import Objects, check, json_of, refuse_helper
from stopscan_clients._objects.genai import http_responses
from stopscan_clients._steps import Steps, arun, run

E = TypeVar("E")

BUSY = "the stream is in use by another thread or task"


class Events(Generic[E]):
    """What the sync and the async iterator share: all but the waiting."""

    _CLOSERS: ClassVar[tuple[str, ...]]  # the methods that close a source
    _STOP: ClassVar[type[Exception]]

    def __init__(self, stream: Any, options: Options) -> None:
        self._stream = stream
        self._iterator: Any
        self._next: Any
        self._options = options
        self._machine: Machine | None = None
        self._matches: dict[int, StopMatch] = {}
        self._ready: deque[E] = deque()
        self._turn = [None]  # who takes it may read or close; a list's pop is atomic, and a lock costs three times that
        self._begun = False
        self._closing = False  # a stop has ended the stream, and the source is not closed yet
        self._closed = False
        self._closable: bool | None = None  # noted before the source is closed: afterwards nothing tells
        self._over: Exception | None = None  # comes after the events that are ready: the source has no more for us

    @property
    def response(self) -> Any:
        """The HTTP response of the client's stream, where that has one."""
        return self._stream.response

    @property
    def matches(self) -> Mapping[int, StopMatch]:
        """The stops that have fired, by the index of the choice: 0 where an API has no choices. The offset is in the
        choice's own text, or that of the content part or block."""
        return MappingProxyType(self._matches)

    @property
    def closes(self) -> bool:
        """Whether the source can be closed. If not, it goes on generating after a stop, as some of LiteLLM's do."""
        if self._closable is not None:
            return self._closable
        # LiteLLM's wrapper closes what it wraps, if that can be closed.
        below = [getattr(source, "completion_stream", None) or source for source in (self._iterator, self._stream)]
        return any(_closer(source, self._CLOSERS) is not None for source in below)

    @property
    def held(self) -> dict[int, str]:
        """The text that may still turn into a hidden stop, by the index of the choice that withholds it."""
        return self._machine.held if self._machine is not None else {}

    def _feed(self, event: E) -> list[E] | None:
        """``Machine.feed``, which takes the place of this method when an event has told the API."""
        self._begun = True
        check(event)
        json = json_of(event)
        refuse_helper(json)
        machine = machine_of(json)
        if machine is None:
            return None
        self._machine = machine(self._options, None if type(event) is dict else Objects(event, machine.API))
        self._machine.matches = self._matches
        self._feed = self._machine.feed  # type: ignore[method-assign]
        return self._feed(event)

    def _give(self, out: list[E]) -> None:
        self._ready.extend(out)
        self._closing = self._machine is not None and self._machine.ended and not self._options.drain

    def _failed(self, error: Exception) -> None:
        """The source has ended, or failed: that is raised at once, but after a stop behind the events that are left."""
        machine = self._machine
        goes_on = not isinstance(error, self._STOP) and (machine is None or not machine.ended)
        if self._over is not None or goes_on:
            raise error
        self._end(error)
        if machine is not None:
            self._ready.extend(machine.rest())

    def _end(self, error: Exception | None = None) -> None:
        self._over = error or self._STOP()
        self._next = self._past

    def _past(self) -> Any:
        error, self._over = self._over, self._STOP()
        assert error is not None
        raise error

    def _after_stop(self) -> Steps:
        # A cancellation leaves the events ready and the source to be closed with the next step.
        try:
            yield from self._shut()
        except Exception as error:  # the text before the stop comes first
            self._end(error)
        else:
            self._end()
        self._closing = False

    def _shut(self) -> Steps:
        if self._closed:
            return
        self._closable = self.closes
        try:
            yield from _closing(self._iterator, self._CLOSERS)
        finally:
            if self._stream is not self._iterator:
                yield from _closing(self._stream, self._CLOSERS)
        self._closed = True

    def _leave(self) -> Steps:
        yield from self._shut()
        if self._over is None:
            self._end()

    @contextmanager
    def _taken(self) -> Iterator[None]:
        try:
            self._turn.pop()
        except IndexError:
            raise RuntimeError(BUSY) from None
        try:
            yield
        finally:
            self._turn.append(None)


class EventStream(Events[E], Iterator[E]):
    """The events of an API's stream up to a stop: an iterator and a context manager. ``scan_events`` makes it."""

    _CLOSERS, _STOP = ("close",), StopIteration

    def __init__(self, stream: Any, options: Options) -> None:
        super().__init__(stream, options)
        # A client's stream makes a generator around itself when it is iterated; its own `next` does without.
        self._iterator = stream if hasattr(type(stream), "__next__") else iter(stream)
        self._next = self._iterator.__next__

    def __iter__(self) -> EventStream[E]:
        return self

    def __next__(self) -> E:
        try:
            self._turn.pop()
        except IndexError:
            raise RuntimeError(BUSY) from None
        try:
            while not self._ready:
                try:
                    event: E = self._next()
                except Exception as error:
                    self._failed(error)
                else:
                    out = self._feed(event)
                    if out is None:
                        return event
                    self._give(out)
                    if self._closing:
                        run(self._after_stop())
            return self._ready.popleft()
        finally:
            self._turn.append(None)

    def close(self) -> None:
        """Closes the source, as a stop does. The stream ends with the events that are ready. Held text stays in
        ``held``.

        If the source cannot be closed, the error reaches the caller. The stream then goes on, and can be closed again.
        The ``RuntimeError`` while another thread is in the stream is such an error.
        """
        with self._taken():
            run(self._leave())

    def __enter__(self) -> EventStream[E]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncEventStream(Events[E], AsyncIterator[E]):
    """The async twin of ``EventStream``. ``ascan_events`` makes it."""

    _CLOSERS, _STOP = ("aclose", "close"), StopAsyncIteration

    def __init__(self, stream: Any, options: Options) -> None:
        super().__init__(stream, options)
        self._iterator = stream if hasattr(type(stream), "__anext__") else aiter(stream)
        self._next = self._iterator.__anext__

    def __aiter__(self) -> AsyncEventStream[E]:
        return self

    async def __anext__(self) -> E:
        try:
            self._turn.pop()
        except IndexError:
            raise RuntimeError(BUSY) from None
        try:
            while not self._ready or self._closing:
                if self._closing:
                    await arun(self._after_stop())
                    continue
                try:
                    event: E = await self._next()
                except Exception as error:
                    self._failed(error)
                else:
                    out = self._feed(event)
                    if out is None:
                        return event
                    self._give(out)
            return self._ready.popleft()
        finally:
            self._turn.append(None)

    async def aclose(self) -> None:
        """The async twin of ``EventStream.close``: the error is that of another task in the stream."""
        with self._taken():
            await arun(self._leave())

    close = aclose  # what the clients' own streams call it

    async def __aenter__(self) -> AsyncEventStream[E]:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _closing(source: Any, names: tuple[str, ...]) -> Steps:
    for open_ in (source, *http_responses(source)):
        close = _closer(open_, names)
        if close is not None:
            yield close()


def _closer(source: Any, names: tuple[str, ...]) -> Any:
    """The first method of these names, of the source or of the stream that LiteLLM's wrapper has in it."""
    for owner in (source, getattr(source, "completion_stream", None)):
        for name in names:
            method = getattr(owner, name, None)
            if callable(method):
                return method
    return None
