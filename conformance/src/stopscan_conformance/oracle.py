"""Computes the right answer to a request by brute force, in code that is meant to be too simple to be wrong.

The stop that completes first fires. If several stops complete at the same character, the longest one fires. So if a
stop contains a shorter stop, and the shorter one completes first, the longer one never fires. Text at the end is held
if it is the beginning of a stop that is not yet complete. No stop fires in the reasoning, and no stop may begin in the
reasoning and end in the answer, or the reverse.
"""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stopscan_conformance.scripts import THINKING

OPENING, CLOSING = THINKING
NO_LIMIT = 1_000_000
# The token limit of all cases that set no other limit. Every script that a case recites to its end is shorter.
MAX_TOKENS = 200
MISSING: Any = object()  # the value of `stop` for a request without this field


@dataclass(frozen=True, eq=False)
class Task:
    """A request to the model, whatever the API. The oracle finds the right answer to it.

    - `script`: the name of the script that the model recites.
    - `pieces`: the tokens of the script.
    - `stop`: the field `stop` of the request.
    - `stop_pieces`: the indexes of the pieces that are stop tokens.
    - `max_tokens`: the most tokens of the answer.
    """

    script: str
    pieces: tuple[bytes, ...]
    stop: Any = MISSING
    stop_pieces: tuple[int, ...] = ()
    max_tokens: int | None = MAX_TOKENS

    @property
    def stops(self) -> list[str]:
        """The stop strings of the request."""
        if self.stop is MISSING or self.stop is None:
            return []
        return [self.stop] if isinstance(self.stop, str) else list(dict.fromkeys(self.stop))


class Fired(NamedTuple):
    """A stop that has fired: `text[start:end]`."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


class Reading(NamedTuple):
    """The result of a scan. `fired` is the stop that ends the text, or None. When `i` characters have been read, a stop
    can begin at the offset `begins[i]` or later. `begins[i]` is None while the text is in the reasoning."""

    fired: Fired | None
    begins: list[int | None]


def read(text: str, stops: Sequence[str], *, protected: bool = True, marked: frozenset[int] = frozenset()) -> Reading:
    """Scans the text character by character until a stop fires. In reasoning, stops fire only if `protected` is false.
    A stop that ends inside a token such as `<think>` does not fire. The offsets inside these tokens are in `marked`."""
    begin: int | None = 0
    begins: list[int | None] = [0]
    last = {end: sorted({s for s in stops if s[-1] == end}, key=len, reverse=True) for end in {s[-1] for s in stops}}
    for end in range(1, len(text) + 1):
        if begin is None:
            begin = end if text.endswith(CLOSING, 0, end) else None
        else:
            opens = protected and text.endswith(OPENING, begin, end)
            stop = next((s for s in last.get(text[end - 1], ()) if text.endswith(s, begin, end)), "")
            if stop and end not in marked and not (opens and len(OPENING) > len(stop)):
                return Reading(Fired(end - len(stop), end), begins)
            begin = None if opens else begin
        begins.append(begin)
    return Reading(None, begins)


def can_fire(stops: Sequence[str]) -> list[str]:
    """Returns the stops that can fire. A stop may contain `<think>` or another stop, and go on after it. The inner text
    then completes first, so this stop can never fire, and is left out."""
    return [stop for stop in stops if not any(other in stop[:-1] for other in {*stops, OPENING} - {stop})]


def beginnings(stops: Sequence[str]) -> frozenset[str]:
    """Returns all proper beginnings of `stops`, which must be stops that can fire."""
    return frozenset(stop[:length] for stop in stops for length in range(1, len(stop)))


def withheld(text: str, begun: frozenset[str]) -> int:
    """Returns how many characters at the end of `text` are held: the longest suffix of `text` with which a stop begins.
    `begun` has all beginnings of stops."""
    starts = (start for start, character in enumerate(text) if character in begun)
    return next((len(text) - start for start in starts if text[start:] in begun), 0)


@dataclass(frozen=True)
class Recital:
    """The right answer: its `text`, and the count of its `tokens`. The token that ends the answer also counts: the EOS,
    a stop token, or the token that completes the stop string.

    After token i, the text has `complete[i]` whole characters. The first `safe[i]` characters of the text can no longer
    become part of a stop, so the server may send them. In a stream, the text sent up to the end of each chunk must have
    one of the lengths in `safe`.
    """

    text: str
    tokens: int
    reason: str
    fires: str | int | None  # the stop string that ends the text, or the index in `task.pieces` of the stop token
    complete: tuple[int, ...]
    safe: tuple[int, ...]
    competes: bool = False  # another stop is also in the text when the stop fires, so a rule must choose between them
    at_limit: bool = False  # the text ends at the last token that the limit allows, but not because of the limit


def recite(task: Task, /, *, protected: bool = True) -> Recital:
    """Returns the right answer to a request, with the safe text after each token. If `protected` is false, stops also
    fire in reasoning."""
    pieces = task.pieces[: task.max_tokens or NO_LIMIT]
    text, complete = _decoded(pieces)
    reading = read(
        text, task.stops, protected=protected, marked=_marked(pieces, complete) if protected else frozenset()
    )
    fired = reading.fired
    # `stopped` is the index of the token that completes the stop string. `token` is the index of the first stop token.
    stopped = bisect_left(complete, fired.end) if fired else NO_LIMIT
    token = min((index for index in task.stop_pieces if index < len(pieces)), default=NO_LIMIT)
    if fired and stopped <= token:
        safe = _safe(text, complete[:stopped], reading, task.stops)
        end = fired.start
        competing = [stop for stop in task.stops if stop in text[: complete[stopped]] and stop != fired.of(text)]
        return Recital(
            text[:end],
            stopped + 1,
            "stop_sequence",
            fired.of(text),
            complete[: stopped + 1],
            (*safe, end, end),
            competes=bool(competing) or token == stopped,
            at_limit=stopped + 1 == task.max_tokens,
        )
    if token < len(pieces):
        text = pieces_text(pieces[:token])
        safe = _safe(text, complete[:token], reading, task.stops)
        ended = token + 1 == task.max_tokens
        return Recital(text, token + 1, "stop_token", token, complete[: token + 1], (*safe, len(text)), at_limit=ended)
    safe = _safe(text, complete, reading, task.stops)
    if len(pieces) == task.max_tokens:
        return Recital(text, len(pieces), "length", None, complete, (*safe, len(text)))
    ended = len(pieces) + 1 == task.max_tokens
    return Recital(text, len(pieces) + 1, "eos", None, complete, (*safe, len(text)), at_limit=ended)


def _marked(pieces: Sequence[bytes], complete: Sequence[int]) -> frozenset[int]:
    """Returns the offsets inside each `<think>` that is one token. No stop may end there. A stop may end at the end of
    the token."""
    ends = [known for piece, known in zip(pieces, complete, strict=True) if piece == OPENING.encode()]
    return frozenset(at for end in ends for at in range(end - len(OPENING) + 1, end))


def pieces_text(pieces: Sequence[bytes]) -> str:
    """Returns the text of pieces, with U+FFFD for an incomplete character at the end."""
    return b"".join(pieces).decode(errors="replace")


def _decoded(pieces: Sequence[bytes]) -> tuple[str, tuple[int, ...]]:
    """Returns the text of the pieces, and for each piece the count of characters that are complete after it."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    complete, known = [], 0
    for piece in pieces:
        known += len(decoder.decode(piece))
        complete.append(known)
    return pieces_text(pieces), tuple(complete)


def _safe(text: str, complete: Sequence[int], reading: Reading, stops: Sequence[str]) -> list[int]:
    """Returns the length of the safe text after each token."""
    begun = beginnings(can_fire(stops))
    longest = max(map(len, begun), default=0)
    safe = []
    for known in complete:
        begin = reading.begins[known]
        safe.append(known if begin is None else known - withheld(text[max(begin, known - longest) : known], begun))
    return safe
