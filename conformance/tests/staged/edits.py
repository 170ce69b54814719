"""Changes to what a staged server sends: to a whole answer, or to the events of a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from typing import Any

Edit = Callable[[Any], Any]  # returns the changed data, None to send nothing, or a list to send all its items
Events = Callable[[AsyncIterator[Any]], AsyncIterator[Any]]
Which = Callable[[Any], bool]


def put(value: Any, *path: Any) -> Edit:
    """Returns an edit that puts `value` at `path`. If `value` is a function, the edit puts `value(old value)` there."""

    def edit(data: Any) -> Any:
        data = deepcopy(data)
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value(holder[path[-1]]) if callable(value) else value
        return data

    return edit


def lose(*path: Any) -> Edit:
    """Returns the edit that removes the key at `path`, if it is there."""

    def edit(data: Any) -> Any:
        data = deepcopy(data)
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        holder.pop(path[-1], None)
        return data

    return edit


def drop(data: Any) -> Any:
    return None


def twice(data: Any) -> Any:
    return [data, data]


def before(other: Any) -> Edit:
    return lambda data: [other, data]


def after(other: Any) -> Edit:
    return lambda data: [data, other]


def typed(kind: str) -> Which:
    return lambda data: isinstance(data, dict) and data.get("type") == kind


def chunk(data: Any) -> bool:
    return isinstance(data, dict)


def with_choices(data: Any) -> bool:
    return isinstance(data, dict) and bool(data.get("choices"))


def with_usage(data: Any) -> bool:
    return isinstance(data, dict) and "usage" in data


def last_choice(data: Any) -> bool:
    return with_choices(data) and data["choices"][0].get("finish_reason") is not None


def done(data: Any) -> bool:
    return data == "[DONE]" or (isinstance(data, dict) and data.get("done") is True)


def every(which: Which, edit: Edit) -> Events:
    """Returns a function that changes each event for which `which` is true."""

    async def events(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for data in source:
            for one in _listed(edit(data)) if which(data) else [data]:
                yield one

    return events


def first(which: Which, edit: Edit) -> Events:
    """Returns a function that changes the first event for which `which` is true."""

    async def events(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
        seen = False
        async for data in source:
            for one in _listed(edit(data)) if which(data) and not seen else [data]:
                yield one
            seen = seen or which(data)

    return events


def _listed(data: Any) -> list[Any]:
    return [] if data is None else data if isinstance(data, list) else [data]
