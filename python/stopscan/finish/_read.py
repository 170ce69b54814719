"""Reads the payloads of all APIs. The class `FinishFields` has the names of an API's fields. The table `APIS` in
`_apis.py` has the `FinishFields` of each API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from stopscan.finish._finish import Finish, Reason
from stopscan.finish._words import GOING_ON, WORDS

# Field names from the outside to the inside. "*" stands for each element of a list. () leads to the payload itself.
Path: TypeAlias = tuple[str, ...]
# A path and the value that must be at its end. None stands for any value that is not empty.
Condition: TypeAlias = tuple[Path, "str | None"]

# Payloads of these types raise `TypeError`. An object of a client library may have any other type.
NOT_PAYLOADS = (Sequence, int, float, complex, set, frozenset, type(None))
# The last line of many streams. It does not say why the answer ended.
DONE = "[DONE]"
ERROR: Condition = (("error",), None)
# Reasons that are replaced if the content has calls or a refusal.
UNDECIDED = ("eos", "stop_token", "unknown")
# Paths at which APIs wrap an answer. Gemini's Code Assist and Gemini's batches use `response`, OpenAI's batches
# `response.body`, Anthropic's batches `result.message`, and Bedrock's batches `modelOutput`.
WRAPPERS = "response response.body result.message modelOutput"
# sglang, AI21 and Vercel send an object in place of the finish word. The word is in its field `type` (sglang), `reason`
# (AI21) or `unified` (Vercel).
WORD_OBJECTS = ("type", "reason", "unified")
# An object with the finish word may also have the stop: in its field `matched` (sglang) or `sequence` (AI21).
STOP_OBJECTS = ("matched", "sequence")
# Fields with the name, the id or the arguments of a call, as all APIs spell them. OpenAI nests them in `function` or
# `custom`.
CALL = ("name", "id", "call_id", "toolUseId", "arguments", "args", "partialArgs", "partial_args", "input")


def paths(text: str) -> tuple[Path, ...]:
    """Returns the paths in `text`, where spaces separate them. A path is written as `message.content`."""
    return tuple(tuple(path.split(".")) for path in text.split())


def conditions(text: str) -> tuple[Condition, ...]:
    """Returns the conditions in `text`, which are separated by spaces. The condition `a.b=c` means that the value at
    the path `a.b` is `c`. The condition `a.b` means that this value is not empty."""
    parted = (condition.partition("=") for condition in text.split())
    return tuple((tuple(path.split(".")), value or None) for path, _, value in parted)


def is_call(call: object, /) -> bool:
    """Returns whether `call` is a tool call: it has a name, an id or arguments that are not empty.

    Some servers send stubs of calls, with every field empty, beside ordinary text. `call` is one call of any API, as a
    dict or as an object of its client. Anything else is not a call.

    >>> is_call({"index": 0, "function": {"arguments": '{"city"'}})
    True
    >>> is_call({"name": "", "arguments": ""})
    False
    """
    parts = (call, field(call, "function"), field(call, "custom"))
    return any(field(part, name) for part in parts for name in CALL)


@dataclass(frozen=True, kw_only=True)
class FinishFields:
    """The names of the fields in which an API says why an answer ended. The API says it with a finish word, such as
    "stop".

    A choice is one answer of a response, with its finish word. The body is the part of the payload that has the list of
    choices: the whole payload, or what is at one of the paths in `bodies`. If there is no list of choices, the body
    itself is the only choice.
    """

    name: str  # the names of the API and of the field with the finish word, for error messages
    words: tuple[Path, ...]  # in a choice: where the finish word is. The first value that is not None counts
    bodies: tuple[Path, ...] = ((), *paths(WRAPPERS))
    choice_lists: tuple[str, ...] = ()  # in a body: the names that its list of choices may have
    silent: tuple[str, ...] = ()  # suffixes of the `type` of events that never say why the stream ended
    events: tuple[str, ...] = ()  # types of final events. The finish word is in a body, or is the last part of the type
    last_events: tuple[Condition, ...] = ()  # signs that an event ends the stream without saying why
    done_field: str = ""  # a boolean field of a body: whether the stream has ended, whatever the word is
    reason_if_done: Reason = "unknown"  # the reason, if `done_field` is True and there is no finish word
    whole_fields: tuple[Path, ...] = ()  # in a choice without `delta`: fields that only a whole answer has
    flags: tuple[str, ...] = ()  # in a choice: booleans whose names are finish words
    numbered_words: tuple[str, ...] = ()  # the finish word of each number, if a client library gives numbers
    vague_words: tuple[str, ...] = ()  # finish words that are too vague: `details` has paths to clearer ones
    details: tuple[Path, ...] = ()
    stops: tuple[Path, ...] = ()  # in a choice or its body: the stop that fired
    native_words: tuple[Path, ...] = ()  # in a choice or its body: a model's word that a router sends beside its own
    blocked: tuple[Path, ...] = ()  # in a body: why the prompt was blocked
    failed: tuple[Condition, ...] = ()  # in a body without a word: signs of an error, besides the field `error`
    calls: tuple[Path, ...] = ()  # in a choice: its tool calls
    is_call: Callable[[Any], bool] = is_call  # whether a call waits for the API's caller
    refusals: tuple[Condition, ...] = ()  # in a choice: signs of a refusal
    raw_is_type: bool = False  # `Finish.raw` of a call or a refusal is its type, not the finish word

    def read(self, payload: object) -> Finish | None:
        """Returns the finish of one payload, or None while the stream goes on."""
        answer = self.find(payload)
        finish = self.finish(answer)
        if finish is None or finish.reason not in UNDECIDED:
            return finish
        return decide(finish, self.content(answer.choice))

    def find(self, payload: object) -> Answer:
        """Returns the choice from which the finish is read, with its finish word.

        Looks at each path where the API may have its choices, until there is a list of choices or a finish word. If
        there is neither, the payload itself is the choice. Raises `TypeError` if the payload is not a dict or an
        object.
        """
        if not isinstance(payload, dict) and isinstance(payload, NOT_PAYLOADS):
            raise TypeError(f"{self.name} is read from a dict or an object, not {type(payload).__name__}")
        kind = field(payload, "type") if self.silent or self.events else None
        if self.silent and isinstance(kind, str) and kind.endswith(self.silent):
            return Answer(payload, payload, silent=True)
        # An event itself is not a body: its `status` may be the status of one part of the response.
        is_event = bool(self.events) and kind is not None
        for body in self._bodies_in(payload, self.bodies[1:] if is_event else self.bodies):
            for name in self.choice_lists:
                choices = field(body, name)
                if choices is not None:
                    choice = counting_choice(as_list(choices))
                    return Answer(choice, payload, body, choice_index(choice), *self._word(choice))
            word_path, word = self._word(body)
            if word is not None:
                return Answer(body, payload, body, None, word_path, word)
        return Answer(payload, payload, payload, word=kind.rpartition(".")[2] if kind in self.events else None)

    def finish(self, answer: Answer) -> Finish | None:
        """Returns why an answer ended, or None while the stream goes on. Does not look for calls or refusals.

        The first of these rules that applies decides:

        1. If `answer` comes from an event of a type that never says why the stream ended, the stream goes on.
        2. A word counts if its reason is not "eos", "stop_token" or "unknown", even if there is also an error. While
           the API's `done_field` is False, no word counts.
        3. An error is an "abort", even if there is also a word such as "stop".
        4. Any other word counts.
        5. Without a word, an answer has ended if `done_field` is True, or if it is a whole answer and not a chunk. If
           the prompt was blocked, there is no answer, and the reason is "content_filter".
        """
        if answer.silent:
            return None
        done = field(answer.body, self.done_field) if self.done_field else None
        finish = self._finish_of_word(answer) if done is not False else None
        if finish is not None and finish.reason not in UNDECIDED:
            return finish
        if self._has_failed(answer, finish):
            return Finish("abort")
        if finish is not None or done is False:
            return finish
        if done is True:
            return Finish(self.reason_if_done)
        if self.whole_fields and self._is_whole(answer):
            return Finish("unknown", raw=None if answer.word is None else text_of(answer.word))
        return self._finish_of_block(answer.payload)

    def content(self, choice: object) -> Finish | None:
        """Returns the finish that the content alone gives: "tool_calls", "refusal" or None."""
        for path in self.calls:
            for call in values_at(choice, path):
                if self.is_call(call):
                    return Finish("tool_calls", raw=field(call, "type") if self.raw_is_type else None)
        refuses = any(holds(choice, condition) for condition in self.refusals)
        return Finish("refusal", raw="refusal" if self.raw_is_type else None) if refuses else None

    def ends(self, event: object) -> bool:
        """Returns whether an event says only that its stream is over, and not why."""
        return any(holds(event, condition) for condition in self.last_events)

    def _word(self, choice: object) -> tuple[Path, Any]:
        """Returns the path of the choice's finish word, and the word.

        If there is no word, the API may have booleans instead, whose names are the words (`flags`). Then returns an
        empty path, and the name of the first flag that is true, or None.
        """
        for path in self.words:
            word = value_at(choice, path)
            if word is not None:
                return path, word
        return (), next((flag for flag in self.flags if field(choice, flag)), None)

    def _finish_of_word(self, answer: Answer) -> Finish | None:
        """Returns the finish that the answer's word means, or None if it has no word.

        If the word is too vague, looks for a clearer word: first in `details`, then in `native_words`.
        """
        value = answer.word
        if type(value) is int and 0 <= value < len(self.numbered_words):
            value = self.numbered_words[value]
        word, stop = word_and_stop(value)
        if word is None:
            return None
        if word in self.vague_words:
            word = word_and_stop(first_value(answer.choice, self.details))[0] or word
        finish = finish_of_word(word, stop, *answer.values_at(self.stops))
        if finish.reason not in ("eos", "unknown"):
            return finish
        natives = (finish_of_word(word) for word, _ in map(word_and_stop, answer.values_at(self.native_words)) if word)
        return next((native for native in natives if native.reason not in UNDECIDED), finish)

    def _finish_of_block(self, payload: object) -> Finish | None:
        for body in self._bodies_in(payload, self.bodies) if self.blocked else ():
            why, _ = word_and_stop(first_value(body, self.blocked))
            if why is not None:
                return Finish("content_filter", raw=why)
        return None

    def _is_whole(self, answer: Answer) -> bool:
        """Returns whether `answer` is a whole answer and not a chunk. A whole answer has ended, even without a finish
        word."""
        if field(answer.choice, "delta") is not None or first_value(answer.choice, self.whole_fields) is None:
            return False
        if answer.word is None:
            return answer.number is not None  # OCI's chunks also have `whole_fields`, but no list of choices
        # Do not take a chunk of DashScope for a whole answer. Its finish word is "null", and its body is the field
        # `output` of the payload, not the whole payload.
        return bool(answer.word == "" or answer.body is answer.payload)

    def _has_failed(self, answer: Answer, finish: Finish | None) -> bool:
        """Returns whether the payload of `answer` reports an error. The conditions in `failed` count only if the
        payload has neither a finish nor a choice."""
        if field(answer.payload, "error") or field(answer.choice, "error"):
            return True
        if finish is not None or (answer.number is not None and answer.choice is not None):
            return False
        bodies = self._bodies_in(answer.payload, self.bodies)
        return any(holds(body, condition) for body in bodies for condition in (ERROR, *self.failed))

    def _bodies_in(self, payload: object, paths: tuple[Path, ...]) -> Iterator[Any]:
        return (body for path in paths if (body := value_at(payload, path)) is not None)


class Answer(NamedTuple):
    """The choice that counts in a payload, and its finish word, which says why the choice ended."""

    choice: Any
    payload: Any
    body: Any = None  # the part of the payload with the choice
    number: int | None = None  # the index of the choice; None if it is not in a list
    word_path: Path = ()
    word: Any = None
    silent: bool = False  # events of this type never say why the answer ended

    def values_at(self, names: tuple[Path, ...]) -> Iterator[Any]:
        """Yields the values at the paths `names`: first those in the choice, then those in the body. Skips the path of
        the finish word."""
        for part in (self.choice, self.body) if self.body is not self.choice else (self.choice,):
            yield from (value_at(part, path) for path in names if path != self.word_path)


def decide(finish: Finish, content: Finish | None) -> Finish:
    """Decides between two finishes of one answer. `content` is the finish for a call or a refusal in the answer, or
    None if there is neither. `finish` is the finish for the rest of the answer.

    If the reason of `finish` is in `UNDECIDED`, `content` counts. Otherwise `finish` counts.
    """
    if content is None or finish.reason not in UNDECIDED:
        return finish
    return Finish(content.reason, raw=content.raw or finish.raw)


def counting_choice(choices: Sequence[Any]) -> Any:
    """Returns the choice with the lowest index, or None if there are no choices."""
    return choices[0] if len(choices) == 1 else min(choices, key=choice_index, default=None)


def choice_index(choice: object) -> int:
    """Returns the index of a choice, or 0 if it has none. Some servers write the index as a string."""
    index = field(choice, "index")
    if isinstance(index, str) and index.isdecimal() and len(index) < 10:
        return int(index)
    return index if isinstance(index, int) else 0


def field(part: object, name: str) -> Any:
    """Returns a field of a dict or an object, or None if there is no such field."""
    if isinstance(part, dict):
        return part.get(name)
    value = getattr(part, name, None)
    return part.get(name) if value is None and isinstance(part, Mapping) else value


def value_at(part: object, path: Path) -> Any:
    """Returns the value to which `path` leads, or None if one of the fields in `path` is missing."""
    for name in path:
        part = part.get(name) if isinstance(part, dict) else field(part, name)
        if part is None:
            return None
    return part


def first_value(part: object, names: tuple[Path, ...]) -> Any:
    """Returns the first value that is not None at the paths `names`, or None if there is no such value."""
    for path in names:
        value = value_at(part, path)
        if value is not None:
            return value
    return None


def values_at(part: object, path: Path) -> Iterator[Any]:
    """Yields every value that `path` leads to. A "*" in the path stands for each item of a list."""
    for number, name in enumerate(path):
        if name == "*":
            for item in as_list(part):
                yield from values_at(item, path[number + 1 :])
            return
        part = field(part, name)
        if part is None:
            return
    yield part


def holds(part: object, condition: Condition) -> bool:
    path, value = condition
    values = values_at(part, path) if "*" in path else (value_at(part, path),)
    return any(end == value if value else bool(end) for end in values)


def as_list(value: object) -> Sequence[Any]:
    """Returns `value` if it is a list, or else an empty list."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def word_and_stop(value: object) -> tuple[str | None, object]:
    """Returns the finish word in `value`, and the stop or None. The word is None while the stream goes on.

    `value` is the word, or an object that has the word in one of the fields `WORD_OBJECTS`. The object may also have
    the stop, in one of the fields `STOP_OBJECTS`.
    """
    stop: object = None
    if value is not None and not isinstance(value, str | int | Enum):
        word = next((inner for name in WORD_OBJECTS if (inner := field(value, name)) is not None), None)
        if word is not None:
            stop = next((inner for name in STOP_OBJECTS if (inner := field(value, name)) is not None), None)
            value = word
    if isinstance(value, Enum):  # google-genai has strings in its enums, and its predecessor has numbers
        value = value.value if isinstance(value.value, str) else value.value and value.name
    if not value or value in GOING_ON:
        return None, None
    return text_of(value), stop


def text_of(value: object) -> str:
    """Returns `str(value)`, or the name of the value's type if `str` fails: the value may be nested too deeply."""
    try:
        return str(value)
    except Exception:  # an object of a client library may raise anything
        return type(value).__name__


def finish_of_word(word: str, *stops: object) -> Finish:
    """Returns the finish that a word means. If the word can mean a stop, the finish has the first stop string or token
    id in `stops`.

    Some servers write an explanation after the word and a colon ("content_filter: PROHIBITED_CONTENT"). sglang before
    0.4 writes the stop there.
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
