"""The stops of one request, as they go from the scheduler to the detokenizer, and its scanners in both."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from stopscan import StopMatch, StopSet
from stopscan.finish import EndReason, Finish
from stopscan.tokens import TokenScanner, Vocabulary


class Spec(NamedTuple):
    """Its sets of stops, pickled: all of them, and those that fire in protected regions too. Where the answer begins,
    and the options of its scanners."""

    pickled: bytes
    region: str | None
    options: dict[str, Any]

    @classmethod
    def of(cls, stops: StopSet, everywhere: StopSet, region: str | None, **options: Any) -> Spec:
        """Returns the spec of these sets. Where nothing is protected, all stops fire everywhere."""
        protected = stops.regions is not None or stops.protect
        return cls(pickle.dumps((stops, everywhere if protected else StopSet())), region, options)

    @property
    def beyond(self) -> bool:
        """Whether sglang itself cannot keep these stops."""
        stops, _ = _sets(self.pickled)
        return bool(stops.patterns or stops.repeat or stops.regions or stops.protect)

    def scanner(self, vocabulary: Vocabulary) -> TokenScanner | Everywhere:
        """Returns a new scanner. Raises ``ValueError`` for a marker that is a special token in part."""
        stops, everywhere = _sets(self.pickled)
        scanner = TokenScanner(vocabulary, stops, region=self.region, unknown_ids="count", **self.options)
        if not len(everywhere):
            return scanner
        return Everywhere(scanner, TokenScanner(vocabulary, everywhere, unknown_ids="count", **self.options))

    def end_of(self, text: str) -> int:
        """Returns where a whole text ends for its reader: at the stop that completes first."""
        stops, everywhere = _sets(self.pickled)
        found = [stops.find(text, region=self.region), everywhere.find(text)]
        match = min(filter(None, found), key=lambda match: match.end, default=None)
        if match is None:
            return len(text)
        return match.end if self.options["include_stop"] or match.period else match.offset


@lru_cache(maxsize=128)
def _sets(pickled: bytes) -> tuple[StopSet, StopSet]:
    sets: tuple[StopSet, StopSet] = pickle.loads(pickled)
    return sets


class Everywhere:
    """A scanner of all stops and one of those that fire everywhere, over the same token ids.

    What is safe is what both call safe; of two that end the stream with one token, the stop that ends first counts.
    """

    def __init__(self, scanner: TokenScanner, everywhere: TokenScanner) -> None:
        self._scanners = (scanner, everywhere)
        # What each of them gave beyond the other.
        self._ahead = ["", ""]
        self._won: TokenScanner | None = None

    @property
    def finish(self) -> Finish | None:
        return self._won.finish if self._won else None

    @property
    def match(self) -> StopMatch | None:
        return self._won.match if self._won else None

    def feed(self, token_id: int, /) -> str:
        return self._safe([scanner.feed(token_id) for scanner in self._scanners])

    def feed_many(self, token_ids: Iterable[int], /) -> str:
        return "".join(map(self.feed, token_ids))

    def flush(self, reason: EndReason = "eos") -> str:
        return self._safe([scanner.flush(reason) for scanner in self._scanners])

    def _safe(self, new: list[str]) -> str:
        if self._won:
            return ""
        self._ahead = [ahead + text for ahead, text in zip(self._ahead, new, strict=True)]
        ended = [place for place, scanner in enumerate(self._scanners) if scanner.finish]
        if ended:
            place = min(ended, key=self._end)
            self._won = self._scanners[place]
            return self._ahead[place]
        size = min(map(len, self._ahead))
        safe = self._ahead[0][:size]
        self._ahead = [ahead[size:] for ahead in self._ahead]
        return safe

    def _end(self, place: int) -> tuple[bool, int]:
        match = self._scanners[place].match
        return (match is None, match.end if match else 0)
