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
    """Reads one stream, event by event, and remembers calls and refusals that come before the reason.

    Some APIs send calls or a refusal in one event, and the reason, which is then only "stop", in another event. `api`
    is the name of a `from_*`, without the prefix. Any other name is a `ValueError`.

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
        """Returns the finish that `event` reports, or None while the stream goes on. The last finish counts.

        The errors are those of `from_*`. If there are several choices, the choice with the lowest index so far counts.
        To read another choice, feed that choice alone to a `Reading` of its own.
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
