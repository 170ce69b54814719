from __future__ import annotations

from typing import get_args

from stopscan.finish._apis import APIS, Api
from stopscan.finish._finish import Finish
from stopscan.finish._read import decide


class Reading:
    """Reads one stream, event by event, and remembers calls and refusals that come before the reason.

    Some APIs send calls or a refusal in one event, and only "stop" as the reason in a later event. `api` is the name of
    a `from_*` function without the prefix. Any other name raises `ValueError`.

    >>> reading = Reading("ollama")
    >>> reading.feed({"message": {"content": "", "tool_calls": [{"function": {"name": "f"}}]}, "done": False})
    >>> reading.feed({"message": {"content": ""}, "done": True, "done_reason": "stop"}).reason
    'tool_calls'
    """

    __slots__ = ("_api", "_content", "_index")

    def __init__(self, api: Api, /) -> None:
        if api not in get_args(Api):
            raise ValueError(f"unknown api {api!r}; the apis are {', '.join(APIS)}")
        self._api = APIS[api]
        self._content: Finish | None = None
        self._index: int | None = None  # of the choice that counts

    def feed(self, event: object, /) -> Finish | None:
        """Returns the finish that `event` reports, or None while the stream goes on.

        If several events report a finish, the last one counts. If the stream has several choices, the choice with the
        lowest index so far counts. To read another choice, feed that choice alone to a `Reading` of its own. Raises the
        errors of `from_*`.
        """
        found = self._api.find(event)
        if found.number is not None and found.choice is not None:
            if self._index is None or found.number < self._index:
                self._index, self._content = found.number, None
            if found.number > self._index:
                found = found._replace(choice=None, word=None)
        content = self._api.content(found.choice)
        if content is not None and (self._content is None or content.reason == "tool_calls"):
            self._content = content
        finish = self._api.finish(event, found)
        return finish and decide(finish, self._content)
