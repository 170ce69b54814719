from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from staged.app import Staged
from staged.generation import Scanner


@dataclass(frozen=True)
class Mutant:
    """A wrong server, and the API that shows it."""

    name: str
    changes: Mapping[str, Any]
    api: str = "openai-chat"

    def staged(self) -> Staged:
        return Staged(self.name, **self.changes)


def mutant(name: str, api: str = "openai-chat", /, **changes: Any) -> Mutant:
    return Mutant(name, changes, api)


class Around:
    """A right scanner, around which others are wrong; `tokens` and `characters` were read."""

    def __init__(self, stops: list[str]) -> None:
        self.stops = stops
        self.inner = Scanner(stops)
        self.tokens = 0
        self.characters = 0

    def feed(self, text: str) -> str:
        out = self.read(text)
        self.tokens += 1
        self.characters += len(text)
        return out

    def read(self, text: str) -> str:
        return self.inner.feed(text)

    def flush(self) -> str:
        return self.inner.flush()

    @property
    def match(self) -> str | None:
        return self.inner.match

    def restart(self) -> str:
        """What was held; what began before does not count any more."""
        held = self.inner.flush()
        self.inner = Scanner(self.stops)
        return held


Make = Callable[[list[str]], Around]


def with_stops(change: Callable[[list[str]], list[str]]) -> Make:
    """A right scanner of other stops."""
    return lambda stops: Around(change(stops))
