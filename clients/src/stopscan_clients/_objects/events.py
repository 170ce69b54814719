"""The events of clients that are objects: their JSON, and objects of what a machine makes of that."""

from __future__ import annotations

import copy
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, get_args

from stopscan_clients._json import get
from stopscan_clients._machines.machine import OTHERWISE, Fields, Machine, fates, itself

# Where the type of an event has a class of its own: the client's public union of them.
EVENT_TYPES = {
    ("openai", "responses"): "openai.types.responses:ResponseStreamEvent",
    ("litellm", "responses"): "litellm.types.llms.openai:ResponsesAPIStreamingResponse",
    ("anthropic", "anthropic"): "anthropic.types:RawMessageStreamEvent",
    ("anthropic.types.beta", "anthropic"): "anthropic.types.beta:BetaRawMessageStreamEvent",
}


# Made by ChatCompletionStream and MessageStream beside the API's own events, with snapshots that nobody could cut.
HELPERS = ("chunk", "content.delta", "content.done", "refusal.delta", "text")


TRIED: set[Any] = set()  # classes of events whose text was cut for trial


class Objects:
    """The events of a client that are objects. One that a machine changes is copied as far as the change goes; one that
    it makes is made by the client's own class from JSON.

    What cannot be cut is a ``TypeError`` at the first text: a cut object is read back as a user would read it.
    """

    def __init__(self, like: Any, api: str | None = None) -> None:
        """``like`` is the first event of a stream of this API, or an answer."""
        check(like)
        self.python_names = not isinstance(like, dict)
        self._type = type(like)
        self._types = _event_types(self._type, api) if self.python_names else {}
        self.fields = _fields_of(self._type) if self._type in TRIED else None

    def load(self, event: Any, machine: Machine) -> Any:
        json = json_of(event)
        refuse_helper(json)
        if self.fields is None and not machine.matches:
            self._try(event, json, machine)
        return json

    def _try(self, event: Any, json: Any, machine: Machine) -> None:
        """Cuts the first text for trial, before any of it is fed. From then on the machine looks at objects."""
        try:
            found = machine.reader(itself, itself)(json)
        except OTHERWISE:
            return
        if found is not None:
            recut(event, json, _emptied(json, found[1]))
            TRIED.add(self._type)
            self.fields = _fields_of(self._type)
            machine.sole = machine.reader(*self.fields)

    def give(self, event: Any, json: Any, out: list[Any]) -> list[Any]:
        given: list[Any] = []
        for new, fate in fates(out, json):
            given.append(event if fate == "same" else recut(event, json, new) if fate == "cut" else self.made(new))
        return given

    def made(self, json: Any) -> Any:
        return build(self._types.get(json["type"], self._type) if self._types else self._type, json)


def check(event: Any) -> None:
    """Raises a ``TypeError`` for an object that nobody knows how to copy."""
    if not isinstance(event, dict) and not hasattr(type(event), "model_fields"):
        raise TypeError(
            f"{_named(type(event))} cannot be cut: give dicts, or the objects of a client that is named in the docs"
        )


def refuse_helper(event: Any) -> None:
    kind = get(event, "type")
    if isinstance(kind, str) and kind in HELPERS:
        raise TypeError(f"an event {kind!r} is made by the client's stream() helper: give the helper itself")


def _fields_of(cls: Any) -> tuple[Fields, Fields]:
    """How to get at all fields of an event of this class at once, and at those of what is in it.

    pydantic's objects are asked past their ``__getattr__``: CPython then looks through their classes for each
    attribute, which takes up to five times as long as the rest. LiteLLM's choices and deltas declare few of their
    fields, and pydantic has the others elsewhere.
    """
    if issubclass(cls, dict):
        return itself, itself
    top = _getter(cls, "__dict__")
    return top, _getter(cls, "__pydantic_extra__") if cls.__module__.startswith("litellm.") else top


def _getter(cls: Any, name: str) -> Fields:
    found: Fields = next((vars(owner)[name].__get__ for owner in cls.__mro__ if name in vars(owner)), attrgetter(name))
    return found


def json_of(event: Any) -> Any:
    """Returns the event as dicts and lists, without what its API left out."""
    if isinstance(event, dict) or not hasattr(type(event), "model_dump"):
        return event
    if _constructs(type(event)):
        return event.model_dump(exclude_unset=True, warnings=False)
    return event.model_dump(exclude_none=True, warnings=False)


def build(cls: Any, json: Any) -> Any:
    """Returns an object of the client's class with this JSON, nested objects too."""
    if hasattr(cls, "parse_obj_as_instance"):  # huggingface_hub's
        return cls.parse_obj_as_instance(json)
    if issubclass(cls, dict):
        return json if cls is dict else cls(json)
    if _constructs(cls):
        return cls.construct(**json)
    try:
        return cls.model_validate(json)
    except ValueError:  # more is required than the stream has told
        fields = cls.model_fields
        return cls.model_construct(
            **{key: _lenient(fields[key].annotation, value) if key in fields else value for key, value in json.items()}
        )


def _lenient(kind: Any, value: Any) -> Any:
    """The value as its field's type has it, an object where that has a class for one."""
    if isinstance(value, list):
        kinds = [arg for each in (kind, *get_args(kind)) for arg in get_args(each)]
        return [next((made for each in kinds if type(made := _lenient(each, one)) is not dict), one) for one in value]
    classes = [cls for cls in (kind, *get_args(kind)) if hasattr(cls, "model_fields")]
    return build(classes[0], value) if classes and isinstance(value, dict) else value


def _constructs(cls: Any) -> bool:
    """Whether this is a class as in openai, anthropic, groq, together: ``construct`` makes nested objects unchecked.
    LiteLLM's are of openai's class, but what their own ``__init__`` sets is not declared."""
    if cls.__module__.startswith("litellm."):
        return False
    return not getattr(getattr(cls, "construct", None), "__module__", "pydantic").startswith("pydantic")


def _event_types(cls: Any, api: str | None) -> dict[str, Any]:
    """The classes of events by their type; empty where all events have the class of this one."""
    for (package, named), union in reversed(EVENT_TYPES.items()):
        if named == api and cls.__module__.startswith(package):
            return _members(union)
    if api in ("responses", "anthropic"):
        raise TypeError(f"{_named(cls)} cannot be cut: no event types are known of its client")
    return {}


@cache
def _members(union: str) -> dict[str, Any]:
    module, _, name = union.partition(":")
    members = get_args(getattr(import_module(module), name))
    found = get_args(members[0]) or members  # Annotated[Union[…], …], or the union itself
    return {str(getattr(kind, "value", kind)): cls for cls in found for kind in _kinds(cls)}


def _named(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _kinds(cls: Any) -> tuple[Any, ...]:
    field = getattr(cls, "model_fields", {}).get("type")
    return get_args(field.annotation) if field is not None else ()


def recut(event: Any, old: Any, new: Any) -> Any:
    """The object with the fields in which its JSON ``new`` differs from ``old``, read back."""
    if new is old:
        return event
    made = build(type(event), new) if hasattr(type(event), "parse_obj_as_instance") else patched(event, old, new)
    if _leaks(made, old, new):
        raise TypeError(f"{_named(type(event))} cannot be cut: its text does not change")
    return made


def patched(obj: Any, old: Any, new: Any) -> Any:
    """Returns a copy of the object with what its JSON ``new`` changes of ``old``."""
    if new is old:
        return obj
    if isinstance(new, list) and isinstance(obj, list) and isinstance(old, list):
        return [_entry(obj, old, place, entry) for place, entry in enumerate(new)]
    if not isinstance(new, dict) or not isinstance(old, dict) or obj is None:
        return new
    fields: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old or value is not old[key]:
            before = field(obj, key)
            simple = isinstance(value, str) and type(before) is str
            nested = isinstance(value, dict | list) and before is not None
            fields[key] = patched(before, old.get(key), value) if simple or nested else _typed(obj, key, value)
    return _copied(obj, fields, new)


def _entry(obj: list[Any], old: list[Any], place: int, new: Any) -> Any:
    for before, same in zip(obj, old, strict=True):
        if same is new:
            return before
    index = get(new, "index")
    for before, other in zip(obj, old, strict=True):
        if index is not None and get(other, "index") == index:
            return patched(before, other, new)
    return patched(obj[place], old[place], new) if place < len(obj) else new


def _copied(obj: Any, fields: dict[str, Any], new: Any) -> Any:
    if not isinstance(obj, dict):
        return obj.model_copy(update=fields)
    if type(obj) is dict:
        return new
    made = copy.copy(obj)
    made.update(fields)
    for key in obj.keys() - new.keys():
        del made[key]
    return made


def _typed(owner: Any, key: str, value: Any) -> Any:
    """The value as the class of its owner has it: an enumeration, a nested object."""
    if value is None or isinstance(owner, dict) or key not in type(owner).model_fields:
        return value
    return getattr(build(type(owner), {key: value}), key, value)


def field(obj: Any, key: Any) -> Any:
    if isinstance(key, int):
        return obj[key] if isinstance(obj, list) and key < len(obj) else None
    return obj.get(key) if isinstance(obj, dict) else getattr(obj, key, None)


def _emptied(json: Any, text: str) -> Any:
    if isinstance(json, dict):
        return {key: _emptied(value, text) for key, value in json.items()}
    if isinstance(json, list):
        return [_emptied(value, text) for value in json]
    return "" if json == text else json


def _leaks(obj: Any, old: Any, new: Any) -> bool:
    """Whether a user still reads a text of ``old`` that is another one in ``new``, by attributes or by keys."""
    if isinstance(old, str):
        return bool(old) and obj == old != new
    if isinstance(old, dict) and isinstance(new, dict):
        keys: Any = old.keys() & new.keys()
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        keys = range(len(old))
    else:
        return False
    changed = [key for key in keys if new[key] is not old[key]]
    return any(_leaks(read, old[key], new[key]) for key in changed for read in _read(obj, key))


def _read(obj: Any, key: Any) -> list[Any]:
    both = isinstance(key, str) and isinstance(obj, dict) and type(obj) is not dict
    return [field(obj, key), getattr(obj, key, None)] if both else [field(obj, key)]
