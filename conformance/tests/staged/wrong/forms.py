"""Wrong servers whose answers have a wrong form or no end, or that answer a wrong request wrongly.

`test_forms.py` and `test_events.py` change single keys and single events; the defects here need more than that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

from staged.edits import (
    Edit,
    Which,
    after,
    before,
    chunk,
    done,
    drop,
    every,
    first,
    last_choice,
    lose,
    put,
    typed,
    with_choices,
    with_usage,
)
from staged.request import Refusal, right_stops
from staged.wrong.table import wrong

NUMBERS = count(1)
TEXT = {"type": "text", "text": ""}
EMPTY = {"index": 0, "delta": {}, "finish_reason": None}
BARE = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "reciter", "choices": []}
LATE = {"index": 0, "delta": {"content": " more"}, "finish_reason": None}
USED = {"prompt_tokens": 1, "completion_tokens": 6, "total_tokens": 7}
TEXT_DELTA, TEXT_DONE = typed("response.output_text.delta"), typed("response.output_text.done")
LAST, CUT = typed("response.completed"), typed("response.incomplete")
BEGIN, TURN, END = typed("message_start"), typed("message_delta"), typed("message_stop")
START, DELTA = typed("content_block_start"), typed("content_block_delta")


def having(key: str) -> Which:
    return lambda data: isinstance(data, dict) and key in data


def adds(**fields: Any) -> Edit:
    return lambda data: {**data, **fields}


def prompts_counted_together(usage: dict[str, int]) -> dict[str, int]:
    number = next(NUMBERS)
    return {**usage, "prompt_tokens": number, "total_tokens": usage["completion_tokens"] + number}


def one_token(usage: dict[str, int]) -> dict[str, int]:
    """Defect: counts one token for every prompt."""
    return {**usage, "prompt_tokens": 1, "total_tokens": 1 + usage["completion_tokens"]}


def without_content(message: Any) -> Any:
    return message if message["content"] else {"role": "assistant"}


def as_delta(choice: Any) -> Any:
    return {"delta": {"content": choice["text"]}, **{key: value for key, value in choice.items() if key != "text"}}


def in_lines(name: str | None, data: str) -> str:
    """Defect: splits the JSON of an event into lines at every line separator of Unicode, even inside a string."""
    lines = data.encode().decode("unicode_escape").splitlines()
    return "".join(f"data: {line}\n" for line in lines) + "\n"


def nameless(name: str | None, data: str) -> str:
    return f"data: {data}\n\n"


async def deltas(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Defect: sends only the new text in each event, as other APIs do."""
    said = ""
    async for data in source:
        yield {**data, "text": data["text"][len(said) :]} if isinstance(data, dict) else data
        said = data["text"] if isinstance(data, dict) else said


async def pings(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for data in source:
        yield data
    while True:
        yield {"type": "ping"}
        await asyncio.sleep(0.05)


async def only_pings(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    first = True
    async for data in source:
        if first or "klm" in str(data):
            yield data
        first = False
    while True:
        yield {"type": "ping"}
        await asyncio.sleep(0.05)


async def stays(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for data in source:
        yield data
    await asyncio.sleep(60)


async def silent(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    await asyncio.sleep(60)
    yield {}


async def breaks_off(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    number = 0
    async for data in source:
        yield data
        number += 1
        if number == 4:
            raise ConnectionAbortedError


def nan(data: Any) -> str:
    """Defect: adds the number NaN, which JSON does not have."""
    return json.dumps({**data, "score": float("nan")}) if isinstance(data, dict) else json.dumps(data)


def cut_utf8(text: str) -> bytes:
    """Defect: removes the first byte 0xC3 from each event, and so breaks the UTF-8 of letters such as é, which begin
    with this byte."""
    return text.encode().replace(b"\xc3", b"", 1)


def unescaped(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def takes_all(given: Any) -> list[str]:
    """Defect: accepts any value, and ignores what is not a stop."""
    stops = given if isinstance(given, list) else [given]
    return [stop for stop in stops if isinstance(stop, str) and stop]


def as_text(given: Any) -> list[str]:
    stops = [] if given is None else given if isinstance(given, list) else [given]
    return [str(stop) for stop in stops if stop != ""]


def crashes(given: Any) -> list[str]:
    try:
        return right_stops(given)
    except Refusal as refusal:
        raise Refusal("internal error", 500) from refusal


def without_limit_check(body: Any) -> Any:
    limit = body.get("max_tokens")
    return body if limit is None or (type(limit) is int and limit > 0) else {**body, "max_tokens": 5}


def without_number_check(body: Any) -> Any:
    return {key: value for key, value in body.items() if key != "temperature"}


def items(status: str) -> Any:
    """Returns a function that changes responses with the status "incomplete". It gives all output items of the response
    the status `status`."""

    def change(response: Any) -> Any:
        if response["status"] != "incomplete":
            return response
        return {**response, "output": [{**one, "status": status} for one in response["output"]]}

    return change


def complete_details(response: Any) -> Any:
    """Defect: removes the reason why a response is incomplete."""
    return {**response, "incomplete_details": None} if response["status"] == "incomplete" else response


def empty_block(data: Any) -> Any:
    return {**data, "content": data["content"] or [TEXT]}


async def empty_block_in_a_stream(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    begun = False
    async for data in source:
        begun = begun or data["type"] == "content_block_start"
        if data["type"] == "message_delta" and not begun:
            yield {"type": "content_block_start", "index": 0, "content_block": TEXT}
            yield {"type": "content_block_stop", "index": 0}
        yield data


async def usage_before_the_reason(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Defect: sends the usage first, before the text and the finish reason."""
    kept = [data async for data in source]
    counts = [data for data in kept if isinstance(data, dict) and data.get("usage")]
    for data in [*counts, *(one for one in kept if one not in counts)]:
        yield data


async def two_answers_of_a_block(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Defect: opens and closes a new block for each delta, but every delta has the index of the first block."""
    index = -1
    async for data in source:
        if data["type"] == "content_block_delta":
            index += 1
            block = {"type": "text", "text": ""} if "text" in data["delta"] else {"type": "thinking", "thinking": ""}
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {**data, "index": 0}
            yield {"type": "content_block_stop", "index": index}
        elif not data["type"].startswith("content_block"):
            yield data


ENDLESS = [
    wrong("anthropic: pings for ever at the end", "anthropic-stream-split", "form", events=pings),
    wrong("anthropic: pings for ever", "anthropic-stream-split", "text", events=only_pings),
    wrong("ollama: the connection stays open", "ollama-chat-stream-split", "form", events=stays),
    wrong("silent streams", "openai-chat-stream-split", "text", events=silent),
    wrong("streams that break off", "openai-chat-stream-split", "text finish form", events=breaks_off),
]  # fmt: skip
WRONG = [
    *ENDLESS,
    wrong("chat: no id", "openai-chat-stream-split", "form", events=every(chunk, lose("id"))),
    wrong("chat: one id for all answers", "openai-chat-whole-twice-the-same", "form", whole_answer=put("id", "id")),
    wrong("chat: no content", "openai-chat-whole-no-text", "form",
          whole_answer=put(without_content, "choices", 0, "message")),
    wrong("chat: no last chunk", "openai-chat-stream-split", "finish form", events=every(last_choice, drop)),
    wrong("chat: text after the last chunk", "openai-chat-stream-split", "text form",
          events=every(last_choice, lambda data: [data, {**data, "choices": [LATE]}])),
    wrong("chat: [DONE] before the usage", "openai-chat-stream-split", "form",
          events=every(with_usage, before("[DONE]"))),
    wrong("chat: a stream as JSON", "openai-chat-stream-split", "form", media="application/json"),
    wrong("chat: usage in each chunk", "openai-chat-stream-split", "form",
          events=every(with_choices, adds(usage=USED))),
    wrong("chat: usage with choices", "openai-chat-stream-split", "form",
          events=every(with_usage, adds(choices=[EMPTY]))),
    wrong("chat: usage without choices, not asked for", "openai-chat-stream-usage-not-asked", "form",
          events=every(done, before(BARE))),
    wrong("chat: a wrong sum", "openai-chat-whole-split", "form", whole_answer=put(3, "usage", "total_tokens")),
    wrong("chat: other prompt tokens each time", "openai-chat-whole-twice-the-same", "cost",
          whole_answer=put(prompts_counted_together, "usage")),
    wrong("chat: two choices", "openai-chat-whole-split", "text form",
          whole_answer=put(lambda choices: [*choices, {**choices[0], "index": 1}], "choices")),
    wrong("chat: no empty line after an event", "openai-chat-stream-split", "text finish form",
          frame=lambda name, data: f'data: {data}\n'),
    wrong("chat: lines that end at any separator", "openai-chat-stream-line-separators", "text", frame=in_lines),
    wrong("chat: an error in the stream", "openai-chat-stream-split", "text finish form",
          events=first(lambda data: chunk(data) and "the" in str(data), put({"message": "out of memory"}, "error"))),
    wrong("completions: deltas", "openai-completions-stream-split", "text form",
          events=every(with_choices, put(as_delta, "choices", 0))),
    wrong("responses: each number 0", "responses-with-stop-stream-split", "form",
          events=every(chunk, put(0, "sequence_number"))),
    wrong("responses: another text when done", "responses-with-stop-stream-split", "form",
          events=every(TEXT_DONE, put("This", "text"))),
    wrong("responses: another text in the last event", "responses-with-stop-stream-split", "form",
          events=every(LAST, put([], "response", "output"))),
    wrong("responses: a delta is a number", "responses-with-stop-stream-split", "text",
          events=first(TEXT_DELTA, put(5, "delta"))),
    wrong("responses: all items at 0", "responses-with-stop-stream-think", "form",
          events=every(having("output_index"), put(0, "output_index"))),
    wrong("responses: in progress at the end", "responses-with-stop-stream-split", "finish form",
          events=every(LAST, put("in_progress", "response", "status"))),
    wrong("responses: no end", "responses-with-stop-stream-split", "finish form", events=every(LAST, drop)),
    wrong("responses: no names", "responses-with-stop-stream-split", "form", frame=nameless),
    wrong("responses: chunks of chat", "responses-with-stop-stream-split", "text form",
          events=every(TEXT_DELTA, lambda data: {**BARE, "choices": [LATE]})),
    wrong("anthropic: no names", "anthropic-stream-split", "form", frame=nameless),
    wrong("anthropic: blocks from 1", "anthropic-stream-split", "form",
          events=every(having("index"), put(lambda index: index + 1, "index"))),
    wrong("anthropic: each block 0", "anthropic-stream-think", "form", events=every(having("index"), put(0, "index"))),
    wrong("anthropic: an empty delta", "anthropic-stream-split", "text form",
          events=first(DELTA, put(None, "delta", "text"))),
    wrong("anthropic: a delta is a number", "anthropic-stream-split", "text",
          events=first(DELTA, put(5, "delta", "text"))),
    wrong("anthropic: no message_delta", "anthropic-stream-split", "finish form", events=every(TURN, drop)),
    wrong("anthropic: the reason in message_stop", "anthropic-stream-split", "finish form",
          events=every(TURN, put({"stop_reason": None, "stop_sequence": None}, "delta"))),
    wrong("anthropic: content is text", "anthropic-whole-split", "text form",
          whole_answer=put(lambda blocks: "".join(block["text"] for block in blocks), "content")),
    wrong("anthropic: text deltas in a thinking block", "anthropic-stream-think", "form",
          events=first(START, put(TEXT, "content_block"))),
    wrong("anthropic: [DONE]", "anthropic-stream-split", "form", events=every(END, after("[DONE]"))),
    wrong("anthropic: one id for all answers", "anthropic-whole-twice-the-same", "form", whole_answer=put("msg", "id")),
    wrong("ollama: events", "ollama-chat-stream-split", "text", frame=nameless),
    wrong("ollama: no last line", "ollama-chat-stream-split", "finish form", events=every(done, drop)),
    wrong("ollama: each line is the last", "ollama-chat-stream-no-stop-limit", "form",
          events=every(chunk, put(True, "done"))),
    wrong("ollama: not done", "ollama-chat-whole-split", "finish form", whole_answer=put(False, "done")),
    wrong("sglang: deltas", "generate-stream-split", "text form", events=deltas),
    wrong("sglang: no finish reason", "generate-whole-split", "finish form",
          whole_answer=put(None, "meta_info", "finish_reason")),
    wrong("NaN in an answer", "openai-chat-whole-split", "text", dumps=nan),
    wrong("NaN in Ollama", "ollama-generate-whole-split", "text", dumps=nan),
    wrong("status 202", "openai-chat-whole-split", "form", status=202),
    wrong("status 201 in Anthropic", "anthropic-whole-split", "form", status=201),
    wrong("another reason why it is incomplete", "responses-with-stop-whole-no-stop-limit", "finish form",
          whole_answer=put(lambda told: told and {"reason": "full"}, "incomplete_details")),
    wrong("created in milliseconds", "openai-chat-whole-split", "form",
          whole_answer=put(lambda seconds: seconds * 1000, "created")),
    wrong("junk as logprobs in chunks", "openai-chat-stream-split", "form",
          events=every(with_choices, put(adds(logprobs="none"), "choices", 0))),
    wrong("one token for every prompt", "openai-completions-whole-prompt-tokens", "cost",
          whole_answer=put(one_token, "usage")),
    wrong("a thousand tokens for every prompt", "anthropic-whole-prompt-tokens", "cost",
          whole_answer=put(1000, "usage", "input_tokens")),
    wrong("UTF-8 that is cut", "openai-chat-stream-script-looks-accent", "form", dumps=unescaped, encoded=cut_utf8),
    wrong("stops that are no text are passed over", "openai-chat-whole-a-stop-that-is-a-number", "form",
          stops=takes_all),
    wrong("stops that are numbers are text", "anthropic-whole-stops-that-are-numbers", "form", stops=as_text),
    wrong("wrong stops crash", "openai-chat-whole-a-stop-that-is-an-object", "form", stops=crashes),
    wrong("a body that is no JSON crashes", "openai-chat-whole-no-json", "form", unreadable=500),
    wrong("wrong limits are passed over", "openai-completions-whole-a-limit-that-is-text", "form",
          body=without_limit_check),
    wrong("a temperature that is text is passed over", "openai-chat-whole-a-temperature-that-is-text", "form",
          body=without_number_check),
    wrong("items of an incomplete response are complete", "openai-responses-whole-no-stop-limit", "form",
          whole_answer=items("completed")),
    wrong("items of an incomplete response are in progress", "openai-responses-whole-no-stop-limit", "form",
          whole_answer=items("in_progress")),
    wrong("items of an incomplete response are complete in a stream", "openai-responses-stream-no-stop-limit", "form",
          events=every(CUT, put(items("completed"), "response"))),
    wrong("a cut response ends as a complete one", "openai-responses-stream-no-stop-limit", "form",
          events=every(CUT, put("response.completed", "type"))),
    wrong("no usage in an incomplete response", "openai-responses-stream-no-stop-limit", "form",
          events=every(CUT, put(None, "response", "usage"))),
    wrong("nothing says why a response is incomplete", "openai-responses-whole-no-stop-limit", "finish form",
          whole_answer=complete_details),
    wrong("no total in a stream's usage", "openai-chat-stream-split", "form",
          events=every(with_usage, lose("usage", "total_tokens"))),
    wrong("no usage in message_start", "anthropic-stream-split", "form", events=every(BEGIN, lose("message", "usage"))),
    wrong("no prompt in the usage of message_start", "anthropic-stream-split", "form",
          events=every(BEGIN, lose("message", "usage", "input_tokens"))),
    wrong("an empty block where a stop comes first", "anthropic-whole-no-text", "form", whole_answer=empty_block),
    wrong("an empty block where a stop comes first in a stream", "anthropic-stream-no-text", "form",
          events=empty_block_in_a_stream),
    wrong("the first usage has all tokens", "anthropic-stream-no-stop", "form",
          events=every(BEGIN, put(99, "message", "usage", "output_tokens"))),
    wrong("the last usage has a smaller prompt", "anthropic-stream-no-stop", "form",
          events=every(TURN, put(0, "usage", "input_tokens"))),
    wrong("usage comes before the text", "openai-chat-stream-split", "form", events=usage_before_the_reason),
    wrong("deltas belong to another block", "anthropic-stream-split", "form", events=two_answers_of_a_block),
]  # fmt: skip
