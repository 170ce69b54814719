from __future__ import annotations

import json
import re
from collections.abc import Callable

# What tells nothing of the text: counters, times, names of the event, padding against eavesdroppers.
HOLES = (
    "sequence_number created created_at obfuscation p id responseId timestamp prompt_tokens completion_tokens "
    "total_tokens input_tokens output_tokens promptTokenCount candidatesTokenCount totalTokenCount thoughtsTokenCount"
)
HOLE = re.compile(rb'"(?:%s)"\s*:\s*(-?\d[\d.eE+-]*|"[^"\\\x00-\x1f]*")' % HOLES.replace(" ", "|").encode())
NUMBER, STRING = rb"-?\d[\d.eE+-]*", rb'"[^"\\\x00-\x1f]*"'
TEXT = rb'(?!")([^"\\\x00-\x1f]*(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*)*)'


def template(before: bytes, after: bytes, margins: tuple[int, int]) -> Callable[[bytes], re.Match[bytes] | None]:
    """Returns what matches the frames that differ from one in the text alone, whatever it says: the bytes before the
    text, the text as a JSON string, which is the match's group, and the bytes after it, with holes for what tells
    nothing. Nothing in such a frame need be parsed. ``margins`` are bytes at its edges that count or check it.
    """
    head, tail = (b"[\\x00-\\xff]{%d}" % margin for margin in margins)
    return re.compile(head + _with_holes(before + b'"') + TEXT + _with_holes(b'"' + after) + tail).fullmatch


def split_at(frame: bytes, text: str) -> tuple[bytes, bytes] | None:
    """Returns what is before and after the one place where the frame has this text for a value."""
    for ascii_only in (False, True):
        quoted = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if frame.count(quoted) == 1:
            before, after = frame.split(quoted)
            return (before, after) if before.rstrip().endswith(b":") else None
    return None


def _with_holes(part: bytes) -> bytes:
    out, end = [], 0
    for hole in HOLE.finditer(part):
        out += [re.escape(part[end : hole.start(1)]), STRING if hole[1].startswith(b'"') else NUMBER]
        end = hole.end()
    return b"".join([*out, re.escape(part[end:])])
