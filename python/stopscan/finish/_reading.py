from __future__ import annotations

from typing import get_args

from stopscan.finish._apis import APIS, ApiName
from stopscan.finish._finish import Finish
from stopscan.finish._read import DONE, decide


class Reading:
    """Reads one stream, event by event, and remembers calls and refusals that come before the reason.

    Some APIs send calls or a refusal in one event, and only "stop" as the reason in a later event. `api` is the name of
    a `from_*` function without the prefix. Any other name raises `ValueError`. Call `end` after the last event: only
    `end` can say that a stream broke off.

    >>> reading = Reading("ollama")
    >>> reading.feed({"message": {"content": "", "tool_calls": [{"function": {"name": "f"}}]}, "done": False})
    >>> reading.feed({"message": {"content": ""}, "done": True, "done_reason": "stop"}).reason
    'tool_calls'
    """

    __slots__ = ("_api", "_content", "_finish", "_index", "_is_over")

    def __init__(self, api: ApiName, /) -> None:
        if api not in get_args(ApiName):
            raise ValueError(f"unknown api {api!r}; the apis are {', '.join(APIS)}")
        self._api = APIS[api]
        self._content: Finish | None = None
        self._finish: Finish | None = None  # the last finish that an event reported
        self._index: int | None = None  # the index of the choice that counts
        self._is_over = False

    def feed(self, event: object, /) -> Finish | None:
        """Returns the finish that `event` reports, or None while the stream goes on.

        If several events report a finish, the last one counts. If the stream has several choices, the choice with the
        lowest index so far counts. To read another choice, feed that choice alone to another `Reading`.

        `event` may also be the string "[DONE]", with which many streams end. The result is then None, because "[DONE]"
        does not say why the stream ended. Raises the errors of `from_*`, and `ValueError` after `end`.
        """
        if self._is_over:
            raise ValueError("feed after end: a Reading reads one stream")
        if event == DONE:
            self._finish = self._finish or Finish("unknown")
            return None
        answer = self._api.find(event)
        if answer.number is not None and answer.choice is not None:
            if self._index is None or answer.number < self._index:
                self._index, self._content, self._finish = answer.number, None, None
            if answer.number > self._index:
                answer = answer._replace(choice=None, word=None)
        content = self._api.content(answer.choice)
        if content is not None and (self._content is None or content.reason == "tool_calls"):
            self._content = content
        finish = self._api.finish(answer)
        if finish is not None:
            self._finish = finish
        elif self._finish is None and self._api.ends(event):
            self._finish = Finish("unknown")
        return finish and decide(finish, self._content)

    def end(self) -> Finish:
        """Returns why the stream ended: the last finish that an event reported, or "abort" if it broke off.

        Call it when no more events come. A stream broke off if no event said that it ended: the server or a proxy
        closed the connection, and the text is not whole. If only "[DONE]" or Anthropic's `message_stop` said it, the
        reason is "unknown". Later calls of `end` return the same, and a later `feed` raises `ValueError`.

        >>> reading = Reading("openai")
        >>> reading.feed({"choices": [{"index": 0, "delta": {"content": "The ans"}, "finish_reason": None}]})
        >>> reading.end().reason
        'abort'
        """
        self._is_over = True
        return decide(self._finish or Finish("abort"), self._content)
