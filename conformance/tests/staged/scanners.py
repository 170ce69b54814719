"""A scanner that is slow and simple, so that it can be wrong in one place."""

from __future__ import annotations

Found = tuple[int, str]  # where a stop begins, and the stop


class Simple:
    """Right; others override what they do wrong."""

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
        """Every stop at each of its places."""
        text = self.text
        return [(at, stop) for stop in self.stops for at in range(len(text)) if text.startswith(stop, at)]

    def find(self, before: int) -> Found | None:
        """The stop that completes first, of several the longest."""
        return min(self.found(), key=lambda one: (one[0] + len(one[1]), one[0]), default=None)

    def hold(self) -> int:
        """How many characters may begin a stop."""
        return max((n for stop in self.stops for n in range(len(stop)) if self.text.endswith(stop[:n])), default=0)
