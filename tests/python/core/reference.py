"""The rules of matching, spelled out as directly as Python can say them, and as slowly as need be.

The whole text is kept as one string. After every character the reference asks, with `endswith`, which stops and markers
complete there. There is no automaton, no state but the text itself, and nothing is ever undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Match(NamedTuple):
    sequence: str
    offset: int
    end: int


class Reference:
    """A scanner by the book: the same methods and attributes as `stopscan.StopScanner`."""

    def __init__(
        self,
        stop: Sequence[str] = (),
        *,
        visible: Sequence[str] = (),
        protect: Sequence[tuple[str, str]] = (),
        include_stop: bool = False,
        start_protected: bool = False,
    ) -> None:
        self.closing = dict(protect)
        everything = [*stop, *visible]
        live = [s for s in everything if not any(other in s[:-1] for other in [*everything, *self.closing])]
        self.hidden = [s for s in live if s in stop and not include_stop]
        self.visible = [s for s in live if s not in self.hidden]
        self.first_region = next(iter(self.closing.values())) if start_protected else None
        self.reset()

    def reset(self) -> None:
        self.text = ""  # everything fed and bypassed, through the stop
        self.edge = 0  # where partial matches may begin: the last region's edge, bypass or flush
        self.sent = 0  # how much of the text was returned
        self.region = self.first_region  # the closing marker of the open region
        self.match: Match | None = None
        self.unused = ""

    @property
    def held(self) -> str:
        if self.match or self.region is not None:
            return ""
        seen = self.text[self.edge :]
        prefixes = [stop[:length] for stop in self.hidden for length in range(len(stop))]
        return max((prefix for prefix in prefixes if seen.endswith(prefix)), key=len, default="")

    def feed(self, delta: str, *, armed: bool = True) -> str:
        if self.match:
            return ""
        for index, character in enumerate(delta):
            self.text += character
            self._complete(armed)
            if self.match:
                self.unused = delta[index + 1 :]
                break
        return self._send()

    def _complete(self, armed: bool) -> None:
        seen = self.text[self.edge :]
        if self.region is not None:
            if seen.endswith(self.region):
                self.region, self.edge = None, len(self.text)
            return
        stops = [*self.hidden, *self.visible] if armed else []
        completed = max((s for s in [*stops, *self.closing] if seen.endswith(s)), key=len, default=None)
        if completed in stops:
            self.match = Match(completed, len(self.text) - len(completed), len(self.text))
        elif completed is not None:
            self.region, self.edge = self.closing[completed], len(self.text)

    def _send(self) -> str:
        if self.match and self.match.sequence in self.hidden:
            until = self.match.offset
        else:
            until = len(self.text) - len(self.held)
        out, self.sent = self.text[self.sent : until], until
        return out

    def bypass(self, text: str) -> str:
        if self.match:
            return ""
        self.text += text
        return self.flush()

    def flush(self) -> str:
        if self.match:
            return ""
        self.edge = len(self.text)
        return self._send()


class SegmentReference:
    """A segmenter by the book: the same methods and attributes as `stopscan.segments.Segmenter`."""

    def __init__(
        self,
        markers: Mapping[str, Mapping[str, str]],
        *,
        stop: Sequence[str] = (),
        visible: Sequence[str] = (),
        stop_in: Sequence[str] | None = None,
        region: str | None = None,
        include_stop: bool = False,
    ) -> None:
        self.markers = markers
        self.stops = [*stop, *visible]
        self.hidden = [] if include_stop else stop
        self.stop_in = [*markers] if stop_in is None else stop_in
        self.first_region = next(iter(markers)) if region is None else region
        self.reset()

    def reset(self) -> None:
        self.text = ""  # everything fed, through the stop
        self.edge = 0  # where partial matches may begin: the last marker or flush
        self.sent = 0  # how much of the text was returned or taken out
        self.region = self.first_region
        self.match: Match | None = None
        self.unused = ""

    def live_stops(self) -> list[str]:
        """The stops that can fire in the open region."""
        enders = [*self.stops, *self.markers[self.region]]
        return [s for s in self.stops if self.region in self.stop_in and not any(other in s[:-1] for other in enders)]

    @property
    def held(self) -> str:
        if self.match:
            return ""
        words = [stop for stop in self.live_stops() if stop in self.hidden] + [*self.markers[self.region]]
        prefixes = [word[:length] for word in words for length in range(len(word))]
        return max((prefix for prefix in prefixes if self.text[self.edge :].endswith(prefix)), key=len, default="")

    def feed(self, delta: str, *, armed: bool = True) -> list[tuple[str, str]]:
        segments: list[tuple[str, str]] = []
        if self.match:
            return segments
        for index, character in enumerate(delta):
            self.text += character
            self._complete(armed, segments)
            if self.match:
                self.unused = delta[index + 1 :]
                return segments
        self._send(len(self.held), segments)
        return segments

    def flush(self) -> list[tuple[str, str]]:
        segments: list[tuple[str, str]] = []
        if not self.match:
            self.edge = len(self.text)
            self._send(0, segments)
        return segments

    def _complete(self, armed: bool, segments: list[tuple[str, str]]) -> None:
        seen = self.text[self.edge :]
        leads = self.markers[self.region]
        completed = max(
            (w for w in [*(self.live_stops() if armed else []), *leads] if seen.endswith(w)), key=len, default=""
        )
        if completed in leads:
            self._send(len(completed), segments)
            self.region, self.edge, self.sent = leads[completed], len(self.text), len(self.text)
        elif completed:
            self.match = Match(completed, len(self.text) - len(completed), len(self.text))
            self._send(len(completed) if completed in self.hidden else 0, segments)

    def _send(self, withheld: int, segments: list[tuple[str, str]]) -> None:
        until = len(self.text) - withheld
        text, self.sent = self.text[self.sent : until], until
        if segments and segments[-1][0] == self.region:
            text = segments.pop()[1] + text
        if text:
            segments.append((self.region, text))
