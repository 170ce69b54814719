"""Wrong servers in places that a choice of requests easily leaves out: words of other APIs, what is cached or kept with
a connection, options beside stop tokens, and texts in which little things matter."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

from staged.defects.defect import Defect, wrong
from staged.edits import chunk, done, every, first, last_choice, put, typed
from staged.generation import Generation
from staged.request import Ask, right_stops
from staged.scanners import Found, Simple

Parts = AsyncIterator[tuple[str, str]]


class Cached(Generation):
    """The first answer to a prompt is given to whoever asks for it with the same limit."""

    def __init__(self, staged: Any, ask: Ask) -> None:
        known = staged.memory.setdefault((ask.prompt, ask.max_tokens), ask)
        super().__init__(staged, replace(ask, stops=known.stops, stop_token_ids=known.stop_token_ids))


async def merged_in_flight(made: Generation) -> Parts:
    """Requests that are under way are one if all but their stop tokens is equal."""
    key = (made.ask.prompt, str(made.ask.stops), made.ask.max_tokens)
    flying = made.staged.memory.setdefault(key, [])
    flying.append(made.ask.stop_token_ids)
    made.ask.stop_token_ids = flying[0]
    try:
        async for part in made.texts():
            yield part
    finally:
        flying.pop()


class StopsOfTheConnection(Generation):
    def __init__(self, staged: Any, ask: Ask) -> None:
        kept = staged.memory.setdefault(ask.client, [])
        kept[:] = ask.stops or kept
        super().__init__(staged, replace(ask, stops=[*kept]))


def keeps_refused() -> dict[str, Any]:
    """The stops of a request that was refused for something else count for the next one."""
    refused: list[list[str]] = []

    def body(body: Any) -> Any:
        if isinstance(body.get("temperature"), str):
            refused[:] = [right_stops(body.get("stop"))]
        return body

    def ask(ask: Ask) -> Ask:
        return replace(ask, stops=[*ask.stops, *refused.pop()]) if refused else ask

    return {"body": body, "ask": ask}


def no_ids_with(option: str) -> Any:
    return lambda ask: replace(ask, stop_token_ids=[]) if ask.body.get(option) is not None else ask


def no_stops_in_json(ask: Ask) -> Ask:
    json = (ask.body.get("response_format") or {}).get("type") == "json_object"
    return replace(ask, stops=[]) if json else ask


class FirstTokenOfALongPrompt(Generation):
    """The step that reads the end of the prompt is another one, whose token is not looked at."""

    def answer(self, token: int, text: str) -> Iterator[str]:
        if self.tokens == 1 and self.prompt_tokens > 1000:
            yield text
        else:
            yield from super().answer(token, text)


async def scans_what_is_left(made: Generation) -> Parts:
    """The answer is scanned when the reasoning is out."""
    parts = [part async for part in made.texts()]
    for kind in ("reasoning", "answer"):
        text = "".join(text for one, text in parts if one == kind)
        for stop in made.ask.stops:
            if kind == "answer" and stop in text:
                text, made.end = text.partition(stop)[0], ("stop_sequence", stop)
        yield kind, text


class NotWithinAToken(Simple):
    """After a hundred tokens only where tokens meet."""

    tokens = 0

    def find(self, before: int) -> Found | None:
        self.tokens += 1
        found = [one for one in self.found() if self.tokens < 100 or one[0] < before]
        return min(found, key=lambda one: (one[0] + len(one[1]), one[0]), default=None)


class LosesWhatItHolds(Simple):
    """If as much is held as before, nothing seems to be new."""

    held = 0

    def send(self, end: int) -> str:
        held, self.held = self.held, len(self.text) - end
        start, self.sent = self.sent, end
        return "" if held and held == self.held else self.text[start:end]


async def the_rest_at_once(made: Generation) -> Parts:
    count, rest, last = 0, "", "answer"
    async for kind, text in made.texts():
        count, last = count + 1, kind
        if count < 180:
            yield kind, text
        else:
            rest += text
    yield last, rest


def limit_on_the_eos(made: Generation) -> tuple[str, Any]:
    return ("length", None) if made.end[0] == "eos" and made.tokens == made.ask.max_tokens else made.end


def stops_in_the_end_token(made: Generation) -> tuple[str, Any]:
    stop = next((stop for stop in made.ask.stops if stop in "<|eos|>"), None)
    return ("stop_sequence", stop) if stop and made.end[0] == "eos" else made.end


class EndTokenInTheText(Generation):
    """The end token's text is text where a stop begins in it."""

    async def texts(self) -> Parts:
        async for part in super().texts():
            yield part
        for stop in self.ask.stops:
            if self.end[0] == "eos" and stop in "<|eos|>" and "<|eos|>".partition(stop)[0]:
                yield "answer", "<|eos|>".partition(stop)[0]


class ScansMarkers(Generation):
    """A marker is scanned as text before it is known as a marker."""

    async def texts(self) -> Parts:
        for stop in self.ask.stops:
            if self.script == "think" and stop in "<think>":
                self.tokens, self.end = 1, ("stop_sequence", stop)
                yield "answer", "<think>".partition(stop)[0]
                return
        async for part in super().texts():
            yield part


def said_as(word: Any) -> dict[str, Any]:
    """The finish reason, streamed and not, in another word."""
    return {
        "events": every(last_choice, put(word, "choices", 0, "finish_reason")),
        "whole_answer": put(word, "choices", 0, "finish_reason"),
    }


def words() -> Iterator[Defect]:
    for whole in (False, True):
        way = "whole" if whole else "streamed"
        for word in ("finished", "eos", "STOP", "max_tokens", "end_turn", "complete"):
            for api in ("openai-chat", "openai-completions"):
                name = f"{word} in {api}, {way}"
                yield wrong(name, "no-stop", "finish form", api, whole=whole, **said_as(word))
        for word in ("finished", "eos", "STOP", "max_tokens"):
            yield wrong(
                f"{word} in ollama, {way}", "no-stop", "finish form", "ollama-chat", whole=whole,
                events=every(done, put(word, "done_reason")), whole_answer=put(word, "done_reason"),
            )  # fmt: skip
        for word in ("stop", "eos", "length", "STOP_SEQUENCE"):
            yield wrong(
                f"{word} in anthropic, {way}", "no-stop", "finish form", "anthropic", whole=whole,
                events=every(typed("message_delta"), put(word, "delta", "stop_reason")),
                whole_answer=put(word, "stop_reason"),
            )  # fmt: skip
        for word in ("done", "stop", "finished"):
            yield wrong(
                f"{word} in responses, {way}", "no-stop", "finish form", "openai-responses", whole=whole,
                events=every(typed("response.completed"), put(word, "response", "status")),
                whole_answer=put(word, "status"),
            )  # fmt: skip


def item_status(status: str) -> dict[str, Any]:
    def edit(data: Any) -> Any:
        response = data.get("response", data)
        if response.get("status") == "incomplete":
            response["output"][-1]["status"] = status
        return data

    return {"whole_answer": edit, "events": every(chunk, edit)}


async def empty_block_first(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
    index = 0
    async for data in events:
        if data["type"] == "message_delta" and not index:
            yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            yield {"type": "content_block_stop", "index": 0}
        index += data["type"] == "content_block_start"
        yield data


def empty_block(data: Any) -> Any:
    return {**data, "content": data["content"] or [{"type": "text", "text": ""}]}


DEFECTS = [
    *words(),
    wrong("an item that is complete in an incomplete response", "no-stop-limit", "form", "openai-responses",
          **item_status("completed")),
    wrong("an item in progress in an incomplete answer", "no-stop-limit", "form", "openai-responses", whole=True,
          **item_status("in_progress")),
    wrong("an empty block", "no-text", "form", "anthropic", whole=True, whole_answer=empty_block),
    wrong("an empty block in a stream", "no-text", "form", "anthropic", events=empty_block_first),
    wrong("the first usage has all tokens", "no-stop", "form", "anthropic",
          events=first(typed("message_start"), put(99, "message", "usage", "output_tokens"))),
    wrong("the last usage has another prompt", "no-stop", "form", "anthropic",
          events=every(typed("message_delta"), put(9000, "usage", "input_tokens"))),
    wrong("cached without its stops", "with-and-without-stops-in-turn", "text", generation=Cached),
    wrong("cached without its ids", "one-more-id-in-turn", "text", whole=True, generation=Cached),
    wrong("merged in flight by all but ids", "one-more-id-at-once", "text", chunks=merged_in_flight),
    wrong("merged in flight, of two ids", "another-id-at-once", "text", whole=True, chunks=merged_in_flight),
    wrong("the stops of the connection", "with-and-without-stops-in-turn", "text", generation=StopsOfTheConnection),
    wrong("the stops of a refused request", "place-12+after-refused-stops", "text", **keeps_refused()),
    wrong("the stops of a refused request, without any", "among-none+after-refused-stops", "text", whole=True,
          **keeps_refused()),
    wrong("no ids with top_p", "among-id+says-top-p", "text", whole=True, ask=no_ids_with("top_p")),
    wrong("no ids with a seed", "among-id+says-seed", "text", ask=no_ids_with("seed")),
    wrong("no ids with tools", "among-id+says-tools", "text", whole=True, ask=no_ids_with("tools")),
    wrong("no stops in JSON", "a-stop-in-json", "text", ask=no_stops_in_json),
    wrong("the first token of a long message", "place-0+length-2+says-long-message", "text",
          generation=FirstTokenOfALongPrompt),
    wrong("stops around the reasoning", "think-between", "text", chunks=scans_what_is_left),
    wrong("no stops within a token far in the text", "script-wide-deep+place-300+skip-5+length-4", "text",
          scanner=NotWithinAToken),
    wrong("a null is the word None", "none-beside-a-null", "text",
          stops=lambda given: right_stops("None" if given is None else given)),
    wrong("a limit on the EOS is the limit", "limit-on-the-eos", "finish", told=limit_on_the_eos),
    wrong("what is held as before is lost", "released-and-held", "text", scanner=LosesWhatItHolds),
    wrong("a byte order mark is lost", "feff-first", "text",
          decoder=lambda: codecs.getincrementaldecoder("utf-8-sig")(errors="replace")),
    wrong("the rest at once", "streams", "late", chunks=the_rest_at_once),
    wrong("a stop in the end token", "a-piece-of-the-end-token", "finish", told=stops_in_the_end_token),
    wrong("the end token is text", "the-end-of-the-end-token", "text", generation=EndTokenInTheText),
    wrong("a stop in a marker", "a-piece-of-a-marker", "text", generation=ScansMarkers),
]  # fmt: skip
