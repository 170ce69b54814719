"""Stops that fire in regions that are protected from the other stops, too."""

from __future__ import annotations

from collections.abc import Iterable

from stopscan import StopMatch
from stopscan.finish import EndReason, Finish
from stopscan.tokens import TokenScanner


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
        if self._won:
            return ""
        for place, scanner in enumerate(self._scanners):
            self._ahead[place] += scanner.feed(token_id)
        return self._safe()

    def feed_many(self, token_ids: Iterable[int], /) -> str:
        return "".join(map(self.feed, token_ids))

    def close(self, reason: EndReason = "eos") -> str:
        if self._won:
            return ""
        for place, scanner in enumerate(self._scanners):
            self._ahead[place] += scanner.close(reason)
        return self._safe()

    def _safe(self) -> str:
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
