"""A base class that only type checkers see."""

from typing import Any


class Untyped:
    """A class whose attributes all pass the type checker. It stands for classes of an engine that have no type
    annotations."""

    def __getattr__(self, name: str) -> Any: ...
