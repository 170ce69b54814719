from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from stopscan import StopMatch
from stopscan_clients._machines.machine import Options
from stopscan_clients._objects.streams import AsyncEventStream, E, Events, EventStream
from stopscan_clients._steps import Steps


class Helper(Events[E]):
    """The events of a client's ``stream()`` helper, which reads the scanned stream instead of its own. The helper's own
    methods and attributes are here, too."""

    _KIND: ClassVar[Any]  # of the scanned stream

    def __init__(self, helper: Any, options: Options) -> None:
        self._scanned: Any = self._KIND(helper._raw_stream, options)
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

    def _shut(self) -> Steps:
        yield self._scanned.close()


class HelperStream(Helper[E], EventStream[E]):
    _KIND = EventStream


class AsyncHelperStream(Helper[E], AsyncEventStream[E]):
    _KIND = AsyncEventStream


def is_helper(stream: Any) -> bool:
    """Whether this is what the ``stream()`` methods of openai and anthropic give: it reads ``_raw_stream``, and makes
    more events of that stream's."""
    return type(stream).__module__.startswith(("openai.", "anthropic.")) and hasattr(stream, "_raw_stream")
