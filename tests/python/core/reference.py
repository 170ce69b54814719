"""The rules of matching, spelled out as directly as Python can say them, and as slowly as need be.

The whole text is kept as one string. After every character the reference asks, with `endswith`, which stops and markers
complete there. There is no automaton, no state but the text itself, and nothing is ever undone.
"""

from __future__ import annotations

from collections.abc import Sequence
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
