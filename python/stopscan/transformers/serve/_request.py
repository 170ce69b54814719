"""What one request to the server asks of its stops, and what came of them. Its handlers, which serve many requests at
once, find it by the task that they run in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastapi import HTTPException
from transformers.cli.serving import utils

from stopscan import Repeat, StopSet
from stopscan._engine.request import FIELDS, asked
from stopscan._engine.tokens import EngineSegments, RequestOptions
from stopscan.finish import Finish, to_openai, to_responses
from stopscan.regions import graph_of, known
from stopscan.segments import SegmentSet
from stopscan.transformers._options import Options

# How many tokens an answer may have, by the names of the routes.
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

_parse_assistant_message = utils.parse_assistant_message


class Defaults(NamedTuple):
    """What a route does for requests that say nothing about it, and whether it tells reasoning from answers."""

    protect: Any
    repeat: Repeat | None
    tells_regions: bool


@dataclass
class Asked:
    stop: StopSet
    options: RequestOptions
    defaults: Defaults
    model: str | None
    include_usage: bool
    # Put in by the manager that generates: the text, for the parsers of whole answers, why it ended, what counts the
    # tokens of its regions, and the tokens.
    text: str = ""
    finish: Finish | None = None
    regions: EngineSegments | None = None
    token_ids: Callable[[], Sequence[int]] = tuple

    @classmethod
    def take(cls, body: dict[str, Any], defaults: Defaults) -> Asked:
        """What ``body`` says about stops, which transformers is not to see any more."""
        stops, options = asked(body, defaults.repeat)
        for name in FIELDS:
            body.pop(name, None)
        for name in LIMITS:
            limit = body.get(name)
            if limit is not None and (type(limit) is not int or not 0 < limit < 2**31):
                raise ValueError(f"{name} must be a number of tokens, 1 or more, not {limit!r}")
        streaming = body.get("stream_options")
        include_usage = isinstance(streaming, dict) and bool(streaming.get("include_usage"))
        return cls(stops, options, defaults, body.get("model"), include_usage)

    def options_for(self, tokenizer: Any, prompt: Sequence[int]) -> RequestOptions:
        """The options of the scanner; of the server's default a model need not have every region."""
        graph = graph_of(tokenizer) or {}
        if self.defaults.tells_regions and "reasoning" in graph:
            counting = Options(tokenizer, SegmentSet(graph), skip_special_tokens=False)
            self.regions = EngineSegments(*counting.row(prompt))
        return {"protect": known(graph, self.defaults.protect), **self.options}

    def count_reasoning(self, usage: dict[str, Any]) -> None:
        """Says in the ``usage`` how many tokens of the emitted text are reasoning."""
        if self.regions is None:
            return
        self.regions.reset()
        self.regions.feed_many(self.token_ids())
        details = "output_tokens_details" if "output_tokens" in usage else "completion_tokens_details"
        usage[details] = {"reasoning_tokens": self.regions.tokens_in["reasoning"]}

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
    request = current.get(None)
    if request is not None:
        request.name(data.get("response", data))
        for choice in data.get("choices", ()):
            # OpenAI's clients promise the key to their users; transformers leaves out what is None.
            if choice.setdefault("finish_reason", None) is not None:
                request.end(choice)
        if data.get("type") == "response.completed":
            request.end(data["response"])
            request.count_reasoning(data["response"]["usage"])
            data["type"] = f"response.{data['response']['status']}"
        if "usage" in data:
            request.count_reasoning(data["usage"])
        if request.include_usage and data.get("choices") and "usage" in data:
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
    request = current.get(None)
    text = generated_ids if request is None else request.text
    return _parse_assistant_message(processor, model, text, *args, **options)
