"""What a right server makes of a request: brute force, meant to be too simple to be wrong.

Rule 1: the stop that completes first wins, of several the longest. Rule 3: withheld is the longest end of the text that
begins a stop and is not all of it; a stop that has another one in it, ending before its own end, can never fire.
Nothing fires in reasoning, and nothing goes across its edges.
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
# More than the longest script has that ends by itself, but for those that are asked for a part of.
MAX_TOKENS = 200


MISSING: Any = object()  # the request has no stop


@dataclass(frozen=True, eq=False)
class Asked:
    """What a request asks of the model, in no API's words: a script, its stops and its limit. `stop` is the value as
    the request has it, and `stop_pieces` are the indexes of the pieces whose tokens stop."""

    script: str
    pieces: tuple[bytes, ...]
    stop: Any = MISSING
    stop_pieces: tuple[int, ...] = ()
    max_tokens: int | None = MAX_TOKENS

    @property
    def stops(self) -> list[str]:
        """The stop strings that the request names."""
        if self.stop is MISSING or self.stop is None:
            return []
        return [self.stop] if isinstance(self.stop, str) else list(dict.fromkeys(self.stop))


class Fired(NamedTuple):
    """The stop `text[start:end]`."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


class Reading(NamedTuple):
    """`fired` is the stop that ends the text, if one does. `begins[i]` is where the text begins that `text[:i]` is
    scanned from; None: its end is reasoning."""

    fired: Fired | None
    begins: list[int | None]


def read(text: str, stops: Sequence[str], *, protected: bool = True, marked: frozenset[int] = frozenset()) -> Reading:
    """The text, read character by character until a stop fires; without `protected`, also in reasoning. No stop ends at
    the characters in `marked`, which are within the token of a marker."""
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
    """The stops that have no other stop, and no opening of reasoning, in them that ends before their own end."""
    return [stop for stop in stops if not any(other in stop[:-1] for other in {*stops, OPENING} - {stop})]


def beginnings(stops: Sequence[str]) -> frozenset[str]:
    """Each text that may still become one of the stops, which all can fire."""
    return frozenset(stop[:length] for stop in stops for length in range(1, len(stop)))


def withheld(text: str, begun: frozenset[str]) -> int:
    """How many characters at the end of `text` are the longest of the beginnings. Each of them begins with a character
    that is one, too."""
    starts = (start for start, character in enumerate(text) if character in begun)
    return next((len(text) - start for start in starts if text[start:] in begun), 0)


@dataclass(frozen=True)
class Recital:
    """`text` comes of `tokens` tokens, the one that ends it included.

    `fires` is the stop that ends it, or of a stop token the index of its piece. After token i, `said[i]` characters
    are known and `safe[i]` of them cannot become a stop any more: a chunk of a stream ends at one of these.

    `competes` says that another stop is in the text, too, when the stop fires, so that which of them ends it is a rule
    of its own; `at_limit` that the last token which the limit allows ends it otherwise.
    """

    text: str
    tokens: int
    reason: str
    fires: str | int | None
    said: tuple[int, ...]
    safe: tuple[int, ...]
    competes: bool = False
    at_limit: bool = False


def recite(asked: Asked, /, *, protected: bool = True) -> Recital:
    """What a request has to come to, token by token; without `protected`, stops fire in reasoning, too."""
    pieces = asked.pieces[: asked.max_tokens or NO_LIMIT]
    text, said = _decoded(pieces)
    reading = read(text, asked.stops, protected=protected, marked=_marked(pieces, said) if protected else frozenset())
    fired = reading.fired
    # The token that completes the stop, and the first one that is a stop itself.
    stopped = bisect_left(said, fired.end) if fired else NO_LIMIT
    token = min((index for index in asked.stop_pieces if index < len(pieces)), default=NO_LIMIT)
    if fired and stopped <= token:
        safe = _safe(text, said[:stopped], reading, asked.stops)
        end = fired.start
        competing = [stop for stop in asked.stops if stop in text[: said[stopped]] and stop != fired.of(text)]
        return Recital(
            text[:end],
            stopped + 1,
            "stop_sequence",
            fired.of(text),
            said[: stopped + 1],
            (*safe, end, end),
            competes=bool(competing) or token == stopped,
            at_limit=stopped + 1 == asked.max_tokens,
        )
    if token < len(pieces):
        text = pieces_text(pieces[:token])
        safe = _safe(text, said[:token], reading, asked.stops)
        ended = token + 1 == asked.max_tokens
        return Recital(text, token + 1, "stop_token", token, said[: token + 1], (*safe, len(text)), at_limit=ended)
    safe = _safe(text, said, reading, asked.stops)
    if len(pieces) == asked.max_tokens:
        return Recital(text, len(pieces), "length", None, said, (*safe, len(text)))
    ended = len(pieces) + 1 == asked.max_tokens
    return Recital(text, len(pieces) + 1, "eos", None, said, (*safe, len(text)), at_limit=ended)


def _marked(pieces: Sequence[bytes], said: Sequence[int]) -> frozenset[int]:
    """Where in the text a token is that opens reasoning, but for its last character."""
    ends = [known for piece, known in zip(pieces, said, strict=True) if piece == OPENING.encode()]
    return frozenset(at for end in ends for at in range(end - len(OPENING) + 1, end))


def pieces_text(pieces: Sequence[bytes]) -> str:
    """The text of pieces, half a character at their end as U+FFFD."""
    return b"".join(pieces).decode(errors="replace")


def _decoded(pieces: Sequence[bytes]) -> tuple[str, tuple[int, ...]]:
    """The text, and how many characters of it are known after each piece."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    said, known = [], 0
    for piece in pieces:
        known += len(decoder.decode(piece))
        said.append(known)
    return pieces_text(pieces), tuple(said)


def _safe(text: str, said: Sequence[int], reading: Reading, stops: Sequence[str]) -> list[int]:
    """How much of the text is safe after each token."""
    begun = beginnings(can_fire(stops))
    longest = max(map(len, begun), default=0)
    safe = []
    for known in said:
        begin = reading.begins[known]
        safe.append(known if begin is None else known - withheld(text[max(begin, known - longest) : known], begun))
    return safe
