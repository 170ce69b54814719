"""A whole answer up to its stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopscan import StopMatch
from stopscan.finish import Finish
from stopscan_clients.api import Api
from stopscan_clients.beside import Token, without_copies
from stopscan_clients.machine import Choices, Options, Part, Unit, clean
from stopscan_clients.paths import Path, dotted, get, items, number

EMPTY: Any = object()  # what a piece without text, or a list without pieces, becomes at a stop


def cut(api: Api, options: Options, answer: Any) -> tuple[Any, dict[int, StopMatch]]:
    """Returns the answer up to the stop of each choice, the very dict if there is none; and the stops."""
    if api.each is not None:
        machine = _Answer(api.of_answers, options)
        return machine.cut(answer), machine.matches
    pieces = _Pieces(api, options)
    left, match = pieces.cut(answer, dotted(api.answer))
    if match is None:
        return answer, {}
    left = api.beside_answer.cut(left, pieces.kept)
    return {**left, **api.write(Finish.of(match))}, {0: match}


class _Text(Part):
    """A text that is there at once. A loop ends behind its first copy."""

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
    """An answer with choices is an event that ends all of them."""

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


class _Pieces:
    """An answer whose texts are pieces of lists."""

    def __init__(self, api: Api, options: Options) -> None:
        self.api, self.options = api, options
        self.kept = ""

    def cut(self, tree: Any, path: Path, listed: bool = False) -> tuple[Any, StopMatch | None]:
        """Returns what is left of the tree, and the stop in it: no list has what stands behind the stop, and none has a
        piece that became empty."""
        if not path:
            return self._piece(tree)
        key, *rest = path
        if key == "*":
            for i, child in enumerate(items(tree)):
                left, match = self.cut(child, tuple(rest), True)
                if match is not None:
                    return [*tree[:i], *([] if left is EMPTY else [left])] or EMPTY, match
            return tree, None
        child, match = self.cut(get(tree, key), tuple(rest), listed)
        if match is None:
            return tree, None
        if child is EMPTY and listed:
            return EMPTY, match
        beside = without_copies(tree, self._behind, (key,), self.api.silent)
        settled = {name: value for name, value in self.api.settled.items() if name in tree}
        return {**beside, **settled, key: [] if child is EMPTY else child}, match

    def _piece(self, piece: Any) -> tuple[Any, StopMatch | None]:
        api = self.api
        text = get(piece, "text")
        if not isinstance(text, str) or not api.is_text(piece):
            return piece, None
        kept, match = self.options.truncate(clean(text))
        if match is None:
            return piece, None
        self.kept, self._behind = kept, text[max(match.end, len(kept)) :]
        if not kept:
            return EMPTY, match
        left = api.beside_piece.cut_tokens({**piece, "text": kept}, text, kept)
        left = api.beside_piece.cut(left, kept)
        return without_copies(left, self._behind, ("text",)), match
