"""Reading, copying and making the events of any client: dicts, pydantic objects, and what merely has attributes."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from operator import attrgetter
from types import SimpleNamespace
from typing import Any


def fields_of(event: Any) -> Callable[[Any], dict[str, Any]]:
    """Returns how to get at all fields of objects like this one at once; for others it raises.

    The kind of object is looked at once for a stream, and pydantic's objects are asked past their ``__getattr__``:
    CPython then looks through their classes for each attribute, which takes up to five times as long as the rest.
    """
    if isinstance(event, dict):
        return _itself
    if type(event).__module__.startswith("litellm."):
        return _stored
    owner = next((cls for cls in type(event).__mro__ if "__dict__" in vars(cls)), None)
    return attrgetter("__dict__") if owner is None else vars(owner)["__dict__"].__get__


def get(obj: Any, name: str) -> Any:
    """Returns a field of an object of any kind; ``None`` where there is none, or no object."""
    return obj.get(name) if isinstance(obj, dict) else getattr(obj, name, None)


def has(obj: Any, name: str) -> bool:
    return name in obj if isinstance(obj, dict) else hasattr(obj, name)


def replace(obj: Any, /, **fields: Any) -> Any:
    """Returns a shallow copy of ``obj``, of the same class, with other ``fields``; no object stays none."""
    if obj is None:
        return None
    if isinstance(obj, dict):
        made = copy.copy(obj)
        made.update(fields)
        return made
    if hasattr(obj, "model_copy"):
        return obj.model_copy(update=fields)
    made = copy.copy(obj)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def without(obj: Any, /, *names: str) -> Any:
    """Returns ``obj`` with those of the named fields null that say something; ``obj`` itself if none does."""
    fields = {name: None for name in names if get(obj, name) is not None}
    return replace(obj, **fields) if fields else obj


def only(obj: Any, /, **fields: Any) -> Any:
    """Returns an object of the class of ``obj`` that has these fields alone."""
    return _construct(type(obj), fields)


def sibling(obj: Any, /, *names: str, **fields: Any) -> Any:
    """Returns an object of the first of the named classes that the client of ``obj`` has, or a dict if ``obj`` is one.

    The classes are looked for where the class of ``obj`` comes from: nothing is imported.
    """
    if not isinstance(obj, dict):
        module = type(obj).__module__
        for place in (module, module.rpartition(".")[0]):
            for name in names:
                found = getattr(sys.modules.get(place), name, None)
                if isinstance(found, type):
                    return _construct(found, fields)
        return SimpleNamespace(**fields)
    return fields


def _construct(cls: type, fields: dict[str, Any]) -> Any:
    if issubclass(cls, dict):
        return cls(fields)
    if not hasattr(cls, "model_construct"):
        return SimpleNamespace(**fields)
    made: Any = cls
    if "__init__" in vars(cls):  # LiteLLM's classes: what they set there is not in the declared fields
        return made(**fields)
    return made.model_construct(**fields)


def _itself(obj: dict[str, Any]) -> dict[str, Any]:
    return obj


def _stored(obj: Any) -> dict[str, Any]:
    """LiteLLM's choices and deltas declare few of their fields, and where the others are, pydantic takes 620 ns to look
    for one."""
    extra: dict[str, Any] = obj.__pydantic_extra__
    return extra if extra and ("delta" in extra or "content" in extra) else obj.__dict__
