"""What one request to the server asks of its stops, and what came of them. Its handlers, which serve many requests at
once, find it by the task that they run in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from fastapi import HTTPException
from transformers.cli.serving import utils

from stopscan import StopSet
from stopscan.finish import Finish, to_openai, to_responses
from stopscan.regions import graph_of, known

OPTIONS = ("stop_token_ids", "min_tokens", "include_stop", "protect", "start_protected")

# How many tokens an answer may have, by the names of the routes.
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

_parse_assistant_message = utils.parse_assistant_message


@dataclass
class Asked:
    stop: StopSet
    options: dict[str, Any] = field(default_factory=dict)
    protect: Any = ()  # for a request that says nothing about it
    model: str | None = None
    include_usage: bool = False
    # Put in by the manager that generates: the text, for the parsers of whole answers, and why it ended.
    text: str = ""
    finish: Finish | None = None

    @classmethod
    def take(cls, body: dict[str, Any], protect: Any) -> Asked:
        """What ``body`` says about stops, which transformers is not to see any more."""
        taken = {name: body.pop(name, None) for name in ("stop", "patterns", *OPTIONS)}
        options = {name: taken[name] for name in OPTIONS if taken[name] is not None}
        for name, kind in (("min_tokens", int), ("include_stop", bool), ("start_protected", bool)):
            if type(options.get(name, kind())) is not kind:
                raise ValueError(f"{name} must be of the type {kind.__name__}, not {options[name]!r}")
        for name in ("stop", "patterns"):
            _check_strings(name, taken[name])
        for name in LIMITS:
            limit = body.get(name)
            if limit is not None and (type(limit) is not int or not 0 < limit < 2**31):
                raise ValueError(f"{name} must be a number of tokens, 1 or more, not {limit!r}")
        streaming = body.get("stream_options")
        include_usage = isinstance(streaming, dict) and bool(streaming.get("include_usage"))
        stops = StopSet(taken["stop"], patterns=taken["patterns"])
        return cls(stops, options, protect, body.get("model"), include_usage)

    def options_for(self, tokenizer: Any) -> dict[str, Any]:
        """The options of the scanner; of the server's default a model need not have every region."""
        if "protect" in self.options:
            return self.options
        return {**self.options, "protect": known(graph_of(tokenizer), self.protect)}

    def name(self, answer: dict[str, Any]) -> None:
        """Gives an answer the name that the model was asked by; transformers appends a revision."""
        if self.model is not None and "model" in answer:
            answer["model"] = self.model

    def end(self, answer: dict[str, Any]) -> None:
        """Writes the true end into a choice, or into a whole answer of Responses."""
        if self.finish is None:
            return
        if "object" in answer:
            answer.update({name: value for name, value in to_responses(self.finish).items() if value is not None})
            if self.finish.matched_stop is not None:
                answer["matched_stop"] = self.finish.matched_stop
        elif answer.get("finish_reason") == "tool_calls":
            answer.update(to_openai(self.finish), finish_reason="tool_calls")
        elif answer.get("finish_reason") is not None:
            answer.update(to_openai(self.finish))


def _check_strings(name: str, value: Any) -> None:
    # A mapping has strings to iterate over, too.
    if value is not None and not isinstance(value, str | list):
        raise ValueError(f"{name} must be a string or a list of strings, not {value!r}")


current: ContextVar[Asked] = ContextVar("current")


@contextmanager
def refusing() -> Iterator[None]:
    """Answers what is wrong about a request's stops with a 400."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise HTTPException(status_code=400, detail=str(error)) from error


def chunk_to_sse(chunk: Any) -> str:
    """The server-sent event of a chunk; the last one says what ended the generation."""
    if isinstance(chunk, str):
        return f"data: {chunk}\n\n"
    data = chunk.model_dump(mode="json", exclude_none=True)
    asked = current.get(None)
    if asked is not None:
        asked.name(data.get("response", data))
        for choice in data.get("choices", ()):
            # OpenAI's clients promise the key to their users; transformers leaves out what is None.
            if choice.setdefault("finish_reason", None) is not None:
                asked.end(choice)
        if data.get("type") == "response.completed":
            asked.end(data["response"])
            data["type"] = f"response.{data['response']['status']}"
        if asked.include_usage and data.get("choices") and "usage" in data:
            # Who asks for the usage gets it as OpenAI sends it, in a chunk of its own.
            usage = {**data, "choices": [], "usage": data.pop("usage")}
            return _event(data) + _event(usage)
    return _event(data)


def _event(data: dict[str, Any]) -> str:
    # The events of Responses have names, which transformers leaves out.
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def parse_assistant_message(processor: Any, model: Any, generated_ids: Any, *args: Any, **options: Any) -> Any:
    """transformers' parsed message, of the text to the stop: tokens cannot be cut where a stop begins within one."""
    asked = current.get(None)
    text = generated_ids if asked is None else asked.text
    return _parse_assistant_message(processor, model, text, *args, **options)
