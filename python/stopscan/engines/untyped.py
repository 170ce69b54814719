"""A base class that only type checkers see."""

from typing import Any


class Untyped:
    """Stands for a class of an engine without type annotations. The type checker accepts every attribute of it."""

    def __getattr__(self, name: str) -> Any: ...
