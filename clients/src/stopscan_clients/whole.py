"""Cuts a whole answer at its stop."""

from __future__ import annotations

from typing import Any

from stopscan import StopMatch
from stopscan.finish import Finish
from stopscan_clients.api import Api
from stopscan_clients.beside import without_copies
from stopscan_clients.machine import Choices, Options, Part, clean
from stopscan_clients.paths import Path, dotted, get
from stopscan_clients.rows import api_of_answer

EMPTY: Any = object()  # marks a piece without text or a list without pieces, which are removed


def cut(options: Options, answer: Any, matches: dict[int, StopMatch]) -> Any:
    """Returns the answer up to the stop of each choice, or the same dict if no stop fires. Adds each match to
    ``matches``.

    Raises ``TypeError`` for an answer of an unknown API.
    """
    failed = answer.get("error") or answer.get("type") == "error"
    api = None if failed or not len(options.stops) else api_of_answer(answer)
    if api is None:
        return answer
    if api.each is not None:
        out = _Answer(api.of_answers, options, matches).feed(answer, answer)
        return out[0][0] if matches else answer
    for at, text in api.texts_in(answer, dotted(api.answer)):
        kept, match = options.truncate(clean(text))
        if match is not None:
            left = _left(api, answer, at, text, kept, text[max(match.end, len(kept)) :])
            matches[0] = match
            return {**api.beside_answer.cut(left, kept), **api.write(Finish.of(match))}
    return answer


def _left(api: Api, answer: Any, at: Path, text: str, kept: str, behind: str) -> Any:
    """Returns the answer up to the stop, which fired in the piece at ``at``. Removes the later pieces, and also the
    piece at ``at`` if ``kept``, its text up to the stop, is empty."""
    left = EMPTY
    if kept:
        tokens, piece = api.beside_piece.tokens, get(answer, *at)
        piece = tokens.write({**piece, "text": kept}, tokens.before(piece, text, len(kept)))
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

    def _safe(self, text: str) -> str:
        safe = super()._safe(text) + self.scanner.flush()
        match = self.scanner.match
        if match is None or match.period is None or self._options.include_stop:
            return safe
        return safe[: match.offset + match.period - sum(map(len, self.said))]


class _Answer(Choices):
    """Cuts a whole answer with choices: reads it as one event that ends all choices."""

    _PART = _Text

    def _ends(self, unit: Any) -> bool:
        return True
