from __future__ import annotations

import json
import re

# What tells nothing of the text: counters, times, names of the event and of its part, padding against eavesdroppers.
HOLES = (
    "sequence_number created created_at obfuscation p id item_id responseId timestamp prompt_tokens completion_tokens "
    "total_tokens input_tokens output_tokens promptTokenCount candidatesTokenCount totalTokenCount thoughtsTokenCount"
)
HOLE = re.compile(rb'"(?:%s)"\s*:\s*(-?\d[\d.eE+-]*|"[^"\\\x00-\x1f]*")' % HOLES.replace(" ", "|").encode())
NUMBER, STRING = rb"-?\d[\d.eE+-]*", rb'"[^"\\\x00-\x1f]*"'
TEXT = rb'((?!")[^"\\\x00-\x1f]*(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*)*)'


class Template:
    """Tells which frames differ from one frame in the text alone, whatever the text says. Nothing in such a frame need
    be parsed.

    Such a frame has the bytes before the text, the text as a JSON string, and the bytes after the text. Holes, which
    tell nothing of the text, are compared like the other bytes until a frame was seen in which they differ.
    """

    def __init__(self, before: bytes, after: bytes, margins: tuple[int, int]) -> None:
        """``margins`` are bytes at a frame's edges that count or check the frame."""
        self._head, self._tail = margins
        self._parts = before + b'"', b'"' + after
        self._varying: set[int] = set()
        self._compile()

    def text(self, frame: bytes) -> bytes | None:
        """Returns the text as it stands in the JSON string; ``None`` for another frame, and for one without text."""
        begin, end = self._begin, len(frame) - self._behind
        if begin >= end or not frame.startswith(self._before, self._head) or not frame.startswith(self._after, end):
            return None
        found = self._between(frame, begin, end)
        return found[1] if found is not None else None

    def widen(self, before: bytes, after: bytes) -> bool:
        """Returns whether a frame with these bytes around its text differs in holes alone, which fit from now on."""
        parts = before + b'"', b'"' + after
        if _skeleton(parts) != _skeleton(self._parts):
            return False
        pairs = zip(_said(parts), _said(self._parts), strict=True)
        self._varying.update(number for number, (old, new) in enumerate(pairs) if old != new)
        self._compile()
        return True

    def _compile(self) -> None:
        """Splits the frame in what is compared as bytes and what an expression reads: the text, and all from the first
        hole that varies to the last."""
        before, after = self._parts
        holes = [*HOLE.finditer(before)]
        front = [hole for number, hole in enumerate(holes) if number in self._varying]
        back = [hole for number, hole in enumerate(HOLE.finditer(after), len(holes)) if number in self._varying]
        cut = front[0].start(1) if front else len(before)
        rest = back[-1].end(1) if back else 0
        self._before, self._after = before[:cut], after[rest:]
        self._begin, self._behind = self._head + cut, len(after) - rest + self._tail
        pattern = _with_holes(before, cut, len(before), front) + TEXT + _with_holes(after, 0, rest, back)
        self._between = re.compile(pattern).fullmatch


def _said(parts: tuple[bytes, bytes]) -> list[bytes]:
    return [hole[1] for part in parts for hole in HOLE.finditer(part)]


def _skeleton(parts: tuple[bytes, bytes]) -> list[bytes]:
    return [_with_holes(part, 0, len(part), [*HOLE.finditer(part)]) for part in parts]


def _with_holes(part: bytes, begin: int, end: int, holes: list[re.Match[bytes]]) -> bytes:
    out = []
    for hole in holes:
        out += [re.escape(part[begin : hole.start(1)]), STRING if hole[1].startswith(b'"') else NUMBER]
        begin = hole.end(1)
    return b"".join([*out, re.escape(part[begin:end])])


def split_at(frame: bytes, text: str) -> tuple[bytes, bytes] | None:
    """Returns what is before and after the one place where the frame has this text for a value."""
    for ascii_only in (False, True):
        quoted = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if frame.count(quoted) == 1:
            before, after = frame.split(quoted)
            return (before, after) if before.rstrip().endswith(b":") else None
    return None
