"""The reference: the rules of matching in simple, slow Python. Tests compare the scanners with it.

The reference keeps the whole text as one string. After every character it asks, with `endswith`, which stops and
markers complete there, and looks for a loop by comparing the text with itself. It has no automaton: it keeps little
more than the text and the name of the current state of the graph, and it never undoes a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stopscan import Repeat
from stopscan.segments import keep, stay

Graph = Mapping[str, Mapping[str, str]]


class Match(NamedTuple):
    sequence: str
    offset: int
    end: int
    period: int | None = None


class Stream:
    """The text of a stream, its state in the graph of regions, and the matching. Subclasses make the output."""

    markers_stay: bool

    def __init__(
        self,
        graph: Graph,
        *,
        stop: Sequence[str],
        visible: Sequence[str],
        stop_in: Sequence[str] | None,
        repeat: Repeat | None,
        include_stop: bool,
        start: str | None,
    ) -> None:
        self.graph, self.repeat = graph, repeat
        self.stops = [*stop, *visible]
        self.hidden = [] if include_stop else stop
        self.stop_in = [region_of(state) for state in graph] if stop_in is None else stop_in
        self.first = next(iter(graph)) if start is None else start
        self.reset()

    def reset(self) -> None:
        self.text = ""  # everything fed and bypassed, up to the end of the stop
        self.edge = 0  # the end of the last marker, bypass or flush: no match and no loop begins before it
        self.sent = 0  # how many characters of the text were returned, or left out as a marker
        self.state = self.first
        self.part = 0  # the number of the current part: how many markers have begun a part
        self.match: Match | None = None
        self.unused = ""
        self.marker_ended = False  # whether a marker ended with the last character

    @property
    def region(self) -> str:
        return region_of(self.state)

    def live_stops(self) -> list[str]:
        """The stops that can fire in the current region."""
        enders = [*self.stops, *self.graph[self.state]]
        return [s for s in self.stops if self.region in self.stop_in and not any(other in s[:-1] for other in enders)]

    @property
    def held(self) -> str:
        if self.match:
            return ""
        words = [stop for stop in self.live_stops() if stop in self.hidden]
        words += [] if self.markers_stay else self.graph[self.state]
        prefixes = [word[:length] for word in words for length in range(len(word))]
        return max((prefix for prefix in prefixes if self.text[self.edge :].endswith(prefix)), key=len, default="")

    def complete(self, armed: bool) -> str | None:
        """If a marker completes at the last character, enters the marker's state and returns the marker. If a stop or a
        loop completes there, sets `match`."""
        seen, leads = self.text[self.edge :], self.graph[self.state]
        words = [*(self.live_stops() if armed else []), *leads]
        completed = max((word for word in words if seen.endswith(word)), key=len, default=None)
        self.marker_ended = completed in leads
        if completed is not None and self.marker_ended:
            self.follow(completed)
            self.edge = len(self.text)
            return completed
        if completed is not None:
            self.match = Match(completed, len(self.text) - len(completed), len(self.text))
        elif armed and self.repeat is not None:
            self.match = loop(seen, self.repeat, len(self.text))
        return None

    def follow(self, marker: str) -> None:
        """Goes to the state to which `marker` leads. If the state changes, a new part of the output begins. A marker
        that was given with `keep` always begins a new part, and one that was given with `stay` never does."""
        state = self.graph[self.state][marker]
        self.part += not isinstance(state, stay) and (state != self.state or isinstance(state, keep))
        self.state = state

    @property
    def withheld(self) -> int:
        """How many characters at the end of the text are not sent: they are held, or they are a hidden stop."""
        if self.match is None:
            return len(self.held)
        is_cut = self.match.period is None and self.match.sequence in self.hidden
        return len(self.match.sequence) if is_cut else 0


def region_of(state: str) -> str:
    return state.partition("/")[0]


def loop(seen: str, repeat: Repeat, end: int) -> Match | None:
    """The loop at the end of `seen`, or `None`. If there are several, the one with the shortest period."""
    for period in range(1, repeat.max_period + 1):
        length = max(repeat.count * period, repeat.min_length)
        sequence = seen[-length:]
        if len(sequence) == length and sequence[period:] == sequence[:-period]:
            return Match(sequence, end - length, end, period)
    return None


class Reference(Stream):
    """The reference for scanners, with the methods and attributes of `stopscan.StopScanner`."""

    markers_stay = True

    def __init__(
        self,
        stop: Sequence[str] = (),
        *,
        visible: Sequence[str] = (),
        protect: Sequence[tuple[str, str]] = (),
        regions: Graph | None = None,
        stop_in: Sequence[str] | None = None,
        repeat: Repeat | None = None,
        include_stop: bool = False,
        start_protected: bool = False,
        region: str | None = None,
    ) -> None:
        if regions is None:
            regions = {"answer": {opening: opening for opening, _ in protect}}
            regions |= {opening: {closing: "answer"} for opening, closing in protect}
            stop_in = ["answer"] if stop_in is None else stop_in
        start = protect[0][0] if start_protected else region
        super().__init__(
            regions,
            stop=stop,
            visible=visible,
            stop_in=stop_in,
            repeat=repeat,
            include_stop=include_stop,
            start=start,
        )

    def feed(self, delta: str, *, armed: bool = True, one_step: bool = False) -> str:
        """Reads a delta, and returns the text that is safe. With ``one_step``, the delta is one token, and its text is
        a whole marker. Stops and markers can then complete only at its last character."""
        if self.match:
            return ""
        for index, character in enumerate(delta):
            self.text += character
            if one_step and index < len(delta) - 1:
                continue
            self.complete(armed)
            if self.match:
                self.unused = delta[index + 1 :]
                break
        return self._send()

    def _send(self) -> str:
        until = len(self.text) - self.withheld
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


class SegmentReference(Stream):
    """The reference for segmenters, with the methods and attributes of `stopscan.segments.Segmenter`."""

    markers_stay = False

    def __init__(
        self,
        markers: Graph,
        *,
        stop: Sequence[str] = (),
        visible: Sequence[str] = (),
        stop_in: Sequence[str] | None = None,
        repeat: Repeat | None = None,
        region: str | None = None,
        include_stop: bool = False,
    ) -> None:
        self.markers = markers
        super().__init__(
            markers,
            stop=stop,
            visible=visible,
            stop_in=stop_in,
            repeat=repeat,
            include_stop=include_stop,
            start=region,
        )

    def feed(self, delta: str, *, armed: bool = True, one_step: bool = False) -> list[tuple[str, str, int]]:
        segments: list[tuple[str, str, int]] = []
        if self.match:
            return segments
        for index, character in enumerate(delta):
            self.text += character
            if one_step and index < len(delta) - 1:
                continue
            region, part, leads = self.region, self.part, self.graph[self.state]
            marker = self.complete(armed)
            if marker is not None:
                self._send(region, part, len(marker), segments)
                self.sent += 0 if isinstance(leads[marker], keep | stay) else len(marker)
                self._send(self.region, self.part, 0, segments)
            if self.match:
                self.unused = delta[index + 1 :]
                break
        self._send(self.region, self.part, self.withheld, segments)
        return segments

    def flush(self) -> list[tuple[str, str, int]]:
        segments: list[tuple[str, str, int]] = []
        if not self.match:
            self.edge = len(self.text)
            self._send(self.region, self.part, 0, segments)
        return segments

    def _send(self, region: str, part: int, withheld: int, segments: list[tuple[str, str, int]]) -> None:
        until = len(self.text) - withheld
        text, self.sent = self.text[self.sent : until], until
        if segments and segments[-1][2] == part:
            text = segments.pop()[1] + text
        if text:
            segments.append((region, text, part))
