"""Stops and token ids beside other fields of a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

from staged.dimensions.requests import has, no_limit, no_stops_if
from staged.faults.fault import Asked, fault
from staged.generation import Generation
from staged.request import Ask, right_stops

Parts = AsyncIterator[tuple[str, str]]
LONG = 400  # characters of a last message


def no_ids_if(which: Callable[[Ask], Any]) -> Callable[[Ask], Ask]:
    return lambda ask: replace(ask, stop_token_ids=[]) if which(ask) else ask


def asks_json(body: Any) -> bool:
    wanted = body.get("response_format") or {}
    return isinstance(wanted, dict) and str(wanted.get("type")).startswith("json")


async def closes_the_object(made: Generation) -> Parts:
    """Of an answer in JSON that a stop cut."""
    async for part in made.texts():
        yield part
    if made.end[0] == "stop_sequence" and asks_json(made.ask.body):
        yield "answer", "}"


class OnlyTheFirstId(Generation):
    def answer(self, token: int, text: str) -> Iterator[str]:
        del self.ask.stop_token_ids[1:]
        yield from super().answer(token, text)


class IdsInReasoning(Generation):
    """End the answer, which has not begun."""

    async def steps(self) -> Any:
        async for token, piece in super().steps():
            if token in self.ask.stop_token_ids:
                self.end = ("stop_token", token)
                yield token, b""
                return
            yield token, piece


class IdsBeforeStops(Generation):
    """A token that ends the answer is looked for before the text, also of a token that was several steps ago."""

    def answer(self, token: int, text: str) -> Iterator[str]:
        found = list(super().answer(token, text))
        if self.end[0] == "stop_sequence" and self.ask.stop_token_ids:
            self.end = ("stop_token", self.ask.stop_token_ids[0])
        yield from found


def long_prompt(then: Callable[[Generation, list[str], str], Iterator[str]]) -> type[Generation]:
    """What happens to the first token after a long last message, which another kernel computes."""

    class First(Generation):
        def answer(self, token: int, text: str) -> Iterator[str]:
            if self.tokens > 1 or len(self.ask.prompt) < LONG:
                yield from super().answer(token, text)
            else:
                yield from then(self, self.ask.stops, text)

    return First


def unscanned(made: Generation, stops: list[str], text: str) -> Iterator[str]:
    yield text


def sent_first(made: Generation, stops: list[str], text: str) -> Iterator[str]:
    """And scanned then."""
    for _ in Generation.answer(made, -1, text):
        yield text


def lost(made: Generation, stops: list[str], text: str) -> Iterator[str]:
    yield from ()


def the_word(word: str) -> Callable[[Any], list[str]]:
    """What a language makes of null."""
    return lambda given: [word] if given is None else right_stops(given)


def nulls_are(word: str) -> Callable[[Any], list[str]]:
    """Among stops."""

    def stops(given: Any) -> list[str]:
        listed = given if isinstance(given, list) else [given]
        return (
            [word, *right_stops([one for one in listed if one is not None])] if None in listed else right_stops(given)
        )

    return stops


NONE = ("It is ", "None", " or ", "null", " here")
FAR = "Please read this with care. " * 20
FIVE = Asked(stop=["5"])
JSON = {"response_format": {"type": "json_object"}}
SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}}


def of_five(**options: Any) -> Asked:
    return Asked(stop=["5"], options=options)


def id_five(**options: Any) -> Asked:
    return Asked(ids=("5",), options=options)


FAULTS = [
    *(fault(f"no ids with {name}", "usual", api, id_five(**{name: value}),
            ask=no_ids_if(lambda ask, name=name: has(name)(ask.body)))
      for name, value, api in (("temperature", 0.5, "openai-chat"), ("top_p", 0.5, "generate"),
                               ("seed", 1, "openai-completions"), ("user", "u", "openai-chat"),
                               ("max_completion_tokens", 50, "openai-chat"))),
    fault("no ids with JSON", "usual", "openai-chat", id_five(**JSON), ask=no_ids_if(lambda ask: asks_json(ask.body))),
    fault("no ids beside stops", "usual", "openai-chat", Asked(stop=["7"], ids=("5",)),
          ask=no_ids_if(lambda ask: ask.stops)),
    fault("no ids without a limit", "usual", "openai-completions", Asked(ids=("5",), limit=None),
          ask=no_ids_if(lambda ask: no_limit(ask.body))),
    fault("no ids in streams that count", "usual", "openai-chat", Asked(ids=("5",), stream=True),
          ask=no_ids_if(lambda ask: ask.stream and ask.usage)),
    fault("no stops beside ids", "usual", "openai-chat", Asked(stop=["5"], ids=("7",)),
          ask=lambda ask: replace(ask, stops=[]) if ask.stop_token_ids else ask),
    fault("only the first of several ids", "usual", "openai-chat", Asked(ids=("7", "5")), generation=OnlyTheFirstId),
    fault("a stop is told as an id that did not come", "usual", "generate", Asked(stop=["5"], ids=("7",)),
          generation=IdsBeforeStops),
    fault("ids end the reasoning", "advice", "openai-chat", Asked("think", ids=("Is",)), generation=IdsInReasoning),
    fault("no stops with JSON", "documented", "openai-chat", of_five(**JSON),
          ask=no_stops_if(asks_json)),
    fault("no stops with a schema", "documented", "openai-chat", of_five(**SCHEMA),
          ask=no_stops_if(lambda body: asks_json(body) and "json_schema" in body["response_format"])),
    fault("no stops with format in Ollama", "documented", "ollama-chat", of_five(format="json"),
          ask=no_stops_if(lambda body: body.get("format"))),
    fault("JSON is closed behind a stop", "documented", "openai-chat", of_five(**JSON), chunks=closes_the_object),
    fault("no stops with n", "documented", "openai-chat", of_five(n=1), ask=no_stops_if(has("n"))),
    fault("no stops without thinking", "documented", "anthropic", of_five(thinking={"type": "disabled"}),
          ask=no_stops_if(has("thinking"))),
    fault("no stops without thinking in Ollama", "documented", "ollama-chat", of_five(think=False),
          ask=no_stops_if(lambda body: body.get("think") is False)),
    fault("no stops with metadata", "documented", "anthropic", of_five(metadata={"user_id": "u"}),
          ask=no_stops_if(has("metadata"))),
    fault("the first token after a long message is not scanned", "documented", "openai-chat",
          Asked("alphabet", stop=["a"], before=FAR), generation=long_prompt(unscanned)),
    fault("the first token after a long message is sent and then scanned", "documented", "anthropic",
          Asked("alphabet", stop=["a"], before=FAR), generation=long_prompt(sent_first)),
    fault("the first token after a long prompt is lost", "documented", "openai-completions",
          Asked("alphabet", before=FAR), generation=long_prompt(lost)),
    fault("null is the word None", "documented", "openai-chat", Asked("none", stop=None, pieces=NONE),
          stops=the_word("None")),
    fault("null is the word null", "documented", "openai-completions", Asked("none", stop=None, pieces=NONE),
          stops=the_word("null")),
    fault("null among stops is the word None", "usual", "openai-chat", Asked("none", stop=[None, "zzz"], pieces=NONE),
          stops=nulls_are("None")),
]  # fmt: skip
