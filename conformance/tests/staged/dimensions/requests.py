"""What else a request says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from staged.app import Staged
from staged.dimensions.mutant import Around, mutant
from staged.generation import Generation
from staged.request import Ask


def no_stops_if(which: Callable[[Any], Any]) -> Callable[[Ask], Ask]:
    """Of the body."""
    return lambda ask: replace(ask, stops=[]) if which(ask.body) else ask


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


class ReadsTheConversation(Generation):
    """A stop in an earlier message ends the answer."""

    role = "system"

    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        said = " ".join(str(m["content"]) for m in self.ask.body["messages"][:-1] if m["role"] == self.role)
        if hit := next((stop for stop in self.ask.stops if stop in said), None):
            self.end = ("stop_sequence", hit)
            return
        async for part in super().texts():
            yield part


class ReadsEarlierAnswers(ReadsTheConversation):
    role = "assistant"


class BeginsInThePrompt(Generation):
    """The scanner has read the prompt's end."""

    def __init__(self, staged: Staged, ask: Ask) -> None:
        super().__init__(staged, ask)
        self.scanner = Around(ask.stops)
        tail = ask.prompt[-8:]
        self.owed = len(tail) - len(self.scanner.feed(tail)) if ask.stops else 0

    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        async for kind, text in super().texts():
            skipped = min(self.owed, len(text))
            self.owed -= skipped
            yield kind, text[skipped:]


class OnlyTheFirstRow(Generation):
    """Has stops."""

    @property
    def rows(self) -> list[Generation]:  # type: ignore[override]
        if not hasattr(self, "_rows"):
            first, *others = super().rows
            self._rows = [first, *(type(self)(self.staged, replace(row.ask, stops=[])) for row in others)]
        return self._rows


class OneEndForAllRows(Generation):
    @property
    def told(self) -> tuple[str, Any]:
        return getattr(self, "first", self).end

    @property
    def rows(self) -> list[Generation]:  # type: ignore[override]
        rows = super().rows
        for row in rows[1:]:
            row.first = self  # type: ignore[attr-defined]
        return rows


class RowsTurnedRound(Generation):
    @property
    def rows(self) -> list[Generation]:  # type: ignore[override]
        return super().rows[::-1]


class CountsTheFirstRow(Generation):
    silent = False

    @property
    def rows(self) -> list[Generation]:  # type: ignore[override]
        rows = super().rows
        for row in rows[1:]:
            row.silent = True  # type: ignore[attr-defined]
        return rows

    @property
    def counted(self) -> int:
        return 0 if self.silent else self.tokens


class LimitInReasoningIsAStop(Generation):
    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        last = "answer"
        async for kind, text in super().texts():
            last = kind
            yield kind, text
        if last == "reasoning" and self.end[0] == "length":
            self.end = ("eos", None)


class ReasoningIsNotLimited(Generation):
    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        limit, self.ask.max_tokens = self.ask.max_tokens, 10**6
        thought = 0
        async for kind, text in super().texts():
            yield kind, text
            thought += kind == "reasoning"
            if self.tokens - thought >= limit and self.end[0] == "eos":
                self.end = ("length", None)
                yield kind, self.scanner.flush()
                return


class CutsLongPrompts(Generation):
    """And what belongs to them."""

    def __init__(self, staged: Staged, ask: Ask) -> None:
        super().__init__(staged, replace(ask, stops=[]) if len(ask.prompt) > 1000 else ask)


def late_limit(ask: Ask) -> Ask:
    return replace(ask, max_tokens=ask.max_tokens + 1) if ask.stops and ask.max_tokens < 100 else ask


def usage_if_not_false(ask: Ask) -> Ask:
    return replace(ask, usage="stream_options" in ask.body)


def needs_usage(body: Any) -> bool:
    return body.get("stream") is True and not (body.get("stream_options") or {}).get("include_usage")


def ignores_the_newer_limit(body: Any) -> Any:
    return {key: value for key, value in body.items() if key != "max_completion_tokens"}


def no_stop_with_extra(name: str, api: str = "openai-chat") -> Any:
    return mutant(f"no stops with {name} in {api}", api, ask=no_stops_if(has(name)))


MUTANTS = [
    *(no_stop_with_extra(name) for name in (
        "temperature", "seed", "top_p", "logprobs", "response_format", "tools", "user", "max_completion_tokens")),
    no_stop_with_extra("presence_penalty"),
    no_stop_with_extra("frequency_penalty", "openai-completions"),
    mutant("no stops at temperature 0", ask=no_stops_if(greedy)),
    mutant("no stops at temperature 0 in Anthropic", "anthropic", ask=no_stops_if(greedy)),
    mutant("no stops with both limits", ask=no_stops_if(both_limits)),
    no_stop_with_extra("logprobs", "openai-completions"),
    no_stop_with_extra("echo", "openai-completions"),
    no_stop_with_extra("temperature", "anthropic"),
    no_stop_with_extra("system", "anthropic"),
    no_stop_with_extra("top_k", "ollama-chat"),
    no_stop_with_extra("temperature", "generate"),
    mutant("no stops without a limit", ask=no_stops_if(no_limit)),
    mutant("no stops without a limit in Ollama", "ollama-chat", ask=no_stops_if(no_limit)),
    mutant("the newer limit is ignored", body=ignores_the_newer_limit),
    mutant("no stops with content in parts", ask=no_stops_if(in_parts)),
    mutant("no stops in a second turn", ask=no_stops_if(lambda body: turns(body) > 2)),
    mutant("no stops beside a system message", ask=no_stops_if(lambda body: body["messages"][0]["role"] == "system")),
    mutant("the system message is scanned", generation=ReadsTheConversation),
    mutant("earlier answers are scanned", generation=ReadsEarlierAnswers),
    mutant("a stop may begin in the prompt", "openai-completions", generation=BeginsInThePrompt),
    mutant("long prompts lose the stops", "openai-completions", generation=CutsLongPrompts),
    mutant("only the first row has stops", generation=OnlyTheFirstRow),
    mutant("one end for all rows", "openai-completions", generation=OneEndForAllRows),
    mutant("rows are turned round", "openai-completions", generation=RowsTurnedRound),
    mutant("only the first row is counted", generation=CountsTheFirstRow),
    mutant("the limit in reasoning is a stop", generation=LimitInReasoningIsAStop),
    mutant("reasoning does not count for the limit", generation=ReasoningIsNotLimited),
    mutant("one token more with stops", "anthropic", ask=late_limit),
    mutant("usage: false is taken for true", ask=usage_if_not_false),
    mutant("no stops where no usage is asked for", ask=no_stops_if(needs_usage)),
]  # fmt: skip
