"""A base class for type checkers alone."""

from typing import Any


class Untyped:
    """To type checkers, a class of an engine that comes without types: it may have any attribute."""

    def __getattr__(self, name: str) -> Any: ...
