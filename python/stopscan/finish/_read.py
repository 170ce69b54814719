"""The one reader of all APIs. An API is a `Row`: paths as data. `_apis.py` has the table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from stopscan.finish._finish import Finish, Reason
from stopscan.finish._words import GOING_ON, WORDS

# Field names from the outside to the inside. "*" stands for each element of a list, and () for the payload itself.
Path: TypeAlias = tuple[str, ...]
# A path, and the value that is at its end. None: any value that is not empty.
Sign: TypeAlias = tuple[Path, "str | None"]

NO_PAYLOAD = (Sequence, int, float, complex, set, frozenset, type(None))
# Reasons whose words say too little: the content may say more.
OPEN = ("eos", "stop_token", "unknown")
# What wraps an answer of any API: Code Assist and Gemini's batches, then OpenAI's, Anthropic's and Bedrock's batches.
WRAPPERS = "response response.body result.message modelOutput"
# A word may be an object with the word in one field, and the stop in another: sglang's, AI21's, Vercel's (`unified`).
WORD_OBJECTS = ("type", "reason", "unified")
STOP_OBJECTS = ("matched", "sequence")
# What names a call, and what it is called with, in the APIs' spellings. OpenAI has them in `function` or `custom`.
CALL = ("name", "id", "call_id", "toolUseId", "arguments", "args", "partialArgs", "partial_args", "input")


def paths(text: str) -> tuple[Path, ...]:
    return tuple(tuple(path.split(".")) for path in text.split())


def signs(text: str) -> tuple[Sign, ...]:
    """`a.b=c` is a value at a path, `a.b` is any value that is not empty."""
    parted = (sign.partition("=") for sign in text.split())
    return tuple((tuple(path.split(".")), value or None) for path, _, value in parted)


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


@dataclass(frozen=True, kw_only=True)
class Row:
    """Where an API says why an answer ended. A body is what has the word, or the list of choices that have it."""

    name: str  # of the word, for errors
    words: tuple[Path, ...]  # in a choice: the first that is not None counts
    bodies: tuple[Path, ...] = ((), *paths(WRAPPERS))
    lists: tuple[str, ...] = ()  # what a list of choices is called in a body
    # What else decides whether, and how, the answer has ended.
    silent: tuple[str, ...] = ()  # endings of the `type` of events that say nothing: most events of a stream
    events: tuple[str, ...] = ()  # types of events that are words, behind the dot; all events have theirs in a wrapper
    over: str = ""  # False: the stream goes on, whatever the word. True: it has ended, though without a word
    wordless: Reason = "unknown"  # the reason if `over` is True and there is no word
    whole: tuple[Path, ...] = ()  # in a choice: only a whole answer has these, if the choice has no `delta`
    flags: tuple[str, ...] = ()  # booleans whose names are words
    numbers: tuple[str, ...] = ()  # the words of numbers
    announces: tuple[str, ...] = ()  # words that only announce another one
    announced: tuple[Path, ...] = ()  # and where that is
    stops: tuple[Path, ...] = ()  # in a choice or its body: the stop that the word means
    natives: tuple[Path, ...] = ()  # in a choice or its body: the model's own word, if a router sends both
    blocked: tuple[Path, ...] = ()  # in a body: why there is no answer
    failed: tuple[Sign, ...] = ()  # in a body without a word: an error, beside the field `error`
    # What a choice brings: calls for the caller, and refusals.
    calls: tuple[Path, ...] = ()
    is_call: Callable[[Any], bool] = is_call
    refusals: tuple[Sign, ...] = ()
    typed: bool = False  # they have a type that is the API's own word for them

    def read(self, payload: object) -> Finish | None:
        """Returns the finish of one payload, None while the stream goes on."""
        found = self.find(payload)
        finish = self.finish(payload, found)
        return finish if finish is None or finish.reason not in OPEN else decided(finish, self.content(found.choice))

    def find(self, payload: object) -> Found:
        """Finds the choice that counts and its word. Without both, the payload itself is the choice."""
        kind = field(payload, "type") if self.silent or self.events else None
        if isinstance(kind, str) and self.silent and kind.endswith(self.silent):
            return Found(payload, None)
        for path in self.bodies:
            if not path and kind is not None and self.events:
                continue
            body = at(payload, path)
            if body is None:
                continue
            for name in self.lists:
                choices = field(body, name)
                if choices is not None:
                    choice = chosen(items(choices))
                    return Found(choice, body, place(choice), *self._word(choice))
            at_word, word = self._word(body)
            if word is not None:
                return Found(body, body, None, at_word, word)
        return Found(payload, payload, word=kind.rpartition(".")[2] if kind in self.events else None)

    def finish(self, payload: object, found: Found) -> Finish | None:
        """Returns what the word alone says. Without a word an error ends the stream, anything else lets it go on."""
        if found.body is None and payload is not None:
            return None
        finish = self._said(payload, found)
        if finish is not None and finish.reason not in OPEN:
            return finish
        if finish is None and not isinstance(payload, dict) and isinstance(payload, NO_PAYLOAD):
            raise TypeError(f"{self.name} is read from a dict or an object, not {type(payload).__name__}")
        return Finish("abort") if self._has_failed(payload, found, finish) else finish

    def content(self, choice: object) -> Finish | None:
        """The report of what the choice brings: "tool_calls", "refusal", or None for neither."""
        for path in self.calls:
            for call in ends(choice, path):
                if self.is_call(call):
                    return Finish("tool_calls", raw=field(call, "type") if self.typed else None)
        refuses = any(has(choice, sign) for sign in self.refusals)
        return Finish("refusal", raw="refusal" if self.typed else None) if refuses else None

    def _word(self, choice: object) -> tuple[Path, Any]:
        """The first word that is not None, behind its path."""
        for path in self.words:
            word = at(choice, path)
            if word is not None:
                return path, word
        return (), next((flag for flag in self.flags if field(choice, flag)), None)

    def _said(self, payload: object, found: Found) -> Finish | None:
        over = field(found.body, self.over) if self.over else None
        if over is False:
            return None
        said = found.word
        if type(said) is int and 0 <= said < len(self.numbers):
            said = self.numbers[said]
        word, stop = spoken(said)
        if word is None:
            return Finish(self.wordless) if over is True else self._wordless(payload, found)
        if word in self.announces:
            word = spoken(first(found.choice, self.announced))[0] or word
        report = finish(word, stop, *found.near(self.stops))
        if report.reason in ("eos", "unknown"):
            natives = (finish(native) for native, _ in map(spoken, found.near(self.natives)) if native)
            return next((native for native in natives if native.reason not in OPEN), report)
        return report

    def _wordless(self, payload: object, found: Found) -> Finish | None:
        if self.whole and self._is_whole(payload, found):
            return Finish("unknown", raw=None if found.word is None else str(found.word))
        for body in self._within(payload) if self.blocked else ():
            why, _ = spoken(first(body, self.blocked))
            if why is not None:
                return Finish("content_filter", raw=why)
        return None

    def _is_whole(self, payload: object, found: Found) -> bool:
        """Whether a choice without a word is that of a whole answer, which is over whatever it says."""
        if field(found.choice, "delta") is not None or first(found.choice, self.whole) is None:
            return False
        if found.word is None:
            return found.number is not None  # OCI streams choices without a list around them
        return bool(found.word == "" or found.body is payload)  # DashScope streams "null", in an `output`

    def _has_failed(self, payload: object, found: Found, finish: Finish | None) -> bool:
        if field(payload, "error") or field(found.choice, "error"):
            return True
        if finish is not None or (found.number is not None and found.choice is not None):
            return False
        return any(has(body, sign) for body in self._within(payload) for sign in (ERROR, *self.failed))

    def _within(self, payload: object) -> Iterator[Any]:
        return (body for path in self.bodies if (body := at(payload, path)) is not None)


ERROR: Sign = (("error",), None)


class Found(NamedTuple):
    choice: Any
    body: Any  # None: the event says nothing
    number: int | None = None  # of the choice; None if it is not in a list
    at: Path = ()
    word: Any = None

    def near(self, names: tuple[Path, ...]) -> Iterator[Any]:
        """What is at these paths, in the choice and beside it; not the word itself."""
        for part in (self.choice, self.body) if self.body is not self.choice else (self.choice,):
            yield from (at(part, path) for path in names if path != self.at)


def decided(finish: Finish, content: Finish | None) -> Finish:
    """Returns the report: by the content if the word leaves it open."""
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


def at(part: object, path: Path) -> Any:
    """What is at the end of a path, None if the path breaks off."""
    for name in path:
        part = part.get(name) if isinstance(part, dict) else field(part, name)
        if part is None:
            return None
    return part


def first(part: object, names: tuple[Path, ...]) -> Any:
    """What is at the first of these paths that does not break off."""
    for path in names:
        value = at(part, path)
        if value is not None:
            return value
    return None


def ends(part: object, path: Path) -> Iterator[Any]:
    """All that is at the end of a path with a "*"."""
    for number, name in enumerate(path):
        if name == "*":
            for item in items(part):
                yield from ends(item, path[number + 1 :])
            return
        part = field(part, name)
        if part is None:
            return
    yield part


def has(part: object, sign: Sign) -> bool:
    path, value = sign
    found = ends(part, path) if "*" in path else (at(part, path),)
    return any(end == value if value else bool(end) for end in found)


def items(value: object) -> Sequence[Any]:
    """The list, or an empty one for what is none."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def spoken(said: object) -> tuple[str | None, object]:
    """The word as a plain string, and the stop that stands with it. The word is None while the stream goes on."""
    stop: object = None
    if said is not None and not isinstance(said, str | int | Enum):
        word = next((inner for name in WORD_OBJECTS if (inner := field(said, name)) is not None), None)
        if word is not None:
            said, stop = word, next((inner for name in STOP_OBJECTS if (inner := field(said, name)) is not None), None)
    if isinstance(said, Enum):  # google-genai's are strings, those of the SDK before it numbers with a name
        said = said.value if isinstance(said.value, str) else said.value and said.name
    if not said or said in GOING_ON:
        return None, None
    return str(said), stop


def finish(word: str, *stops: object) -> Finish:
    """The report of a word; the first of `stops` that is one counts if the word may mean a stop.

    What follows a colon explains the word ("content_filter: PROHIBITED_CONTENT"), or is the stop (sglang before 0.4).
    """
    kind, _, more = word.partition(": ")
    reason = WORDS.get(kind.lower().replace("-", "_"), "unknown")
    if reason in ("eos", "stop_sequence"):
        if kind == "FINISH_MATCHED_STR":
            stops = (more,)
        elif kind == "FINISH_MATCHED_TOKEN" and more.isdecimal() and len(more) <= 10:
            stops = (int(more),)
        for stop in stops:
            if isinstance(stop, str) and stop:
                return Finish("stop_sequence", stop, raw=word)
            if isinstance(stop, int) and not isinstance(stop, bool) and stop >= 0:
                return Finish("stop_token", stop, raw=word)
    return Finish(reason, raw=word)
