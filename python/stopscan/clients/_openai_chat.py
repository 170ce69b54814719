from __future__ import annotations

from typing import Any

from stopscan.clients._choices import ChoiceMachine
from stopscan.clients._logprobs import spelled
from stopscan.clients._machine import Options
from stopscan.clients._objects import get, only, replace, without
from stopscan.clients._part import Token
from stopscan.finish import Finish, to_openai

# finish_reason, or no tool calls: sglang#3912, KoboldCpp and old sglang have more words for null.
GOES_ON = (None, "", "null", "None")


class Chat(ChoiceMachine):
    """Chat completions: OpenAI's, LiteLLM's, and those of the many servers that speak them."""

    def __init__(self, event: Any, options: Options) -> None:
        super().__init__(event, options)
        self.body = "message" if options.whole else "delta"

    def sole(self, event: Any) -> tuple[int, str] | None:
        get = self.get
        choices = get(event, "choices", None)
        if not choices or len(choices) > 1:
            return None
        choice = choices[0]
        body = get(choice, self.body, None)
        text = get(body, "content", None) if body else None
        if not text or get(choice, "finish_reason", None) or get(body, "tool_calls", None) or type(text) is not str:
            return None
        return get(choice, "index", None) or 0, text

    def look(self, choice: Any) -> tuple[Any, Any]:
        get = self.get
        body = get(choice, self.body, None) or {}
        text = get(body, "content", None)
        closes = (
            get(choice, "finish_reason", None) not in GOES_ON
            or get(body, "tool_calls", None)
            or get(body, "function_call", None)
        )
        return text if isinstance(text, str) else "", closes

    def finished(self, choice: Any) -> bool:
        return self.options.whole or self.get(choice, "finish_reason", None) not in GOES_ON

    def tokens(self, choice: Any, text: str) -> list[Token]:
        logprobs = get(choice, "logprobs")
        return spelled(get(logprobs, "content") or (), text)

    def with_text(self, choice: Any, text: str, rows: list[Any]) -> Any:
        fields = {self.body: replace(get(choice, self.body), content=text)}
        logprobs = get(choice, "logprobs")
        if get(logprobs, "content") is not None:
            fields["logprobs"] = replace(logprobs, content=rows)
        return replace(choice, **fields)

    def cut(self, choice: Any, text: str, rows: list[Any]) -> Any:
        cut = self.with_text(choice, text, rows)
        body = without(get(cut, self.body), "tool_calls", "function_call", "parsed")
        return replace(cut, **{self.body: body})

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        fields = {"content": text} if text else {}
        logprobs = get(choice, "logprobs")
        logprobs = only(logprobs, content=rows) if rows else None
        delta = only(get(choice, self.body), **fields)
        return only(choice, index=self.index(choice), delta=delta, logprobs=logprobs, finish_reason=None)

    def with_finish(self, choice: Any, finish: Finish) -> Any:
        # vLLM's own word for what ended the choice is not what ended it here.
        return replace(without(choice, "stop_reason"), **to_openai(finish))
