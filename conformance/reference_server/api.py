"""The base class of the APIs: a path, the form of a request, and how answers, errors and events are written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from reply import Reply
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response


class Api:
    path: str
    body: Any  # the pydantic model of a request. Its `ask()` returns an `Ask`, or None if there is no prompt

    def error(self, status: int, message: str) -> dict[str, Any]:
        raise NotImplementedError

    def broken(self, reply: Reply, message: str) -> list[Any]:
        """The last events of a stream whose engine has failed."""
        return [event(self.error(500, message))]

    async def whole(self, reply: Reply) -> dict[str, Any]:
        raise NotImplementedError

    def events(self, reply: Reply) -> AsyncIterator[Any]:
        raise NotImplementedError

    def streamed(self, events: AsyncIterator[Any]) -> Response:
        return EventSourceResponse(events)


def event(data: dict[str, Any], name: str | None = None) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data), event=name)
