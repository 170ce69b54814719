from __future__ import annotations

import json
import re
from collections.abc import Container

# What tells nothing of the text: counters, times, names of the event and of its part, padding against eavesdroppers.
HOLES = (
    "sequence_number created created_at obfuscation p id item_id responseId timestamp prompt_tokens completion_tokens "
    "total_tokens input_tokens output_tokens promptTokenCount candidatesTokenCount totalTokenCount thoughtsTokenCount"
)
HOLE = re.compile(rb'"(?:%s)"\s*:\s*(-?\d[\d.eE+-]*|"[^"\\\x00-\x1f]*")' % HOLES.replace(" ", "|").encode())
NUMBER, STRING = re.compile(rb"-?\d[\d.eE+-]*"), re.compile(rb'"[^"\\\x00-\x1f]*"')
TEXT = re.compile(rb'[^"\\\x00-\x1f]*(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*)*')

Piece = tuple["re.Pattern[bytes] | None", bytes]  # a hole, and the bytes behind it


class Template:
    """Tells which frames differ from one frame in the text alone, whatever the text says. Nothing in such a frame need
    be parsed.

    Such a frame has the bytes before the text, the text as a JSON string, and the bytes after the text. Holes may
    differ, too: they are for what tells nothing of the text. In most streams most holes have the same in every frame,
    so a hole is compared like the bytes around it until it differs.
    """

    def __init__(self, before: bytes, after: bytes, margins: tuple[int, int]) -> None:
        """``margins`` are bytes at a frame's edges that count or check the frame."""
        self._head, self._tail = margins
        self._before, self._after = _Side(before + b'"'), _Side(b'"' + after)
        # What every frame has, until a hole has differed.
        self._alike: tuple[bytes, bytes] | None = (before + b'"', b'"' + after)
        self._sizes = self._head + len(before) + 1, self._tail + len(after) + 1

    def text(self, frame: bytes) -> bytes | None:
        """Returns the text as it stands in the JSON string; ``None`` for another frame, and for one without text."""
        if self._alike is not None:
            before, after = self._alike
            begin, end = self._sizes[0], len(frame) - self._sizes[1]
            if begin < end and frame.startswith(before, self._head) and frame.startswith(after, end):
                return frame[begin:end] if TEXT.fullmatch(frame, begin, end) else None

        place = self._text(frame, self._before.now, self._after.now)
        if place is None:
            place = self._text(frame, self._before.all, self._after.all)
            if place is None:
                return None
            self._before.learn(frame[self._head : place[0]])
            self._after.learn(frame[place[1] : len(frame) - self._tail])
            self._alike = None
        return frame[place[0] : place[1]]

    def _text(self, frame: bytes, before: list[Piece], after: list[Piece]) -> tuple[int, int] | None:
        begin = _past(before, frame, self._head)
        found = TEXT.match(frame, begin) if begin >= 0 else None
        if found is None or (end := found.end()) == begin or _past(after, frame, end) != len(frame) - self._tail:
            return None
        return begin, end


class _Side:
    """The bytes on one side of the text: with ``all`` holes, and with those that were seen to differ (``now``)."""

    def __init__(self, part: bytes) -> None:
        self._said = _said(part)
        self._varying: set[int] = set()
        self.all = _pieces(part, range(len(self._said)))
        self.now = _pieces(part, ())

    def learn(self, part: bytes) -> None:
        """Notes what differs in the same side of another frame."""
        pairs = zip(self._said, _said(part), strict=True)
        self._varying.update(number for number, (old, new) in enumerate(pairs) if old != new)
        self.now = _pieces(part, self._varying)


def _said(part: bytes) -> list[bytes]:
    return [hole[1] for hole in HOLE.finditer(part)]


def _pieces(part: bytes, holes: Container[int]) -> list[Piece]:
    pieces: list[Piece] = []
    kind, begin = None, 0
    for number, hole in enumerate(HOLE.finditer(part)):
        if number in holes:
            pieces.append((kind, part[begin : hole.start(1)]))
            kind, begin = STRING if hole[1].startswith(b'"') else NUMBER, hole.end()
    return [*pieces, (kind, part[begin:])]


def _past(pieces: list[Piece], frame: bytes, place: int) -> int:
    """Returns where these pieces end that begin at ``place``; -1 if they do not stand there."""
    for hole, literal in pieces:
        if hole is None:
            if not frame.startswith(literal, place):
                return -1
        else:
            begin, place = place, frame.find(literal, place)
            said = frame[begin:place]
            if place < 0 or not (said.isdigit() or hole.fullmatch(said)):
                return -1
        place += len(literal)
    return place


def split_at(frame: bytes, text: str) -> tuple[bytes, bytes] | None:
    """Returns what is before and after the one place where the frame has this text for a value."""
    for ascii_only in (False, True):
        quoted = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if frame.count(quoted) == 1:
            before, after = frame.split(quoted)
            return (before, after) if before.rstrip().endswith(b":") else None
    return None
