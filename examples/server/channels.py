"""Which part of a text is the answer and which is reasoning, in models that think in tags or speak in channels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from stopscan import StopScanner

Kind = Literal["reasoning", "answer"]

# Where no stop fires. In Harmony a header says which channel follows, and the last one is the answer; the first pair
# protects all until there. Where stops count in the reasoning, too, only headers are protected.
UNTIL_ANSWER = [("<|channel|>", "final<|message|>")]
HEADERS = [("<|channel|>", "<|message|>"), ("<|end|>", "<|message|>")]

# What each part may end with, and which part follows. A stop that completes first wins, and the longest of those that
# complete together: `final<|message|>` before `<|message|>`.
MARKERS = {
    "answer": {"<think>": "thought", "<|channel|>": "header", "<|end|>": "header"},
    "thought": {"</think>": "answer"},
    "header": {"final<|message|>": "answer", "<|message|>": "analysis"},
    "analysis": {"<|end|>": "header"},
}
KINDS: dict[str, Kind] = {"answer": "answer", "thought": "reasoning", "analysis": "reasoning"}


class Channels:
    """Splits a stream of text; the markers and headers are left out."""

    def __init__(self, part: str = "answer") -> None:
        self._enter(part)

    def feed(self, text: str) -> Iterator[tuple[Kind, str]]:
        while text:
            yield from self._kept(self._scanner.feed(text))
            if self._scanner.match is None:
                return
            text = self._scanner.unused
            self._enter(MARKERS[self._part][self._scanner.match.sequence])

    def flush(self) -> Iterator[tuple[Kind, str]]:
        yield from self._kept(self._scanner.flush())

    def _enter(self, part: str) -> None:
        self._part = part
        self._scanner = StopScanner(MARKERS[part])

    def _kept(self, text: str) -> Iterator[tuple[Kind, str]]:
        if text and self._part in KINDS:
            yield KINDS[self._part], text
