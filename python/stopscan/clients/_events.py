from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from stopscan import StopMatch, StopSet
from stopscan.clients._apis import machine_of
from stopscan.clients._machine import Machine, Options
from stopscan.clients._objects import ObjectMachine, check, json_of, refuse_helper
from stopscan.clients._request import choices_asked

E = TypeVar("E")

BUSY = "the stream is in use by another thread or task"


class Events(Generic[E]):
    """What the sync and the async iterator share: all but the waiting."""

    _closers: tuple[str, ...]  # the methods that close a source

    def __init__(self, stream: Any, options: Options) -> None:
        self._stream = stream
        self._iterator: Any
        self._options = options
        self._machine: Machine | ObjectMachine | None = None
        self._matches: dict[int, StopMatch] = {}
        self._ready: deque[E] = deque()
        self._begun = False
        self._reading = True  # False: the source has no more for us
        self._closed = False
        self._error: BaseException | None = None  # comes after the events that are ready

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
        # LiteLLM's wrapper closes what it wraps, if that can be closed.
        below = [getattr(source, "completion_stream", None) or source for source in (self._iterator, self._stream)]
        return any(closer(source, *self._closers) is not None for source in below)

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
        plain = type(event) is dict
        self._machine = machine(self._options) if plain else ObjectMachine(machine, self._options, event)
        self._matches = self._machine.matches
        self._feed = self._machine.feed  # type: ignore[method-assign]
        return self._feed(event)

    def _give(self, out: list[E]) -> None:
        self._ready.extend(out)
        if self._machine is not None and self._machine.ended and not self._options.drain:
            self._reading = False

    def _end(self) -> None:
        """The source has ended."""
        self._reading = False
        if self._machine is not None:
            self._ready.extend(self._machine.end())

    def _failed(self, error: Exception) -> bool:
        """The source has failed. False: the error comes at once. True: stops had ended all, and that comes first."""
        if self._machine is None or not self._machine.ended:
            return False
        self._end()
        self._error = error
        return True

    def _stop(self, stop: Exception) -> None:
        error, self._error = self._error, None
        raise error or stop


class Helper(Events[E]):
    """The events of a client's ``stream()`` helper, which reads the scanned stream instead of its own. The helper's own
    methods and attributes are here, too."""

    _kind: Any  # of the scanned stream

    def __init__(self, helper: Any, options: Options) -> None:
        self._scanned = self._kind(helper._raw_stream, options)
        helper._raw_stream = self._scanned
        super().__init__(helper, options)

    @property
    def matches(self) -> Mapping[int, StopMatch]:
        matches: Mapping[int, StopMatch] = self._scanned.matches
        return matches

    @property
    def held(self) -> dict[int, str]:
        held: dict[int, str] = self._scanned.held
        return held

    def __getattr__(self, name: str) -> Any:
        # The helper's own: `get_final_message`, `current_completion_snapshot`, `text_stream`, …
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._stream, name)

    def _feed(self, event: E) -> None:
        if not self._scanned._begun:
            raise ValueError("this helper was read before it was given to be scanned")

    def _close(self) -> Any:
        return self._scanned.close()


def is_helper(stream: Any) -> bool:
    """Whether this is what the ``stream()`` methods of openai and anthropic give: it reads ``_raw_stream``, and makes
    more events of that stream's."""
    return type(stream).__module__.startswith(("openai.", "anthropic.")) and hasattr(stream, "_raw_stream")


def options_of(
    stream: Any, stop: Any, include_stop: bool, drain: bool, region: str | None, choices: int | None
) -> Options:
    asked: Callable[[], int] = partial(choices_asked, stream) if choices is None else lambda: choices
    options = Options(StopSet(stop), include_stop, drain, {"region": region}, choices=asked)
    options.scanner()  # a region that is not there is an error now, and not at the first event
    return options


def closer(source: Any, *names: str) -> Any:
    """Returns the first method of these names, of the source or of the stream that LiteLLM's wrapper has in it."""
    for owner in (source, getattr(source, "completion_stream", None)):
        for name in names:
            method = getattr(owner, name, None)
            if callable(method):
                return method
    return None
