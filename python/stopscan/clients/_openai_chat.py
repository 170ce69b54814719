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
        choices = self.fields(event).get("choices")
        if not choices or len(choices) > 1:
            return None
        choice = self.fields(choices[0])
        body = self.fields(choice.get(self.body))
        text = body.get("content")
        if not text or choice.get("finish_reason") or not isinstance(text, str):
            return None
        if body.get("tool_calls") or body.get("function_call"):
            return None
        return choice.get("index") or 0, text

    def look(self, choice: Any) -> tuple[Any, Any]:
        body = get(choice, self.body)
        closes = self.finished(choice) or get(body, "tool_calls") or get(body, "function_call")
        return _text(get(body, "content")), closes

    def finished(self, choice: Any) -> bool:
        return self.options.whole or get(choice, "finish_reason") not in GOES_ON

    def tokens(self, choice: Any, text: str) -> list[Token]:
        logprobs = get(choice, "logprobs")
        return spelled(get(logprobs, "content") or (), text)

    def with_text(self, choice: Any, text: str, rows: list[Any]) -> Any:
        body = get(choice, self.body)
        fields = {self.body: replace(body, content=_with(get(body, "content"), text))}
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


def _text(content: Any) -> str:
    """The text of a content, which Mistral's reasoning models and LiteLLM may write as a list of parts."""
    if isinstance(content, list):
        return "".join(get(part, "text") or "" for part in content if get(part, "type") == "text")
    return content or ""


def _with(content: Any, text: str) -> Any:
    if not isinstance(content, list):
        return text
    parts = []
    for part in content:
        if get(part, "type") == "text":  # the first takes all of the text
            part, text = replace(part, text=text), ""
        parts.append(part)
    return parts
