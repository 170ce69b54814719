"""A base class that only type checkers see."""

from typing import Any


class Untyped:
    """Stands for a class of an engine without types: it may have any attribute."""

    def __getattr__(self, name: str) -> Any: ...
