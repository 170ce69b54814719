"""What the readers have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from stopscan.finish._finish import Finish
from stopscan.finish._words import GOING_ON, WORDS

NO_PAYLOAD = (Sequence, int, float, complex, set, frozenset, type(None))
# Reasons whose words say too little: the content may say more.
OPEN = ("eos", "stop_token", "unknown")


class Reader(NamedTuple):
    """How an API is read, in three steps. A whole answer and an event of a stream are read by the same steps."""

    name: str  # what the API's word is called, for errors
    choices: Callable[[object], Sequence[Any] | None]  # None: the payload itself is the only one
    ended: Callable[[Any, Any], Finish | None]  # of a choice and its payload: what the word alone says
    content: Callable[[Any], Finish | None]  # of a choice: "tool_calls" or "refusal", if it brings such a thing

    def read(self, payload: object) -> Finish | None:
        """The finish of one payload."""
        choices = self.choices(payload)
        choice = payload if choices is None else chosen(choices)
        finish = self.finish(choice, payload)
        return finish if finish is None or finish.reason not in OPEN else decided(finish, self.content(choice))

    def finish(self, choice: Any, payload: object) -> Finish | None:
        """What the word alone says; without a word an error ends the stream, anything else lets it go on."""
        finish = self.ended(choice, payload)
        if finish is not None and finish.reason not in OPEN:
            return finish
        return _failed(payload, choice) or finish or self._unfinished(payload)

    def _unfinished(self, payload: object) -> None:
        if not isinstance(payload, dict) and isinstance(payload, NO_PAYLOAD):
            raise TypeError(f"{self.name} is read from a dict or an object, not {type(payload).__name__}")


def whole(payload: object) -> None:
    """The `choices` of an API that has none."""


def silent(choice: object) -> None:
    """The `content` of an API whose word is enough."""


def decided(finish: Finish, content: Finish | None) -> Finish:
    """The report, by the content where the word leaves it open."""
    if content is None or finish.reason not in OPEN:
        return finish
    return Finish(content.reason, raw=content.raw or finish.raw)


def chosen(choices: Sequence[Any]) -> Any:
    """The choice that counts: the sole one, else the one of the lowest index. With several choices, each chunk may
    carry any one of them."""
    return choices[0] if len(choices) == 1 else min(choices, key=place, default=None)


def place(choice: object) -> int:
    """The index of a choice. Some servers write it as a string, or leave it out."""
    index = field(choice, "index")
    if isinstance(index, str) and index.isdecimal() and len(index) < 10:
        return int(index)
    return index if isinstance(index, int) else 0


def field(part: object, name: str) -> Any:
    """The field of a dict or object, None if it is not there."""
    if isinstance(part, dict):
        return part.get(name)
    value = getattr(part, name, None)
    return part.get(name) if value is None and isinstance(part, Mapping) else value


def either(part: object, *names: str) -> Any:
    """The first of these fields that is there."""
    for name in names:
        value = field(part, name)
        if value is not None:
            return value
    return None


def items(value: object) -> Sequence[Any]:
    """The list, or an empty one for what is none."""
    if value is None or isinstance(value, list):
        return value or ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def spoken(word: object) -> str | None:
    """The word as a plain string, None if there is none: so it is with those that are said while the stream goes on."""
    if isinstance(word, Enum):  # google-genai's are strings, those of the SDK before it numbers with a name
        word = word.value if isinstance(word.value, str) else word.value and word.name
    if not word or word in GOING_ON:
        return None
    return str(word)


def finish(word: str, stops: Iterable[object] = ()) -> Finish:
    """The report of a word; the first of `stops` that is one counts if the word may mean a stop. What follows a colon
    explains the word: "content_filter: PROHIBITED_CONTENT".
    """
    reason = WORDS.get(word.lower().replace("-", "_").partition(": ")[0], "unknown")
    if reason in ("eos", "stop_sequence"):
        for stop in stops:
            if isinstance(stop, str) and stop:
                return Finish("stop_sequence", stop, raw=word)
            if isinstance(stop, int) and not isinstance(stop, bool) and stop >= 0:
                return Finish("stop_token", stop, raw=word)
    return Finish(reason, raw=word)


# What names a call, and what it is called with, in the APIs' spellings. OpenAI has them in `function` or `custom`.
CALL = ("name", "id", "call_id", "toolUseId", "arguments", "args", "partialArgs", "partial_args", "input")


def is_call(call: object, /) -> bool:
    """Returns whether this is a tool call: it has a name, an id or arguments that are not empty.

    Some servers send stubs of calls beside ordinary text, with every field empty. `call` is one call of any API, as a
    dict or as an object of its client; anything else is no call.

    >>> is_call({"index": 0, "function": {"arguments": '{"city"'}})
    True
    >>> is_call({"name": "", "arguments": ""})
    False
    """
    parts = (call, field(call, "function"), field(call, "custom"))
    return any(field(part, name) for part in parts for name in CALL)


def _failed(payload: object, choice: object) -> Finish | None:
    return Finish("abort") if field(payload, "error") or field(choice, "error") else None
