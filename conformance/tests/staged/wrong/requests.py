"""Wrong servers that read the stops of a request wrongly, or forget them if the request has certain other options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from staged.app import Staged
from staged.generation import Generation
from staged.request import Ask, Refusal, right_stops
from staged.scanners import Around
from staged.wrong.table import Parts, wrong


def letters(given: Any) -> list[str]:
    return list(given) if isinstance(given, str) else right_stops(given)


def commas(given: Any) -> list[str]:
    return [part for stop in right_stops(given) for part in stop.split(",")]


def only_lists(given: Any) -> list[str]:
    return right_stops([] if isinstance(given, str) else given)


def crashes_if(which: Callable[[Any], Any]) -> Callable[[Any], list[str]]:
    def stops(given: Any) -> list[str]:
        assert not which(given)
        return right_stops(given)

    return stops


def at_most_four(given: Any) -> list[str]:
    stops = right_stops(given)
    if len(stops) > 4:
        raise Refusal("invalid value")
    return stops


def forgets(name: str, which: Callable[[Any], Any]) -> Callable[[Ask], Ask]:
    """Returns a function that removes the stops or the stop token ids from a request if `which(body)` is true. `name`
    is the attribute of `Ask` that becomes empty: "stops" or "stop_token_ids"."""
    return lambda ask: replace(ask, **{name: []}) if which(ask.body) else ask


def no_stops_if(which: Callable[[Any], Any]) -> Callable[[Ask], Ask]:
    return forgets("stops", which)


def no_ids_if(which: Callable[[Any], Any]) -> Callable[[Ask], Ask]:
    return forgets("stop_token_ids", which)


def options(body: Any) -> Any:
    return {**body, **(body.get("options") or {}), **(body.get("sampling_params") or {})}


def has(name: str) -> Callable[[Any], Any]:
    return lambda body: options(body).get(name) is not None


def in_parts(body: Any) -> Any:
    return isinstance(body["messages"][-1]["content"], list)


def turns(body: Any) -> int:
    return len(body["messages"])


def no_limit(body: Any) -> bool:
    names = ("max_tokens", "max_completion_tokens", "num_predict", "max_new_tokens")
    return all(options(body).get(name) is None for name in names)


def greedy(body: Any) -> Any:
    return options(body).get("temperature") == 0


def both_limits(body: Any) -> Any:
    return {"max_tokens", "max_completion_tokens"} <= {*body}


def reads_messages_of(role: str) -> type[Generation]:
    """Returns a `Generation` class that ends the answer at once if an earlier message of `role` has a stop in it."""

    class Reads(Generation):
        async def texts(self) -> Parts:
            said = " ".join(str(m["content"]) for m in self.ask.body["messages"][:-1] if m["role"] == role)
            if hit := next((stop for stop in self.ask.stops if stop in said), None):
                self.end = ("stop_sequence", hit)
                return
            async for part in super().texts():
                yield part

    return Reads


class BeginsInThePrompt(Generation):
    """Defect: the scanner also reads the end of the prompt, so that a stop may begin there."""

    def __init__(self, staged: Staged, ask: Ask) -> None:
        super().__init__(staged, ask)
        self.scanner = Around(ask.stops)
        tail = ask.prompt[-8:]
        self.owed = len(tail) - len(self.scanner.feed(tail)) if ask.stops else 0

    async def texts(self) -> Parts:
        async for kind, text in super().texts():
            skipped = min(self.owed, len(text))
            self.owed -= skipped
            yield kind, text[skipped:]


class OnlyTheFirstRow(Generation):
    """Defect: if a request asks for several answers, only the first answer has stops."""

    @property
    def rows(self) -> list[Generation]:  # type: ignore[override]
        if not hasattr(self, "_rows"):
            first, *others = super().rows
            self._rows = [first, *(type(self)(self.staged, replace(row.ask, stops=[])) for row in others)]
        return self._rows


class KnowsTheFirstRow(Generation):
    first: Generation | None = None

    @property
    def rows(self) -> list[Generation]:  # type: ignore[override]
        rows = super().rows
        for row in rows[1:]:
            row.first = self  # type: ignore[attr-defined]
        return rows


class OneEndForAllRows(KnowsTheFirstRow):
    @property
    def told(self) -> tuple[str, Any]:
        return (self.first or self).end


class CountsTheFirstRow(KnowsTheFirstRow):
    @property
    def counted(self) -> int:
        return 0 if self.first else self.tokens


class RowsTurnedRound(Generation):
    @property
    def rows(self) -> list[Generation]:  # type: ignore[override]
        return super().rows[::-1]


class LimitInReasoningIsAStop(Generation):
    async def texts(self) -> Parts:
        last = "answer"
        async for kind, text in super().texts():
            last = kind
            yield kind, text
        if last == "reasoning" and self.end[0] == "length":
            self.end = ("eos", None)


class ReasoningIsNotLimited(Generation):
    async def texts(self) -> Parts:
        limit, self.ask.max_tokens = self.ask.max_tokens, 10**6
        thought = 0
        async for kind, text in super().texts():
            yield kind, text
            thought += kind == "reasoning"
            if self.tokens - thought >= limit and self.end[0] == "eos":
                self.end = ("length", None)
                yield kind, self.scanner.flush()
                return


def late_limit(ask: Ask) -> Ask:
    return replace(ask, max_tokens=ask.max_tokens + 1) if ask.stops and ask.max_tokens < 100 else ask


def usage_if_not_false(ask: Ask) -> Ask:
    return replace(ask, usage="stream_options" in ask.body)


def needs_usage(body: Any) -> bool:
    return body.get("stream") is True and not (body.get("stream_options") or {}).get("include_usage")


def ignores_the_newer_limit(body: Any) -> Any:
    return {key: value for key, value in body.items() if key != "max_completion_tokens"}


def asks_json(body: Any) -> bool:
    wanted = body.get("response_format") or {}
    return isinstance(wanted, dict) and str(wanted.get("type")).startswith("json")


async def closes_the_object(made: Generation) -> Parts:
    """Defect: adds a closing brace to an answer if JSON was asked for, and a stop has cut the answer."""
    async for part in made.texts():
        yield part
    if made.end[0] == "stop_sequence" and asks_json(made.ask.body):
        yield "answer", "}"


class OnlyTheFirstId(Generation):
    def answer(self, token: int, text: str) -> Iterator[str]:
        del self.ask.stop_token_ids[1:]
        yield from super().answer(token, text)


class IdsInReasoning(Generation):
    """Defect: ends the generation at a stop token in the reasoning, although stops are for the answer."""

    async def steps(self) -> Any:
        async for token, piece in super().steps():
            if token in self.ask.stop_token_ids:
                self.end = ("stop_token", token)
                yield token, b""
                return
            yield token, piece


class IdsBeforeStops(Generation):
    """Defect: when a stop string fires, reports that the first stop token of the request fired, although it did not
    come."""

    def answer(self, token: int, text: str) -> Iterator[str]:
        found = list(super().answer(token, text))
        if self.end[0] == "stop_sequence" and self.ask.stop_token_ids:
            self.end = ("stop_token", self.ask.stop_token_ids[0])
        yield from found


def nulls_are(word: str) -> Callable[[Any], list[str]]:
    """Returns a function that reads null, by itself or among stops, as the stop `word`."""
    return lambda given: right_stops([word if one is None else one for one in listed(given)])


def listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


# Each server of this table ignores the stops of a request, or its stop token ids ("ids"), if the request has a certain
# option. A key has what the server ignores, the option, and the last part of the name of the case that finds this. The
# value has the APIs of this case, each followed by "stream" or "whole".
FORGOTTEN = {
    ("stops", "temperature", "temperature"): "openai-chat-stream anthropic-stream generate-stream",
    ("stops", "seed", "seed"): "openai-chat-whole",
    ("stops", "top_p", "top-p"): "openai-chat-stream",
    ("stops", "logprobs", "logprobs"): "openai-chat-stream openai-completions-stream",
    ("stops", "response_format", "response-format"): "openai-chat-whole",
    ("stops", "tools", "tools"): "openai-chat-stream",
    ("stops", "user", "user"): "openai-chat-stream",
    ("stops", "max_completion_tokens", "newer-limit"): "openai-chat-whole",
    ("stops", "presence_penalty", "penalties"): "openai-chat-stream",
    ("stops", "frequency_penalty", "penalties"): "openai-completions-stream",
    ("stops", "echo", "echo"): "openai-completions-whole",
    ("stops", "system", "system"): "anthropic-whole",
    ("stops", "top_k", "top-k"): "ollama-chat-whole",
    ("ids", "temperature", "temperature"): "openai-chat-whole",
    ("ids", "top_p", "top-p"): "generate-whole",
    ("ids", "seed", "seed"): "openai-completions-stream",
    ("ids", "tools", "tools"): "openai-chat-whole",
    ("ids", "user", "user"): "openai-chat-whole",
    ("ids", "max_completion_tokens", "newer-limit"): "openai-chat-stream",
    ("stops", "metadata", "metadata"): "anthropic-whole",
}  # fmt: skip
NAMES = {"stops": ("stops", ""), "ids": ("stop_token_ids", "among-id+")}
WRONG = [
    *(wrong(f"no {kind} with {option} in {api}", f"{api}-{NAMES[kind][1]}says-{says}", "text",
            ask=forgets(NAMES[kind][0], has(option)))
      for (kind, option, says), apis in FORGOTTEN.items() for api in apis.split()),
    wrong("a string taken for its letters", "openai-chat-stream-a-string", "finish cost", stops=letters),
    wrong("a string ignored", "openai-chat-whole-a-string", "text finish cost", stops=only_lists),
    wrong("stops split at commas", "openai-chat-stream-stops-with-commas", "text finish cost", stops=commas),
    wrong("a stop of its own where none is given", "openai-chat-stream-an-empty-list", "text finish cost",
          stops=lambda given: [*right_stops(given), "the"]),
    wrong("null crashes", "openai-chat-stream-null", "text", stops=crashes_if(lambda given: given is None)),
    wrong("a missing stop crashes", "openai-chat-whole-no-stop", "text", stops=crashes_if(lambda given: not given)),
    wrong("a stop given twice crashes", "openai-chat-stream-twice", "text",
          stops=crashes_if(lambda given: len({*given}) < len(given))),
    wrong("too many stops are refused without a word", "openai-chat-stream-five", "form", stops=at_most_four),
    wrong("no stops at temperature 0", "openai-chat-whole-says-greedy", "text finish cost", ask=no_stops_if(greedy)),
    wrong("no stops at temperature 0 in Anthropic", "anthropic-whole-says-greedy", "text finish cost",
          ask=no_stops_if(greedy)),
    wrong("no stops with both limits", "openai-chat-stream-says-both-limits", "text finish cost",
          ask=no_stops_if(both_limits)),
    wrong("no stops without a limit", "openai-chat-stream-limit-none", "text finish cost", ask=no_stops_if(no_limit)),
    wrong("no stops without a limit in Ollama", "ollama-chat-stream-limit-none", "text cost",
          ask=no_stops_if(no_limit)),
    wrong("the newer limit is ignored", "openai-chat-whole-limit-one-before+says-newer-limit", "text finish cost",
          body=ignores_the_newer_limit),
    wrong("no stops with content in parts", "openai-chat-stream-says-parts", "text finish cost",
          ask=no_stops_if(in_parts)),
    wrong("no stops in a second turn", "openai-chat-whole-says-turns", "text finish cost",
          ask=no_stops_if(lambda body: turns(body) > 2)),
    wrong("no stops beside a system message", "openai-chat-whole-says-system", "text finish cost",
          ask=no_stops_if(lambda body: body["messages"][0]["role"] == "system")),
    wrong("the system message is scanned", "openai-chat-stream-says-system-with-the-stop", "text cost",
          generation=reads_messages_of("system")),
    wrong("earlier answers are scanned", "openai-chat-stream-says-turns-with-the-stop", "text cost",
          generation=reads_messages_of("assistant")),
    wrong("a stop may begin in the prompt", "openai-completions-whole-says-prompt-begins-the-stop", "text finish cost",
          generation=BeginsInThePrompt),
    wrong("long prompts lose the stops", "openai-completions-whole-place-0+length-2+says-long-message",
          "text finish cost", ask=lambda ask: replace(ask, stops=[]) if len(ask.prompt) > 1000 else ask),
    wrong("only the first row has stops", "openai-chat-whole-two-rows", "text finish cost", generation=OnlyTheFirstRow),
    wrong("one end for all rows", "openai-completions-whole-two-prompts", "finish", generation=OneEndForAllRows),
    wrong("rows are turned round", "openai-completions-whole-two-prompts", "text finish", generation=RowsTurnedRound),
    wrong("only the first row is counted", "openai-chat-whole-two-rows", "cost", generation=CountsTheFirstRow),
    wrong("the limit in reasoning is a stop", "openai-chat-stream-script-thought+place-90+limit-in-reasoning", "finish",
          generation=LimitInReasoningIsAStop),
    wrong("reasoning does not count for the limit", "openai-chat-stream-script-thought+place-90+limit-in-reasoning",
          "text cost", generation=ReasoningIsNotLimited),
    wrong("one token more with stops", "anthropic-whole-place-3+length-12+limit-within", "text cost", ask=late_limit),
    wrong("usage: false is taken for true",
          "openai-chat-stream-place-24+skip-1+length-1+among-nul+says-system+usage-false", "form",
          ask=usage_if_not_false),
    wrong("no stops where no usage is asked for", "openai-chat-stream-usage-not-asked", "text finish",
          ask=no_stops_if(needs_usage)),
    wrong("no ids with JSON", "openai-chat-whole-an-id-in-json", "text finish cost", ask=no_ids_if(asks_json)),
    wrong("no ids beside stops", "openai-chat-whole-string-6-id-5", "text finish cost",
          ask=lambda ask: replace(ask, stop_token_ids=[]) if ask.stops else ask),
    wrong("no ids without a limit", "openai-completions-whole-among-id+limit-none", "text finish cost",
          ask=no_ids_if(no_limit)),
    wrong("no ids in streams that count", "openai-chat-stream-id-in-the-last-token", "text finish",
          ask=lambda ask: replace(ask, stop_token_ids=[]) if ask.stream and ask.usage else ask),
    wrong("no stops beside ids", "openai-chat-whole-string-5-id-6", "text finish cost",
          ask=lambda ask: replace(ask, stops=[]) if ask.stop_token_ids else ask),
    wrong("only the first of several ids", "openai-chat-whole-ids-later-first", "text finish cost",
          generation=OnlyTheFirstId),
    wrong("a stop is told as an id that did not come", "generate-whole-string-5-id-6", "finish",
          generation=IdsBeforeStops),
    wrong("ids end the reasoning", "openai-chat-whole-string-5-id-5", "finish", generation=IdsInReasoning),
    wrong("no stops with JSON", "openai-chat-whole-a-stop-in-json", "text finish cost", ask=no_stops_if(asks_json)),
    wrong("no stops with a schema", "openai-chat-whole-a-stop-in-json-of-a-schema", "text finish cost",
          ask=no_stops_if(lambda body: asks_json(body) and "json_schema" in body["response_format"])),
    wrong("no stops with format in Ollama", "ollama-chat-whole-a-stop-in-formatted-json", "text cost",
          ask=no_stops_if(lambda body: body.get("format"))),
    wrong("JSON is closed behind a stop", "openai-chat-whole-a-stop-in-json", "text", chunks=closes_the_object),
    wrong("no stops with n", "openai-chat-whole-two-rows", "text finish cost", ask=no_stops_if(has("n"))),
    wrong("no stops without thinking", "anthropic-stream-says-no-thinking", "text finish cost",
          ask=no_stops_if(has("thinking"))),
    wrong("no stops without thinking in Ollama", "ollama-chat-whole-says-think-not", "text finish cost",
          ask=no_stops_if(lambda body: body.get("think") is False)),
    wrong("null is the word None", "openai-chat-whole-none-beside-a-null", "text finish cost", stops=nulls_are("None")),
    wrong("null is the word null", "openai-completions-whole-none-beside-a-null", "text finish cost",
          stops=nulls_are("null")),
]  # fmt: skip
