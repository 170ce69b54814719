from __future__ import annotations

import json
import re

# What tells nothing of the text: counters, times, names of the event and of its part, padding against eavesdroppers.
HOLES = (
    "sequence_number created created_at obfuscation p id item_id responseId timestamp prompt_tokens completion_tokens "
    "total_tokens input_tokens output_tokens promptTokenCount candidatesTokenCount totalTokenCount thoughtsTokenCount"
)
HOLE = re.compile(rb'"(?:%s)"\s*:\s*(-?\d[\d.eE+-]*|"[^"\\\x00-\x1f]*")' % HOLES.replace(" ", "|").encode())
NUMBER, STRING = re.compile(rb"-?\d[\d.eE+-]*"), re.compile(rb'"[^"\\\x00-\x1f]*"')
TEXT = re.compile(rb'[^"\\\x00-\x1f]*(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*)*')

Piece = tuple[bytes, "re.Pattern[bytes] | None"]  # bytes as they are, and the hole behind them


class Template:
    """Tells which frames differ from one frame in the text alone, whatever the text says. Nothing in such a frame need
    be parsed.

    Such a frame has the bytes before the text, the text as a JSON string, and the bytes after the text. Holes may
    differ, too: they are for what tells nothing of the text. Most frames have in their holes what the last one had, and
    are compared whole.
    """

    def __init__(self, before: bytes, after: bytes, margins: tuple[int, int]) -> None:
        """``margins`` are bytes at a frame's edges that count or check the frame."""
        self._head, self._tail = margins
        self._pieces = _pieces(before + b'"'), _pieces(b'"' + after)
        self._last(before + b'"', b'"' + after)

    def text(self, frame: bytes) -> bytes | None:
        """Returns the text as it stands in the JSON string; ``None`` for another frame, and for one without text."""
        begin, end = self._begin, len(frame) - self._behind
        if begin < end and frame.startswith(self._before, self._head) and frame.startswith(self._after, end):
            found = TEXT.fullmatch(frame, begin, end)
            return None if found is None else found[0]
        return self._with_other_holes(frame)

    def _with_other_holes(self, frame: bytes) -> bytes | None:
        before, after = self._pieces
        begin = _end_of(before, frame, self._head)
        if begin is None or (found := TEXT.match(frame, begin)) is None or found.end() == begin:
            return None
        if _end_of(after, frame, found.end()) != len(frame) - self._tail:
            return None
        self._last(frame[self._head : begin], frame[found.end() : len(frame) - self._tail])
        return found[0]

    def _last(self, before: bytes, after: bytes) -> None:
        self._before, self._after = before, after
        self._begin, self._behind = self._head + len(before), len(after) + self._tail


def _pieces(part: bytes) -> list[Piece]:
    pieces: list[Piece] = []
    end = 0
    for hole in HOLE.finditer(part):
        pieces.append((part[end : hole.start(1)], STRING if hole[1].startswith(b'"') else NUMBER))
        end = hole.end()
    return [*pieces, (part[end:], None)]


def _end_of(pieces: list[Piece], frame: bytes, place: int) -> int | None:
    """Returns where these pieces end that begin at ``place``; ``None`` if they do not stand there."""
    for literal, hole in pieces:
        if not frame.startswith(literal, place):
            return None
        place += len(literal)
        if hole is not None:
            found = hole.match(frame, place)
            if found is None:
                return None
            place = found.end()
    return place


def split_at(frame: bytes, text: str) -> tuple[bytes, bytes] | None:
    """Returns what is before and after the one place where the frame has this text for a value."""
    for ascii_only in (False, True):
        quoted = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if frame.count(quoted) == 1:
            before, after = frame.split(quoted)
            return (before, after) if before.rstrip().endswith(b":") else None
    return None
