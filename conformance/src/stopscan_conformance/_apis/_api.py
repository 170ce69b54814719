"""What the APIs have in common: a request, the parts of an answer as a client reads them, and the form on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from stopscan.finish import Finish
from stopscan_conformance._connection import Connection
from stopscan_conformance._says import Said
from stopscan_conformance._wire import Wire

End = tuple[str, str | int | None]


@dataclass(frozen=True, eq=False)
class Request:
    """`stops` are the options about stops, by the names of OpenAI's APIs; what is not asked for is not there. `usage`
    asks a stream for its usage, where an API wants to be asked; None says that it is not wanted. `max_tokens` is None
    where the request has no limit. `said` is what else it says."""

    prompt: str
    stream: bool = False
    stops: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = 64
    usage: bool | None = True
    said: Said = field(default_factory=Said)

    @property
    def messages(self) -> list[dict[str, Any]]:
        content: Any = [{"type": "text", "text": self.prompt}] if self.said.parts else self.prompt
        before = [{"role": role, "content": text} for role, text in self.said.before]
        return [*before, {"role": "user", "content": content}]

    @property
    def text(self) -> str:
        """The prompt of an API that has no turns."""
        return "\n".join([*(text for _, text in self.said.before), self.prompt])

    def named(self, stop: str) -> dict[str, Any]:
        """The options, with the API's own name for the stop strings."""
        named = {stop if name == "stop" else name: value for name, value in self.stops.items()}
        return {**self.said.options, **named}

    def limit(self, name: str) -> dict[str, int]:
        """The limit by the API's own name, if there is one."""
        return {} if self.max_tokens is None else {name: self.max_tokens}


class Part(NamedTuple):
    """What one event, or a whole answer, tells a client. `head` has its "id" and "model", and of its usage "prompt" and
    "tokens", which are those of the answer; what an event does not tell is not there, or None."""

    text: str = ""
    reasoning: str = ""
    finish: Finish | None = None
    head: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Api:
    """`read` sends a request through the official client and gives what that reads. `form` finds what is wrong with an
    answer as it came. `told` is what an answer can tell of an end."""

    name: str
    read: Callable[[Connection, Request], AsyncIterator[Part]]
    form: Callable[[Wire, Request], Iterator[str]]
    told: Callable[[End], End]
    lists_only: bool = False  # it takes no bare string and no null
    asks_for_usage: bool = False  # a stream tells its usage only if it is asked to
    harmony: bool = False


# Kinds of value beside the types.
NAME = "a string that is not empty"
COUNT = "a whole number"


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


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def sent_as(wire: Wire, media_type: str) -> Iterator[str]:
    """Whether the media type is right."""
    if wire.media_type != media_type:
        yield f"the media type is {wire.media_type or 'missing'}, not {media_type}"


def in_seconds(what: str, key: str, holder: Any) -> Iterator[str]:
    """Whether a time is one in seconds; milliseconds would be of the year 5000 or later."""
    value = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(value, (int, float)) and value > 10**11:
        yield f"{what} has {value} as {key}, which are no seconds"


def told_apart(what: str, choice: dict[str, Any]) -> Iterator[str]:
    """Whether logprobs are an object, where there are any."""
    yield from lacks(what, {"logprobs": None, **choice}, logprobs=(dict, type(None)))


def summed(what: str, usage: Any, prompt: str, answer: str, total: str | None) -> Iterator[str]:
    """What is wrong with the counts of tokens."""
    needs = {prompt: COUNT, answer: COUNT, **({total: COUNT} if total else {})}
    faults = list(lacks(what, usage, **needs))
    yield from faults
    if not faults and usage[prompt] < 1:
        yield f"{what} has {usage[prompt]} as {prompt}"
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
