"""Two base classes for scanners with a defect: a slow and simple scanner, and a wrapper of the correct scanner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from staged.generation import Scanner

Found = tuple[int, str]  # where a stop begins, and the stop


class Simple:
    """A right scanner. Wrong scanners override the methods that they get wrong."""

    def __init__(self, stops: list[str]) -> None:
        self.stops = stops
        self.text = ""
        self.sent = 0
        self.match: str | None = None

    def feed(self, delta: str) -> str:
        if self.match is not None:
            return ""
        before = len(self.text)
        self.text += delta
        found = self.find(before)
        if found is None:
            return self.send(max(self.sent, len(self.text) - self.hold()))
        start, self.match = found
        return self.send(start)

    def flush(self) -> str:
        return "" if self.match is not None else self.send(len(self.text))

    def send(self, end: int) -> str:
        start, self.sent = self.sent, end
        return self.text[start:end]

    def found(self) -> list[Found]:
        """Returns every stop at each of its places in the text."""
        text = self.text
        return [(at, stop) for stop in self.stops for at in range(len(text)) if text.startswith(stop, at)]

    def find(self, before: int) -> Found | None:
        """Returns the stop that completes first, or the longest of several that complete at the same character."""
        return min(self.found(), key=lambda one: (one[0] + len(one[1]), one[0]), default=None)

    def hold(self) -> int:
        """Returns how many characters at the end of the text must be held, because a stop may begin with them."""
        return max((n for stop in self.stops for n in range(len(stop)) if self.text.endswith(stop[:n])), default=0)


def holding(hold: Callable[[Simple], int]) -> type[Simple]:
    """Returns a scanner that is right except for the number of held characters."""
    return type("Holding", (Simple,), {"hold": hold})


def finding(find: Callable[[Simple, int], Found | None]) -> type[Simple]:
    """Returns a class of scanners in which `find` decides which stop fires, and where. Everything else in them is
    correct."""
    return type("Finding", (Simple,), {"find": find})


def ordered(key: Callable[[int, str], Any]) -> type[Simple]:
    """Returns a class of scanners with a rule for several stops in a text: the stop with the smallest `key(start,
    stop)` fires. `start` is the offset of the stop."""
    return finding(lambda one, _: min(one.found(), key=lambda found: key(*found), default=None))


def only(which: Callable[[str, int, int, list[int]], Any]) -> type[Simple]:
    """Returns a class of scanners in which some stops do not fire. The stop `text[start:end]` fires only if
    `which(text, start, end, starts)` is true. `starts` has the offset of each token."""

    class Only(Simple):
        def __init__(self, stops: list[str]) -> None:
            super().__init__(stops)
            self.starts: list[int] = []

        def find(self, before: int) -> Found | None:
            self.starts.append(before)
            found = [one for one in self.found() if which(self.text, one[0], one[0] + len(one[1]), self.starts)]
            return min(found, default=None)

    return Only


def cutting(at: Callable[[Simple, int, str], int]) -> type[Simple]:
    """Returns a class of scanners with one defect: they cut the text at a wrong offset. If a stop fires at `start`,
    they cut at `at(scanner, start, stop)` instead."""

    def find(one: Simple, before: int) -> Found | None:
        found = Simple.find(one, before)
        return found and (max(one.sent, at(one, *found)), found[1])

    return finding(find)


class Around:
    """A correct scanner, which is the base class of wrong ones. It counts the `tokens` and `characters` that it has
    read."""

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
        """Returns the held text, and goes on with a new scanner. A stop that has begun in the held text cannot fire any
        more."""
        held = self.inner.flush()
        self.inner = Scanner(self.stops)
        return held


Make = Callable[[list[str]], Around]


def with_stops(change: Callable[[list[str]], list[str]]) -> Make:
    """Returns a function that makes scanners with one defect: they look for `change(stops)` in place of `stops`."""
    return lambda stops: Around(change(stops))
