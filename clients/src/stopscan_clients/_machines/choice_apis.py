"""The APIs whose events bring text to choices. Gemini, whose text has parts, has a file of its own."""

from __future__ import annotations

from typing import Any, ClassVar

from stopscan_clients._json import get, items, put, text_at, without
from stopscan_clients._machines.choices import ChoiceMachine, refilled
from stopscan_clients._machines.logprobs import placed, spelled
from stopscan_clients._machines.machine import Fields, Part, Sole, Token
from stopscan.finish import from_ollama, from_openai, to_ollama, to_openai


class Chat(ChoiceMachine):
    """Chat completions: OpenAI's, and those of the many servers that speak them."""

    API = "chat"
    TEXT, MESSAGE = ("delta", "content"), ("message", "content")
    CALLS = ("tool_calls", "function_call")
    read_finish, write_finish = from_openai, to_openai

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            (choice,) = top(event)["choices"]
            choice = below(choice)
            delta = below(choice["delta"])
            text = delta["content"]
            more = choice.get("finish_reason") or delta.get("tool_calls") or delta.get("function_call")
            return (choice.get("index") or 0, text) if text and not more else None

        return sole

    def look(self, choice: Any) -> tuple[str, Any]:
        """The content may be a list of parts: so it is in Mistral's reasoning models and in LiteLLM."""
        text, closes = super().look(choice)
        parts = items(get(choice, *self._path))
        return "".join([text_at(part, "text") for part in parts if _is_text(part)]) or text, closes

    def tokens(self, choice: Any, text: str) -> list[Token]:
        return spelled(get(choice, "logprobs", "content"), text)

    def with_rows(self, choice: Any, rows: list[Any]) -> Any:
        if get(choice, "logprobs", "content") is None:
            return choice
        return put(choice, rows, "logprobs", "content") if rows else {**choice, "logprobs": None}

    def with_text(self, choice: Any, text: str, rows: list[Any]) -> Any:
        content = get(choice, *self._path)
        if self._path == self.TEXT:  # Perplexity's chunks have all the text so far beside the delta
            choice = without(choice, "message")
        return super().with_text(choice, refilled(content, _is_text, text) if isinstance(content, list) else text, rows)


def _is_text(part: Any) -> bool:
    return bool(get(part, "type") == "text")


COLUMNS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")  # lists of one length, some of them null


class Completions(ChoiceMachine):
    """Text completions. An echoed prompt is the prompt's text: the request tells how long it is."""

    API = "completions"
    TEXT = MESSAGE = ("text",)
    read_finish, write_finish = from_openai, to_openai

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            (choice,) = top(event)["choices"]
            choice = below(choice)
            text = choice["text"]
            return (choice.get("index") or 0, text) if text and not choice.get("finish_reason") else None

        return sole

    def part(self, place: Any) -> Part:
        echoed = self.options.echoed(place)  # first: where it is an error, there is no part whose text is scanned
        part = super().part(place)
        part.pass_over(echoed)
        return part

    def tokens(self, choice: Any, text: str) -> list[Token]:
        logprobs = get(choice, "logprobs")
        tokens = items(get(logprobs, "tokens"))
        columns = [items(get(logprobs, name)) or [None] * len(tokens) for name in COLUMNS]
        offsets = items(get(logprobs, "text_offset")) or _lengths_before(tokens)
        return placed(offsets, zip(*columns, strict=False), text)

    def with_rows(self, choice: Any, rows: list[Any]) -> Any:
        logprobs = get(choice, "logprobs")
        columns = zip(*rows, strict=True) if rows else [[]] * len(COLUMNS)
        cut = {name: [*column] for name, column in zip(COLUMNS, columns, strict=True) if get(logprobs, name)}
        return {**choice, "logprobs": {**logprobs, **cut}} if cut else choice

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        piece = super().piece(choice, text, rows)
        return {**piece, "logprobs": None} if "logprobs" in piece and not rows else piece


def _lengths_before(tokens: list[Any]) -> list[int]:
    places, place = [], 0
    for token in tokens:
        places.append(place)
        place += len(token) if isinstance(token, str) else 0
    return places


COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")


class Ollama(ChoiceMachine):
    """Ollama's chat: an event is its only choice."""

    API = "ollama"
    CHOICES = ""
    TEXT: ClassVar[tuple[str, ...]] = ("message", "content")
    MESSAGE: ClassVar[tuple[str, ...]] = TEXT
    CALLS: ClassVar[tuple[str, ...]] = ("tool_calls",)
    read_finish, write_finish = from_ollama, to_ollama

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            told = top(event)
            message = below(told["message"])
            text = message["content"]
            return (0, text) if text and not told["done"] and not message.get("tool_calls") else None

        return sole

    def cut(self, choice: Any, text: str, rows: list[Any]) -> Any:
        return without(super().cut(choice, text, rows), "context")  # the ids of all that was generated

    def tokens(self, choice: Any, text: str) -> list[Token]:
        return spelled(get(choice, "logprobs"), text)

    def with_rows(self, choice: Any, rows: list[Any]) -> Any:
        return choice if get(choice, "logprobs") is None else {**choice, "logprobs": rows}

    def piece(self, choice: Any, text: str, rows: list[Any]) -> Any:
        bare = without(choice, "done_reason", "thinking", "context", *COUNTS)
        bare = put(bare, {"role": get(choice, "message", "role")}, "message") if self._above else bare
        return self.with_rows(put(bare, text, *self._path), rows)


class Generate(Ollama):
    """Ollama's generate."""

    TEXT = MESSAGE = ("response",)
    CALLS = ()

    @staticmethod
    def reader(top: Fields, below: Fields) -> Sole:
        def sole(event: Any) -> tuple[Any, str] | None:
            told = top(event)
            text = told["response"]
            return (0, text) if text and not told["done"] else None

        return sole
