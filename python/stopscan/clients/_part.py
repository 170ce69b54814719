from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from stopscan import StopMatch, StopScanner

Token = tuple[int, Any]  # where it begins, in code points, and what the API says of it

SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Returns the text with U+FFFD for each lone surrogate, which JSON can spell and UTF-8 cannot."""
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


class Part:
    """One text of a stream: a choice's, a content block's. It has the scanner, and for as long as text is held also
    the tokens (logprobs) of that text and the event that it came in, to copy when the text comes by itself.

    A token comes with the first of its characters, as in ``TokenScanner.tokens_kept``.
    """

    __slots__ = ("closed", "feed", "held", "over", "scanner", "source", "tokens")

    def __init__(self, scanner: StopScanner) -> None:
        self.scanner = scanner
        self.feed = scanner.feed
        self.held = 0  # how many characters
        self.tokens: list[Token] = []  # begins are counted from the first held character
        self.source: Any = None
        self.over = False  # its stop has fired
        self.closed = False  # the API's own closing event has come

    @property
    def match(self) -> StopMatch | None:
        return self.scanner.match

    def settle(self, safe: str, tokens: Iterable[Token]) -> list[Any]:
        """Returns the tokens that come with ``safe``, which the scanner gave for a text with ``tokens``."""
        self.tokens += [(self.held + begin, token) for begin, token in tokens]
        self.held = len(self.scanner.held)
        return self._take(len(safe))

    def flush(self) -> tuple[str, list[Any]]:
        """Returns the held text and its tokens: the part is over, or something else comes in between."""
        self.held = 0
        return self.scanner.flush(), self._take(None)

    def _take(self, until: int | None) -> list[Any]:
        out = [token for begin, token in self.tokens if until is None or begin < until]
        self.tokens = [] if until is None else [(begin - until, t) for begin, t in self.tokens if begin >= until]
        return out
