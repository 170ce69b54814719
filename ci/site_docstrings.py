"""A griffe extension for the API reference: adds docstrings that the type stub lacks, and formats examples."""

from __future__ import annotations

import re
from copy import copy
from pydoc import locate
from typing import Any

from griffe import Class, Docstring, Extension, Function, Object

EXAMPLE = re.compile(r"(?m)^>>> (?:.+\n?)+")
CORE = "stopscan._stopscan."


class Examples(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        """If the type stub lacks a docstring, adds that of the compiled module. Turns examples into code blocks."""
        if obj.docstring is None and obj.path.startswith(CORE) and (text := documented(obj.path)):
            obj.docstring = Docstring(text, parent=obj)
        if obj.docstring:
            # Examples are put into code blocks: otherwise Markdown would read their brackets as links.
            obj.docstring.value = EXAMPLE.sub(
                lambda block: f"```pycon\n{block[0].rstrip()}\n```\n", obj.docstring.value
            )

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Gives a class of the compiled module the members of its base classes, which exist only in the type stub.
        Shows `__new__` as `__init__`."""
        if cls.path.startswith(CORE):
            take_in(cls, cls)
            cls.bases = [base for base in cls.bases if not str(base).startswith("_")]
        made = cls.members.get("__new__")
        if isinstance(made, Function) and "__init__" not in cls.members:
            made.name = "__init__"
            made.docstring = Docstring("", parent=made)
            cls.set_member("__init__", made)
            cls.del_member("__new__")


def take_in(cls: Class, owner: Class) -> None:
    """Copies into ``cls`` the members of the base classes of ``owner``. The type stub has these base classes, but the
    compiled module does not."""
    for base in map(str, owner.bases):
        shared = owner.parent.members.get(base.partition("[")[0])
        if isinstance(shared, Class):
            for name, member in shared.members.items():
                cls.set_member(name, own := copy(member))
                own.docstring = Docstring(documented(own.path), parent=own)
            take_in(cls, shared)


def documented(path: str) -> str:
    """Returns the docstring of the object at ``path``, or "" if the object has none. In this case, Python may give
    the docstring of the object's type, which must not be shown."""
    found: Any = locate(path)
    text = getattr(found, "__doc__", None) or ""
    return "" if text == type(found).__doc__ else text
