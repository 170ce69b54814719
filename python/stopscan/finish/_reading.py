from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from stopscan.finish._anthropic import ANTHROPIC
from stopscan.finish._bedrock import BEDROCK
from stopscan.finish._engines import LLAMA_CPP, OLLAMA, SGLANG, TGI
from stopscan.finish._finish import Finish
from stopscan.finish._gemini import GEMINI
from stopscan.finish._openai import OPENAI
from stopscan.finish._read import Reader, chosen, decided, place
from stopscan.finish._responses import RESPONSES

Api: TypeAlias = Literal[
    "anthropic", "openai", "responses", "ollama", "sglang", "llama_cpp", "gemini", "bedrock", "tgi"
]  # fmt: skip
READERS: dict[Api, Reader] = {
    "anthropic": ANTHROPIC,
    "openai": OPENAI,
    "responses": RESPONSES,
    "ollama": OLLAMA,
    "sglang": SGLANG,
    "llama_cpp": LLAMA_CPP,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
    "tgi": TGI,
}


class Reading:
    """Reads one stream, event by event, where no single event tells: calls and refusals come before the reason, which
    is then a mere "stop". `api` is the name of a `from_*`; another name is a `ValueError`.

    >>> reading = Reading("ollama")
    >>> reading.feed({"message": {"content": "", "tool_calls": [{"function": {"name": "f"}}]}, "done": False})
    >>> reading.feed({"message": {"content": ""}, "done": True, "done_reason": "stop"}).reason
    'tool_calls'
    """

    __slots__ = ("_content", "_index", "_reader")

    def __init__(self, api: Api, /) -> None:
        if api not in get_args(Api):
            raise ValueError(f"unknown api {api!r}; it is one of {', '.join(READERS)}")
        self._reader = READERS[api]
        self._content: Finish | None = None
        self._index: int | None = None  # of the choice that is read

    def feed(self, event: object, /) -> Finish | None:
        """Returns the finish that `event` reports, None while the stream goes on; the last report stands. Errors are
        those of `from_*`.

        Of several choices, the one of the lowest index so far counts. For another one, feed each choice by itself to a
        `Reading` of its own.
        """
        choice = self._choice(event)
        content = None if choice is None else self._reader.content(choice)
        if content is not None and (self._content is None or content.reason == "tool_calls"):
            self._content = content
        finish = self._reader.finish(choice, event)
        return finish and decided(finish, self._content)

    def _choice(self, event: object) -> object:
        choices = self._reader.choices(event)
        if choices is None:
            return event
        choice = chosen(choices)
        if choice is None:
            return None
        index = place(choice)
        if self._index is None or index < self._index:
            self._index, self._content = index, None
        return choice if index == self._index else None
