"""Cuts a whole answer at its stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stopscan import StopMatch
from stopscan.finish import Finish
from stopscan_clients.apis import api_of_answer, is_error
from stopscan_clients.beside import Token
from stopscan_clients.machine import Choices, Passage, ScanOptions, clean
from stopscan_clients.paths import Path, dotted, get, items, only, put
from stopscan_clients.wire_format import WireFormat


def cut(options: ScanOptions, answer: Any, matches: dict[int, StopMatch]) -> Any:
    """Returns the answer up to the stop of each choice, or the same dict if no stop fires. Adds each match to
    ``matches``.

    Raises ``TypeError`` for an answer of an unknown API.
    """
    api = None if is_error(answer) or not len(options.stops) else api_of_answer(answer)
    if api is None:
        return answer
    if api.each is not None:
        row = api.whole or api
        out = _Answer(row, options, matches).feed(answer, answer)
        new = out[0][0] if matches else answer
        if options.hides_tokens:
            entries = dotted(row.beside.tokens.path)[:1]
            return {**new, api.each: [put(choice, None, *entries) for choice in items(new[api.each])]}
        return new
    for at, text in api.texts_in(answer, dotted(api.answer)):
        kept, match = options.truncate(clean(text))
        if match is not None:
            matches[0] = match
            new = api.beside_answer.cut(_up_to_stop(api, answer, at, text, kept), kept)
            return {**new, **api.write(Finish.of(match))}
    return answer


def _up_to_stop(api: WireFormat, answer: Any, at: Path, text: str, kept: str) -> Any:
    """Returns the answer up to the stop. The stop fired in the text at the path ``at``, and ``kept`` is the part of
    this text that is kept. Only fields that the row of the API names are returned.

    If ``kept`` is empty, the piece with the text is removed. An object that contained only this piece is removed too.
    """
    tokens, new = api.beside_piece.tokens, put(answer, kept, *at)
    if at[-1] == api.key:
        at = at[:-1]
        piece = tokens.write(get(new, *at), tokens.before(get(answer, *at), text, len(kept)))
        new = put(new, api.beside_piece.cut(piece, kept), *at)
    new = only(new, api.names_of_events, at)
    name, value = api.settled
    for depth in reversed(range(len(at))):
        around = get(new, *at[:depth])
        if type(at[depth]) is int and not kept:
            new, kept = put(new, around[:-1], *at[:depth]), "kept" if len(around) > 1 else ""
        elif name in around:
            new = put(new, value, *at[:depth], name)
    return new


class _Text(Passage):
    """A text that is complete from the start. If a loop (``repeat``) ends the text, only the first copy of the loop is
    kept."""

    def _safe(self, text: str, tokens: Sequence[Token]) -> str:
        safe = super()._safe(text, tokens) + self.scanner.flush()
        match = self.scanner.match
        if match is None or match.period is None or self._options.include_stop:
            return safe
        return safe[: match.offset + match.period - sum(map(len, self.sent))]


class _Answer(Choices):
    """Cuts a whole answer with choices: reads it as one event that ends all choices."""

    _PASSAGE = _Text

    def _ends_choice(self, unit: Any) -> bool:
        return True
