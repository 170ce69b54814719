"""What the APIs have in common: a request, the parts of an answer, and what can be wrong with a value on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from stopscan_conformance.wire import Wire

# Why an answer ended, and the stop: "stop_sequence" and the string, "stop_token" and the id, or "eos", "length" and
# None. A word that the API does not have is ("unknown", the word).
End = tuple[str, Any]
Turn = tuple[str, str]  # a role and a text
Data = dict[str, Any]

# Kinds of value beside the types.
NAME = "a string that is not empty"
COUNT = "a whole number"
NULL = type(None)


@dataclass(frozen=True)
class Said:
    """What a request says beside its stops: further options, earlier turns, whether the content comes in parts, what
    comes before the prompt in the last message, and by which names the limit is given in OpenAI's APIs."""

    options: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[Turn, ...] = ()
    parts: bool = False
    prefix: str = ""
    limits: tuple[str, ...] = ("max_tokens",)


@dataclass(frozen=True, eq=False)
class Request:
    """A request in no API's words. `stops` has the options about stops by their names in OpenAI's APIs. `usage` asks
    a stream for its usage, where an API wants to be asked; None says that it is not wanted. `max_tokens` is None if the
    request has no limit."""

    prompt: str
    stream: bool = False
    stops: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = 64
    usage: bool | None = True
    said: Said = field(default_factory=Said)

    @property
    def messages(self) -> list[Data]:
        said = self.said.prefix + self.prompt
        content: Any = [{"type": "text", "text": said}] if self.said.parts else said
        before = [{"role": role, "content": text} for role, text in self.said.before]
        return [*before, {"role": "user", "content": content}]

    @property
    def text(self) -> str:
        """The prompt of an API that has no turns."""
        return "\n".join([*(text for _, text in self.said.before), self.said.prefix + self.prompt])

    def named(self, stop: str) -> Data:
        """The options, with the API's own name for the stop strings."""
        named = {stop if name == "stop" else name: value for name, value in self.stops.items()}
        return {**self.said.options, **named}

    def limit(self, name: str) -> Data:
        """The limit by the API's own name, if there is one."""
        return {} if self.max_tokens is None else {name: self.max_tokens}


class Part(NamedTuple):
    """What one event, or a whole answer, tells a client, and when it came. `head` has "id" and "model", and of the
    usage "prompt" and "tokens"; what an event does not tell is not there, or None. `row` is the index of the choice."""

    text: str = ""
    reasoning: str = ""
    end: End | None = None
    head: Mapping[str, Any] = MappingProxyType({})
    time: float = 0.0
    row: Any = None


@dataclass(frozen=True)
class Api:
    """An API: how a request is written, how an answer is read, and what its form must be.

    `read` takes what is there and leaves everything wrong to `form`. `told` is what an answer can tell of an end.
    `names` says how the API names a stop: "documented", "usual" (an extension of the engines) or "" (it cannot).
    """

    name: str
    path: str
    source: str  # the page of the API's reference
    body: Callable[[str, Request], Data]
    read: Callable[[Wire, Request], Iterator[Part]]
    form: Callable[[Wire, Request], Iterator[str]]
    told: Callable[[End], End] = lambda end: end
    names: str = ""
    stop: str = "stop"
    limit: str = "max_tokens"
    content: str = "messages"
    holder: str = ""  # the object that has the options, if they do not stand at the top
    lists_only: bool = False  # it takes no bare string and no null
    asks_for_usage: bool = False  # a stream tells its usage only if it is asked to
    stops: bool = True  # its reference has stops
    harmony: bool = False
    raw: bool = False  # the prompt is the model's, without a chat template: a stop may fire in the reasoning
    extra: bool = False  # only sent if it is named

    def with_option(self, body: Mapping[str, Any], name: str, value: Any) -> Data:
        """The body with an option where the API has it; a `value` of None takes it away."""
        options = {**(body[self.holder] if self.holder else body), name: value}
        if value is None:
            del options[name]
        return {**body, self.holder: options} if self.holder else options


def unnamed(end: End) -> End:
    """The end as an API tells it that cannot name a stop."""
    return ("eos", None) if end[0] in ("stop_sequence", "stop_token") else end


def lacks(what: str, data: Any, **needs: Any) -> Iterator[str]:
    """What is wrong with `data`: a need is a type, one of the kinds, a tuple of them, or `{value}`."""
    if not isinstance(data, dict):
        yield f"{what} is {short(data)}, not an object"
        return
    for key, need in needs.items():
        if key not in data:
            yield f"{what} lacks the key {key}"
        elif not _fits(data[key], need):
            yield f"{what} has {short(data[key])} as {key}"


def differ(what: str, parts: list[Any], *keys: str) -> Iterator[str]:
    """What should be the same in all parts of a stream, and is not."""
    for key in keys:
        values = list(dict.fromkeys(str(part[key]) for part in parts if isinstance(part, dict) and key in part))
        if len(values) > 1:
            yield f"{what} changes its {key} from {short(values[0])} to {short(values[1])}"


def objects(value: Any) -> list[Data]:
    """The objects of a list; none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def inner(value: Any, *keys: str) -> Any:
    """What is under the keys; None if there is no such thing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def string(value: Any) -> str:
    """The value if it is a string; what is none, `form` tells."""
    return value if isinstance(value, str) else ""


def sent_as(wire: Wire, media_type: str) -> Iterator[str]:
    """Whether the media type is right."""
    if wire.media_type != media_type:
        yield f"the media type is {wire.media_type or 'missing'}, not {media_type}"


def in_seconds(what: str, key: str, holder: Any) -> Iterator[str]:
    """Whether a time is in seconds; milliseconds would be of the year 5000 or later."""
    value = inner(holder, key)
    if isinstance(value, (int, float)) and value > 10**11:
        yield f"{what} has {value} as {key}, which are no seconds"


def told_apart(what: str, choice: Data) -> Iterator[str]:
    """Whether logprobs are an object, if there are any."""
    yield from lacks(what, {"logprobs": None, **choice}, logprobs=(dict, NULL))


def summed(what: str, usage: Any, prompt: str, answer: str, total: str | None) -> Iterator[str]:
    """What is wrong with the counts of tokens. Whether the prompt is counted at all, `probe` finds."""
    faults = list(lacks(what, usage, **{prompt: COUNT, answer: COUNT, **({total: COUNT} if total else {})}))
    yield from faults
    if not faults and total and usage[prompt] + usage[answer] != usage[total]:
        yield f"{what} has {usage[prompt]} + {usage[answer]} = {usage[total]} as {total}"


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fits(value: Any, need: Any) -> bool:
    if isinstance(need, tuple):
        return any(_fits(value, one) for one in need)
    if need is NAME:
        return isinstance(value, str) and value != ""
    if need is COUNT:
        return type(value) is int and value >= 0
    if isinstance(need, type):
        return isinstance(value, need) and (need is bool or not isinstance(value, bool))
    return any(type(value) is type(one) and value == one for one in need)  # a set of the values themselves
