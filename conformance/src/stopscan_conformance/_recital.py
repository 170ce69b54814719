"""What a right server makes of a scenario."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from stopscan_conformance import _oracle as oracle
from stopscan_conformance._scenarios import Scenario

NO_LIMIT = 1_000_000


@dataclass(frozen=True)
class Recital:
    """`text` comes of `tokens` tokens, the one that ends it included.

    `fires` is the stop that ends it, or of a stop token the index of its piece. After token i, `said[i]` characters
    are known and `safe[i]` of them cannot become a stop any more: a chunk of a stream ends at one of these.
    """

    text: str
    tokens: int
    reason: str
    fires: str | int | None
    said: tuple[int, ...]
    safe: tuple[int, ...]


def recite(scenario: Scenario, /) -> Recital:
    """What `scenario` has to come to, token by token."""
    pieces = scenario.pieces[: scenario.max_tokens or NO_LIMIT]
    text, said = _decoded(pieces)
    reading = oracle.read(text, scenario.stops)
    fired = reading.fired
    # The token that completes the stop, and the first one that is a stop itself.
    stopped = bisect_left(said, fired.end) if fired else NO_LIMIT
    token = min((index for index in scenario.stop_pieces if index < len(pieces)), default=NO_LIMIT)
    if fired and stopped <= token:
        safe = _safe(text, said[:stopped], reading, scenario.stops)
        end = fired.start
        return Recital(text[:end], stopped + 1, "stop_sequence", fired.of(text), said[: stopped + 1], (*safe, end, end))
    if token < len(pieces):
        text = pieces_text(pieces[:token])
        safe = _safe(text, said[:token], reading, scenario.stops)
        return Recital(text, token + 1, "stop_token", token, said[: token + 1], (*safe, len(text)))
    safe = _safe(text, said, reading, scenario.stops)
    if len(pieces) == scenario.max_tokens:
        return Recital(text, len(pieces), "length", None, said, (*safe, len(text)))
    return Recital(text, len(pieces) + 1, "eos", None, said, (*safe, len(text)))


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


def _safe(text: str, said: Sequence[int], reading: oracle.Reading, stops: Sequence[str]) -> list[int]:
    """How much of the text is safe after each token."""
    begun = oracle.beginnings(oracle.can_fire(stops))
    longest = max(map(len, begun), default=0)
    safe = []
    for known in said:
        begin = reading.begins[known]
        safe.append(
            known if begin is None else known - oracle.withheld(text[max(begin, known - longest) : known], begun)
        )
    return safe
