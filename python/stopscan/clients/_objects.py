"""Reading, copying and making the events of any client: dicts, pydantic objects, and what merely has attributes."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

Getter = Callable[[Any, str, Any], Any]


def getter(event: Any) -> Getter:
    """Returns how to read a field of objects like this one, with a default. The built-in ways cost a third of a
    function of our own, so the kind of object is looked at once for a stream."""
    if isinstance(event, dict):
        return dict.get
    if type(event).__module__.startswith("litellm."):
        return _stored
    return getattr


def get(obj: Any, name: str, default: Any = None) -> Any:
    """Returns a field of an object of any kind; ``default`` where there is none, or no object."""
    return obj.get(name, default) if isinstance(obj, dict) else getattr(obj, name, default)


def has(obj: Any, name: str) -> bool:
    return name in obj if isinstance(obj, dict) else hasattr(obj, name)


def replace(obj: Any, /, **fields: Any) -> Any:
    """Returns a shallow copy of ``obj``, of the same class, with other ``fields``."""
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


def _stored(obj: Any, name: str, default: Any) -> Any:
    """A field of one of LiteLLM's objects, which keep most of theirs where pydantic takes 620 ns to look."""
    try:
        fields = obj.__dict__
        return fields[name] if name in fields else obj.__pydantic_extra__.get(name, default)
    except AttributeError:  # no such object, or one without extra fields
        return get(obj, name, default)
