"""Cuts a whole answer at its stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopscan import StopMatch
from stopscan.finish import Finish
from stopscan_clients.api import Api
from stopscan_clients.beside import Token, without_copies
from stopscan_clients.machine import Choices, Options, Part, Unit, clean
from stopscan_clients.paths import Path, dotted, get, number

EMPTY: Any = object()  # marks a piece without text or a list without pieces, which are removed


def cut(api: Api, options: Options, answer: Any) -> tuple[Any, dict[int, StopMatch]]:
    """Returns the answer up to the stop of each choice, or the same dict if there is none, and the stops by choice."""
    if api.each is not None:
        machine = _Answer(api.of_answers, options)
        return machine.cut(answer), machine.matches
    for at, text in api.texts_in(answer, dotted(api.answer)):
        kept, match = options.truncate(clean(text))
        if match is not None:
            left = _left(api, answer, at, text, kept, text[max(match.end, len(kept)) :])
            return {**api.beside_answer.cut(left, kept), **api.write(Finish.of(match))}, {0: match}
    return answer, {}


def _left(api: Api, answer: Any, at: Path, text: str, kept: str, behind: str) -> Any:
    """Returns the answer up to the stop in the piece at ``at``. Removes the pieces after it, and the piece itself if
    its text is empty."""
    left = EMPTY
    if kept:
        piece = api.beside_piece.cut_tokens({**get(answer, *at), "text": kept}, text, kept)
        left = without_copies(api.beside_piece.cut(piece, kept), behind, ("text",))
    for depth in reversed(range(len(at))):
        key, around = at[depth], get(answer, *at[:depth])
        if type(key) is int:
            left = [*around[:key], *([] if left is EMPTY else [left])] or EMPTY
        elif left is not EMPTY or not any(type(above) is int for above in at[:depth]):
            beside = without_copies(around, behind, (key,), api.silent)
            settled = {name: value for name, value in api.settled.items() if name in around}
            left = {**beside, **settled, key: [] if left is EMPTY else left}
    return left


class _Text(Part):
    """A text that is complete from the start. If it repeats itself (``repeat``), only the first copy is kept."""

    def __init__(self, place: Path, options: Options) -> None:
        super().__init__(place, options)
        self._options, self._before = options, 0

    def feed(self, text: str, tokens: Sequence[Token] = (), fed: str | None = None) -> tuple[str, list[Any]]:
        echoed = text[: self.echoed]
        scanned, self.echoed = text[len(echoed) :], self.echoed - len(echoed)
        kept, match = self._options.truncate(scanned)
        if match is not None:
            self.unused = scanned[max(match.end, len(kept)) :]
            offset = self._before + len(echoed) + match.offset
            self.match = StopMatch(match.sequence, offset, match.pattern, match.period)
        self._before += len(text)
        kept = echoed + kept
        self.said.append(kept)
        return kept, [row for begin, row in tokens if begin < len(kept)]


class _Answer(Choices):
    """Cuts an answer with choices as one event that ends all of them."""

    _PART = _Text

    def cut(self, answer: Any) -> Any:
        units = [Unit(json, self.api.runs(json) if isinstance(json, dict) else []) for json in self.api.units(answer)]
        for unit in units:
            if unit.runs:
                part = self.part((number(unit.json.get("index")),))
                unit.finished = True
                self._scan(unit, part, answer, [])
                if part.match is not None:
                    self.matches[part.place[0]] = part.match
        return self._given(answer, units, [])[0][0] if self.matches else answer
