from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from stopscan import StopSet
from stopscan.clients._events import BUSY, Events, Helper, closer, is_helper, options_of
from stopscan.clients._machine import Options

E = TypeVar("E")


class EventStream(Events[E], Iterator[E]):
    """The events of an API's stream up to a stop: an iterator and a context manager. ``scan_events`` makes it."""

    _closers = ("close",)

    def __init__(self, stream: Any, options: Options) -> None:
        super().__init__(stream, options)
        self._turn = [None]  # who takes it may read or close; a list's pop is atomic, and a lock costs three times that
        # A client's stream makes a generator around itself when it is iterated; its own `next` does without.
        self._iterator: Iterator[E] = stream if hasattr(type(stream), "__next__") else iter(stream)
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
                if not self._reading:
                    self._stop(StopIteration())
                try:
                    event = self._next()
                except StopIteration:
                    self._end()
                except Exception as error:
                    if not self._failed(error):
                        raise
                else:
                    out = self._feed(event)
                    if out is None:
                        return event
                    self._give(out)
                    if not self._reading:
                        self._close_after_stop()
            return self._ready.popleft()
        finally:
            self._turn.append(None)

    def _close_after_stop(self) -> None:
        try:
            self._close()
        except Exception as error:  # the text before the stop comes first
            self._error = error

    def _close(self) -> None:
        if self._closed:
            return
        try:
            _close(self._iterator)
        finally:
            if self._stream is not self._iterator:
                _close(self._stream)
        self._closed = True

    def close(self) -> None:
        """Closes the source, as a stop does. The stream ends with the events that are ready. Held text stays in
        ``held``.

        If the source cannot be closed, the error reaches the caller. The stream then goes on, and can be closed again.
        The ``RuntimeError`` while another thread is in the stream is such an error.
        """
        try:
            self._turn.pop()
        except IndexError:
            raise RuntimeError(BUSY) from None
        try:
            self._close()
            self._reading = False
        finally:
            self._turn.append(None)

    def __enter__(self) -> EventStream[E]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _close(source: Any) -> None:
    close = closer(source, "close")
    if close is not None:
        close()


class HelperStream(Helper[E], EventStream[E]):
    _kind = EventStream


def scan_events(
    stream: Iterable[E],
    stop: StopSet | str | Iterable[str] | None,
    /,
    *,
    include_stop: bool = False,
    drain: bool = False,
    region: str | None = None,
    choices: int | None = None,
) -> EventStream[E]:
    """Returns an iterator of the stream's events up to a stop in the assistant's text, with ``matches``.

    - ``stream`` is the stream that an official client (openai, anthropic, google-genai, ollama, boto3) or LiteLLM
      returns for a streaming request, or any iterable of events of the same shapes. A ``stream()`` helper accumulates
      only the events that the iterator gives out. Any other object is a ``TypeError``.
    - When stops have ended all choices, the stream is closed, so the server generates no more. The closing events of
      the API follow, without usage. ``drain=True`` reads the rest of the stream for the usage, and gives out nothing
      else.
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
    if not hasattr(stream, "__iter__"):
        hint = "use ascan_events" if hasattr(stream, "__aiter__") else "it is no iterable of events"
        raise TypeError(f"scan_events cannot read {type(stream).__name__}: {hint}")
    options = options_of(stream, stop, include_stop, drain, region, choices)
    return (HelperStream if is_helper(stream) else EventStream)(stream, options)
