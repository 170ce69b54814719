"""Servers that are right in another way: each does something that an API leaves open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

from staged.app import Staged
from staged.edits import chunk, done, every, with_choices
from staged.generation import CHECKPOINT, EOS, Generation, Piece, Scanner
from staged.request import Refusal, right_stops
from stopscan import StopScanner, StopSet
from stopscan_conformance.reciter import HARMONY


class Variant(NamedTuple):
    staged: Staged
    apis: tuple[str, ...] = ("openai-chat",)
    outcomes: frozenset[str] = frozenset({"pass"})


def as_vllm(data: Any) -> Any:
    """Names the stop, and the reasoning, in other fields."""
    text = json.dumps(data).replace('"matched_stop"', '"stop_reason"').replace('"reasoning_content"', '"reasoning"')
    return json.loads(text)


def three_each(made: Generation) -> AsyncIterator[tuple[str, str]]:
    """As speculative decoding does, or a server that is faster than its connection."""

    async def chunks() -> AsyncIterator[tuple[str, str]]:
        waiting: list[tuple[str, str]] = []
        async for kind, text in made.texts():
            if waiting and (len(waiting) == 3 or waiting[0][0] != kind):
                yield waiting[0][0], "".join(text for _, text in waiting)
                waiting = []
            waiting.append((kind, text))
        if waiting:
            yield waiting[0][0], "".join(text for _, text in waiting)

    return chunks()


async def letters(made: Generation) -> AsyncIterator[tuple[str, str]]:
    async for kind, text in made.texts():
        for letter in text:
            yield kind, letter


class Together(Generation):
    """Reasoning stays in the text, with its markers."""

    def __init__(self, staged: Staged, ask: Any) -> None:
        super().__init__(staged, ask)
        self.ask.apart = False


async def without_reasoning(made: Generation) -> AsyncIterator[tuple[str, str]]:
    async for kind, text in made.texts():
        if kind == "answer":
            yield kind, text


async def joins_the_end(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """The finish reason stands in the last chunk that has text."""
    before = None
    async for data in source:
        if before is not None and with_choices(data) and data["choices"][0]["finish_reason"]:
            end = data["choices"][0]
            first = before["choices"][0]
            named = {key: value for key, value in end.items() if key not in ("delta", "text")}
            before, data = None, {**before, "choices": [{**first, **named}]}
        if before is not None:
            yield before
        before = data if with_choices(data) and not data["choices"][0]["finish_reason"] else None
        if before is None:
            yield data


async def one_by_one(made: Generation) -> AsyncIterator[tuple[str, str]]:
    """As a server without batches does."""
    async with made.staged.memory.setdefault("lock", asyncio.Lock()):
        async for part in made.texts():
            yield part


class Plain(Generation):
    """Of a server that has what OpenAI documents and nothing else: no stop tokens, no reasoning apart."""

    def __init__(self, staged: Staged, ask: Any) -> None:
        super().__init__(staged, ask)
        self.ask.apart = False
        self.ask.stop_token_ids = []
        self.scanner = staged.scanner(ask.stops)


class Anywhere(Scanner):
    """Finds stops in reasoning, too."""

    def __init__(self, stops: list[str]) -> None:
        self._scanner = StopScanner(StopSet(stops))


async def filters_first(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """As Azure does."""
    yield {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": [{"index": 0}]}
    async for data in events:
        yield data


def summarized(data: Any) -> Any:
    """Reasoning is told as a summary, as OpenAI's own models do."""
    text = json.dumps(data)
    text = text.replace("reasoning_text", "reasoning_summary_text")
    data = json.loads(text)
    kind = data.get("type", "")
    for item in [*((data.get("response") or data).get("output") or ()), *([data["item"]] if "item" in data else [])]:
        if item["type"] == "reasoning":
            item["summary"] = [{**part, "type": "summary_text"} for part in item.pop("content")]
    if kind.startswith("response.content_part") and data["part"]["type"] == "reasoning_summary_text":
        data["type"] = kind.replace("content_part", "reasoning_summary_part")
        data["part"]["type"] = "summary_text"
    if "reasoning_summary" in data.get("type", ""):
        data["summary_index"] = data.pop("content_index")
    return data


def uncounted(data: Any) -> Any:
    return {key: value for key, value in data.items() if not key.endswith("eval_count")}


def names_eos(made: Generation) -> tuple[str, Any]:
    return ("stop_token", CHECKPOINT.eos_token_id) if made.end[0] == "eos" else made.end


def at_most_four(given: Any) -> list[str]:
    stops = right_stops(given)
    if len(stops) > 4:
        raise Refusal(f"{len(stops)} stop strings are more than 4")
    return stops


def none_at_all(status: int) -> Callable[[Any], list[str]]:
    """For a server that has no stops and says so; frameworks validate requests with different codes."""

    def stops(given: Any) -> list[str]:
        if given:
            raise Refusal("stop is not supported", status)
        return []

    return stops


def passes_empty_over(given: Any) -> list[str]:
    return right_stops([stop for stop in given if stop != ""] if isinstance(given, list) else given)


def framed(name: str | None, data: str, blank: str = " ") -> str:
    event = f"event:{blank}{name}\n" if name else ""
    return f"{event}data:{blank}{data}\n\n"


SSE = ("openai-chat", "responses-with-stop", "anthropic")


class WithoutChannels(Generation):
    """As an engine that knows no channels, and leaves special tokens out."""

    def pieces(self) -> Iterator[Piece]:
        return (step for step in super().pieces() if step[1].decode(errors="ignore") not in HARMONY)


class OtherModel(Generation):
    def pieces(self) -> Iterator[Piece]:
        return iter([(1, b"Hello!"), (CHECKPOINT.eos_token_id, EOS)])


class Dies(Generation):
    """At the fourth stop: the first is that of the kit's look at what the server can."""

    stopped = 0

    async def texts(self) -> AsyncIterator[tuple[str, str]]:
        Dies.stopped += bool(self.ask.stops)
        await asyncio.sleep(600 if Dies.stopped > 3 else 0)
        async for part in super().texts():
            yield part


# What says that a request is not understood, and what says that the server failed.
REFUSALS = (400, 404, 405, 413, 415, 422, 501)
FAILURES = (409, 500, 503)

# For what the command says of them.
OTHERS = [
    *(Staged(f"stops are a {status}", stops=none_at_all(status)) for status in REFUSALS + FAILURES),
    Staged("locked", key="secret"),
    Staged("without channels", generation=WithoutChannels),
    Staged("another model", generation=OtherModel),
    Staged("dies", generation=Dies),
]

SKIPS = frozenset({"pass", "not supported"})
VARIANTS = [
    Variant(Staged("as vLLM", whole_answer=as_vllm, events=every(chunk, as_vllm))),
    Variant(Staged("three tokens each", chunks=three_each), (*SSE, "ollama-chat", "generate")),
    Variant(Staged("reasoning in the text", generation=Together), ("openai-chat", "anthropic", "ollama-chat"), SKIPS),
    Variant(Staged("reasoning left out", chunks=without_reasoning)),
    Variant(Staged("one request after another", chunks=one_by_one)),
    Variant(Staged("EOS is named", told=names_eos), ("openai-chat", "generate")),
    Variant(Staged("EOS is not counted", counted=lambda made: made.tokens - (made.end[0] == "eos")), ("anthropic",)),
    Variant(Staged("four stops", stops=at_most_four), outcomes=SKIPS),
    Variant(Staged("empty stops passed over", stops=passes_empty_over)),
    Variant(Staged("CR LF", frame=lambda name, data: framed(name, data).replace("\n", "\r\n")), SSE),
    Variant(Staged("comments", frame=lambda name, data: f": ping\n\n{framed(name, data, blank='')}"), SSE),
    Variant(
        Staged("nulls", events=every(with_choices, lambda data: {**data, "usage": None, "system_fingerprint": None}))
    ),
    Variant(Staged("as they are", dumps=lambda data: json.dumps(data, ensure_ascii=False)), (*SSE, "generate")),
    Variant(Staged("letter by letter", chunks=letters), (*SSE, "ollama-chat", "generate")),
    Variant(Staged("an alias", told_model="reciter-2026-11")),
    Variant(Staged("no usage", whole_answer=lambda data: {k: v for k, v in data.items() if k != "usage"})),
    Variant(Staged("a byte order mark", mark=b"\xef\xbb\xbf"), SSE),
    Variant(Staged("ids and retries", frame=lambda name, data: f"id: 7\nretry: 100\n{framed(name, data)}"), SSE),
    Variant(Staged("CR", frame=lambda name, data: framed(name, data).replace("\n", "\r")), SSE),
    Variant(Staged("the reason with the last text", events=joins_the_end), ("openai-chat", "openai-completions")),
    Variant(Staged("a tag", model="reciter:latest"), ("ollama-chat",)),
    Variant(
        Staged("plain", generation=Plain, scanner=Anywhere, told=lambda made: (made.end[0], None)),
        ("openai-chat", "openai-completions"),
        SKIPS,
    ),
    Variant(Staged("no ids", generation=Plain), ("ollama-chat", "anthropic"), SKIPS),
    Variant(Staged("filters first", events=filters_first)),
    Variant(Staged("summaries", whole_answer=summarized, events=every(chunk, summarized)), ("responses-with-stop",)),
    Variant(
        Staged("no counts", whole_answer=uncounted, events=every(done, uncounted)),
        ("ollama-chat", "ollama-generate"),
        SKIPS,
    ),
]
