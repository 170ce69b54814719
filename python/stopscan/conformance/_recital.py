"""What a right server makes of a scenario."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat

from stopscan import StopScanner, StopSet
from stopscan.conformance._scenarios import Scenario
from stopscan.testing.reciter import THINKING

EOS = None


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
    """What `scenario` has to come to, token by token, by the rules of the library."""
    scanner = StopScanner(StopSet(scenario.stops, protect=[THINKING]))
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = ""
    said: list[int] = []
    safe: list[int] = []
    reason: str = "eos"
    fires: str | int | None = None
    for tokens, (index, piece) in enumerate(_tokens(scenario), 1):
        if piece is EOS:
            break
        before, state = scanner.copy(), decoder.getstate()
        decoded = decoder.decode(piece)
        said.append((said[-1] if said else 0) + len(decoded))
        out = scanner.feed(decoded)
        if scanner.match is None and index in scenario.stop_pieces:
            scanner, reason, fires = before, "stop_token", index
            decoder.setstate(state)
            break
        text += out
        safe.append(len(text))
        if scanner.match is not None:
            reason, fires = "stop_sequence", scanner.match.sequence
            break
        if tokens == scenario.max_tokens:
            reason = "length"
            break
    if scanner.match is None:
        text += scanner.feed(decoder.decode(b"", final=True)) + scanner.flush()
    return Recital(text, tokens, reason, fires, tuple(said), (*safe, len(text)))


def _tokens(scenario: Scenario) -> Iterator[tuple[int, bytes | None]]:
    return chain(enumerate(scenario.pieces), repeat((-1, EOS)))
