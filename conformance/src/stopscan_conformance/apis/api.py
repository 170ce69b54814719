"""The common code of the APIs: requests, the parts of an answer, and checks of values in an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from stopscan_conformance.wire import Event, Wire

# Why an answer ended, and the stop: ("stop_sequence", the string), ("stop_token", the id), ("eos", None) or
# ("length", None). A word that the API does not define is ("unknown", the word).
End = tuple[str, Any]
Turn = tuple[str, str]  # a role and a text
Data = dict[str, Any]

# Kinds of values that `lacks` checks, besides types such as `str`.
NAME = "a string that is not empty"
COUNT = "a whole number"
NULL = type(None)


@dataclass(frozen=True)
class Extras:
    """What a request has besides its prompt and its stops.

    - `options`: further fields of the request.
    - `before`: earlier turns.
    - `parts`: whether the content is a list of parts.
    - `prefix`: a text before the prompt in the last message.
    - `limits`: the fields of OpenAI's APIs that the token limit is written to.
    - `body`: fields that replace those of the finished body.
    - `prompt`: the form in which the prompt is sent ("list", "ids" or "ids-in-a-list"; see `single`).
    - `without`: fields to leave out.
    - `writing`: a key of `WRITINGS`, which says how the JSON is written.
    - `headers`: further headers of the request.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[Turn, ...] = ()
    parts: bool = False
    prefix: str = ""
    limits: Sequence[str] = ("max_tokens",)
    body: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""
    without: Sequence[str] = ()
    writing: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Request:
    """A request that does not depend on the field names of an API."""

    prompt: str
    stream: bool = False
    stops: Mapping[str, Any] = field(default_factory=dict)  # the options about stops, by their names in OpenAI's APIs
    max_tokens: int | None = 64  # None if the request has no limit
    usage: bool | None = True  # whether to ask for a stream's usage; None asks explicitly for no usage
    extras: Extras = field(default_factory=Extras)

    @property
    def messages(self) -> list[Data]:
        text = self.extras.prefix + self.prompt
        content: Any = [{"type": "text", "text": text}] if self.extras.parts else text
        before = [{"role": role, "content": text} for role, text in self.extras.before]
        return [*before, {"role": "user", "content": content}]

    @property
    def text(self) -> str:
        """The earlier turns and the prompt as one text, for an API without messages."""
        return "\n".join([*(text for _, text in self.extras.before), self.extras.prefix + self.prompt])

    def named(self, stop: str) -> Data:
        """Returns the options about stops, with the API's name for the stop strings."""
        named = {stop if name == "stop" else name: value for name, value in self.stops.items()}
        return {**self.extras.options, **named}

    def limit(self, name: str) -> Data:
        """Returns the token limit of the request as `{name: limit}`, or an empty dict if the request has no limit."""
        return {} if self.max_tokens is None else {name: self.max_tokens}


class Part(NamedTuple):
    """A piece of an event or of a whole answer, and the time at which it came.

    - `head`: "id", "model" and the token counts "prompt" and "tokens". A missing value is left out or None.
    - `row`: the index of the choice.
    """

    text: str = ""
    reasoning: str = ""
    end: End | None = None
    head: Mapping[str, Any] = MappingProxyType({})
    time: float = 0.0
    row: Any = None


@dataclass(frozen=True)
class Api:
    """An API, with the functions that write its requests, read its answers, and check their form.

    `read` skips values of a wrong type, and `form` reports them. `reported` takes why an answer ended, and returns what
    an answer of this API can say of it. `names` says how an answer names the stop that fired: "documented", "usual" (in
    a field that engines have added) or "" (not at all).
    """

    name: str
    path: str
    source: str  # the page of the API's reference
    body: Callable[[str, Request], Data]
    read: Callable[[Wire, Request], Iterator[Part]]
    form: Callable[[Wire, Request], Iterator[str]]
    reported: Callable[[End], End] = lambda end: end
    spelled: Callable[[Wire, Request], list[str] | None] = lambda wire, request: (
        None
    )  # the tokens of the log probabilities
    names: str = ""
    stop: str = "stop"
    limit: str = "max_tokens"
    content: str = "messages"
    holder: str = ""  # the field that holds the options, if they are not at the top of the body
    lists_only: bool = False  # stops must be a list, not a string or null
    asks_for_usage: bool = False  # a stream has a usage only if the request asks for it
    stops: bool = True  # a request may have stops
    raw: bool = False  # the prompt has no chat template, so a stop may fire in the reasoning
    extra: bool = False  # tested only if the user names it

    def written(self, model: str, request: Request) -> Data | str:
        """Returns the body of a request. If the request asks for an unusual way to write JSON, the body is a string,
        otherwise a dict."""
        extras = request.extras
        body = {**self.body(model, request), **extras.body}
        body = {name: value for name, value in body.items() if name not in extras.without}
        return WRITINGS[extras.writing](body) if extras.writing else body

    def with_option(self, body: Mapping[str, Any], name: str, value: Any) -> Data:
        """Returns a copy of `body` in which the option `name` has the `value`. If `value` is None, the option is
        removed. Some APIs have their options in one field of the body, which is `holder`."""
        options = {**(body[self.holder] if self.holder else body), name: value}
        if value is None:
            del options[name]
        return {**body, self.holder: options} if self.holder else options


def _escaped(value: Any) -> str:
    """Returns a value as JSON, with each character of each string written as an escape such as `\\u0041`."""
    if isinstance(value, dict):
        pairs = ",".join(f"{_escaped(key)}:{_escaped(one)}" for key, one in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_escaped, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    units = value.encode("utf-16-be").hex()
    escapes = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return f'"{escapes}"'


# Ways to write the JSON of a request, all of which RFC 8259 allows.
WRITINGS: Mapping[str, Callable[[Data], str]] = {
    "escapes": _escaped,
    "blanks": lambda body: "\r\n\t" + json.dumps(body, indent=3, separators=(" ,", "\t: ")) + "\n",
    "another-order": lambda body: json.dumps(dict(sorted(body.items(), reverse=True)), ensure_ascii=False),
}


def unnamed(end: End) -> End:
    """Returns EOS if `end` is a stop, otherwise `end`. Some APIs have the same finish reason for EOS and for a stop,
    and do not name the stop."""
    return ("eos", None) if end[0] in ("stop_sequence", "stop_token") else end


def lacks(what: str, data: Any, **needs: Any) -> Iterator[str]:
    """Yields a complaint if `data` is not an object. Otherwise yields one for each key of `needs` that is missing in
    `data` or has a wrong value there. `needs` says which values of a key are right. It names a type, NAME, COUNT, or
    several of these as a tuple, or it lists the values as a set."""
    if not isinstance(data, dict):
        yield f"{what} is {short(data)}, not an object"
        return
    for key, need in needs.items():
        if key not in data:
            yield f"{what} lacks the key {key}"
        elif not _fits(data[key], need):
            yield f"{what} has {short(data[key])} as {key}"


def differ(what: str, parts: list[Any], *keys: str) -> Iterator[str]:
    """Yields a complaint for each key of `keys` whose value is not the same in all parts of a stream."""
    for key in keys:
        values = list(dict.fromkeys(str(part[key]) for part in parts if isinstance(part, dict) and key in part))
        if len(values) > 1:
            yield f"{what} changes its {key} from {short(values[0])} to {short(values[1])}"


def objects(value: Any) -> list[Data]:
    """Returns the JSON objects (dicts) in `value` if it is a list, otherwise an empty list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def inner(value: Any, *keys: str) -> Any:
    """Follows `keys` into nested JSON objects, and returns the value at the end, or None if a key is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def string(value: Any) -> str:
    """Returns the value if it is a string, otherwise an empty string. (`Api.form` complains about the wrong type.)"""
    return value if isinstance(value, str) else ""


def sent_as(wire: Wire, media_type: str) -> Iterator[str]:
    """Yields a complaint if the media type is wrong."""
    if wire.media_type != media_type:
        yield f"the media type is {wire.media_type or 'missing'}, not {media_type}"


def in_seconds(what: str, key: str, holder: Any) -> Iterator[str]:
    """Yields a complaint if a number is too large for a time in seconds. As seconds, it would be a time after the year
    5000."""
    value = inner(holder, key)
    if isinstance(value, (int, float)) and value > 10**11:
        yield f"{what} has {value} as {key}, which is not a time in seconds"


def named_events(events: Iterable[Event]) -> Generator[str, None, list[Data]]:
    """Yields a complaint for each event whose data is not a JSON object, or whose name is not the object's `type`.
    Returns the objects."""
    objects = []
    for name, data, _ in events:
        if not isinstance(data, dict):
            yield f"an event has the data {short(data)}"
            continue
        if name != data.get("type"):
            yield f"the event {data.get('type')} is named {name}"
        objects.append(data)
    return objects


def summed(what: str, usage: Any, prompt: str, answer: str, total: str | None) -> Iterator[str]:
    """Yields what is wrong with the token counts in `usage`. A count of 0 prompt tokens is not a fault here, because
    `probe` reports it once for the API."""
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
    return any(type(value) is type(one) and value == one for one in need)  # a set of values
