"""What can be wrong with a value on the wire, in any API's form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stopscan_conformance._wire import Wire

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
