from __future__ import annotations

from typing import Any

from stopscan.clients._choices import ChoiceMachine
from stopscan.clients._logprobs import spelled
from stopscan.clients._machine import Options
from stopscan.clients._objects import get, only, replace, without
from stopscan.clients._part import Token
from stopscan.finish import Finish, to_ollama

COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")


class Ollama(ChoiceMachine):
    """Ollama's chat and generate: an event is its only choice."""

    def __init__(self, event: Any, options: Options) -> None:
        super().__init__(event, options)
        self.chat = get(event, "message") is not None

    def choices(self, event: Any) -> Any:
        return (event,)

    def with_choices(self, event: Any, choices: list[Any]) -> Any:
        return choices[0]

    def index(self, choice: Any) -> int:
        return 0

    def sole(self, event: Any) -> tuple[int, str] | None:
        line = self.fields(event)
        if line.get("done"):
            return None
        if not self.chat:
            text = line.get("response")
            return (0, text) if text else None
        message = self.fields(line.get("message"))
        text = message.get("content")
        return (0, text) if text and not message.get("tool_calls") else None

    def look(self, choice: Any) -> tuple[Any, Any]:
        if not self.chat:
            return get(choice, "response") or "", self.finished(choice)
        message = get(choice, "message")
        return get(message, "content") or "", self.finished(choice) or get(message, "tool_calls")

    def finished(self, choice: Any) -> bool:
        return self.options.whole or bool(get(choice, "done"))

    def tokens(self, choice: Any, text: str) -> list[Token]:
        return spelled(get(choice, "logprobs") or (), text)

    def with_text(self, choice: Any, text: str, rows: list[Any]) -> Any:
        logprobs = {} if get(choice, "logprobs") is None else {"logprobs": rows}
        if not self.chat:
            return replace(choice, response=text, **logprobs)
        return replace(choice, message=replace(get(choice, "message"), content=text), **logprobs)

    def cut(self, choice: Any, text: str, rows: list[Any]) -> Any:
        cut = self.with_text(choice, text, rows)
        return replace(cut, message=without(get(cut, "message"), "tool_calls")) if self.chat else cut

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        piece = without(self.with_text(choice, text, rows), "done_reason", "thinking", "context", *COUNTS)
        if not self.chat:
            return piece
        message = get(choice, "message")
        return replace(piece, message=only(message, role=get(message, "role"), content=text))

    def with_finish(self, choice: Any, finish: Finish) -> Any:
        return replace(choice, **to_ollama(finish))
