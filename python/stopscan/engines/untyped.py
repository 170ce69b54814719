"""A base class that only type checkers see."""

from typing import Any


class Untyped:
    """Stands for a class of an engine that has no type annotations. Any attribute of it passes the type checker."""

    def __getattr__(self, name: str) -> Any: ...
