from __future__ import annotations

from typing import Any

from stopscan.clients._choices import ChoiceMachine
from stopscan.clients._logprobs import placed
from stopscan.clients._objects import get, only, replace, without
from stopscan.clients._openai_chat import GOES_ON
from stopscan.clients._part import Token
from stopscan.finish import Finish, to_openai

COLUMNS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")  # lists of one length, some of them null


class Completions(ChoiceMachine):
    """Text completions. Echoed prompts are the prompt's text, but nothing in them says so: they are scanned."""

    def sole(self, event: Any) -> tuple[int, str] | None:
        choices = self.fields(event).get("choices")
        if not choices or len(choices) > 1:
            return None
        choice = self.fields(choices[0])
        text = choice.get("text")
        return (choice.get("index") or 0, text) if text and not choice.get("finish_reason") else None

    def look(self, choice: Any) -> tuple[Any, Any]:
        return get(choice, "text") or "", self.finished(choice)

    def finished(self, choice: Any) -> bool:
        return self.options.whole or get(choice, "finish_reason") not in GOES_ON

    def tokens(self, choice: Any, text: str) -> list[Token]:
        logprobs = get(choice, "logprobs")
        tokens = get(logprobs, "tokens") or ()
        columns = [get(logprobs, name) or [None] * len(tokens) for name in COLUMNS]
        offsets = get(logprobs, "text_offset") or _lengths_before(tokens)
        return placed(offsets, zip(*columns, strict=False), text)

    def with_text(self, choice: Any, text: str, rows: list[Any]) -> Any:
        return replace(choice, text=text, **self._logprobs(choice, rows))

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        logprobs = self._logprobs(choice, rows) if rows else {"logprobs": None}
        return only(choice, index=self.index(choice), text=text, finish_reason=None, **logprobs)

    def with_finish(self, choice: Any, finish: Finish) -> Any:
        return replace(without(choice, "stop_reason"), **to_openai(finish))

    def _logprobs(self, choice: Any, rows: list[Any]) -> dict[str, Any]:
        logprobs = get(choice, "logprobs")
        columns = zip(*rows, strict=True) if rows else [[]] * len(COLUMNS)
        cut = {name: [*column] for name, column in zip(COLUMNS, columns, strict=True) if get(logprobs, name)}
        return {"logprobs": replace(logprobs, **cut)} if cut else {}


def _lengths_before(tokens: Any) -> list[int]:
    places, place = [], 0
    for token in tokens:
        places.append(place)
        place += len(token)
    return places
