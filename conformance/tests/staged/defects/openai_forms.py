"""Answers of OpenAI's chat, completions and Responses in a wrong form."""

from __future__ import annotations

from itertools import count

from staged.defects.defect import Defect, wrong
from staged.edits import (
    before,
    chunk,
    done,
    drop,
    every,
    first,
    last_choice,
    lose,
    numbered,
    put,
    twice,
    typed,
    with_choices,
    with_usage,
)  # fmt: skip

CASE = "split"
NUMBERS = count(1)


def prompts_counted_together(usage: dict[str, int]) -> dict[str, int]:
    number = next(NUMBERS)
    return {**usage, "prompt_tokens": number, "total_tokens": usage["completion_tokens"] + number}


LEAVE = {"index": 0, "delta": {"content": " more"}, "finish_reason": None}


def chat(name: str, /, *, columns: str = "form", case: str = CASE, whole: bool = False, **changes: object) -> Defect:
    return wrong(f"chat: {name}", case, columns, whole=whole, **changes)


def completions(
    name: str, /, *, columns: str = "form", case: str = CASE, whole: bool = False, **changes: object
) -> Defect:
    return wrong(f"completions: {name}", case, columns, "openai-completions", whole=whole, **changes)


def responses(
    name: str, /, *, columns: str = "form", case: str = CASE, whole: bool = False, **changes: object
) -> Defect:
    return wrong(f"responses: {name}", case, columns, "responses-with-stop", whole=whole, **changes)


CHAT = [
    chat("no id", events=every(chunk, lose("id"))),
    chat("an empty id", whole=True, whole_answer=put("", "id")),
    chat(
        "another id in each chunk", events=numbered(lambda data, n: put(f"id-{n}", "id")(data) if chunk(data) else data)
    ),
    chat("one id for all answers", case="twice-the-same", whole=True, whole_answer=put("id", "id")),
    chat("the object of a whole answer", events=every(chunk, put("chat.completion", "object"))),
    chat("the object of a chunk", whole=True, whole_answer=put("chat.completion.chunk", "object")),
    chat("no time", whole=True, whole_answer=lose("created")),
    chat("time is text", events=every(chunk, put("now", "created"))),
    chat("no model", events=every(chunk, lose("model"))),
    chat("the model is a number", whole=True, whole_answer=put(4, "model")),
    chat("no index", events=every(with_choices, lose("choices", 0, "index"))),
    chat("index 1", whole=True, whole_answer=put(1, "choices", 0, "index")),
    chat("no role", events=first(with_choices, put({"content": ""}, "choices", 0, "delta"))),
    chat("the user's role", whole=True, whole_answer=put("user", "choices", 0, "message", "role")),
    chat("the system's role in a delta", events=first(with_choices, put("system", "choices", 0, "delta", "role"))),
    chat("the role is a list", events=first(with_choices, put(["assistant"], "choices", 0, "delta", "role"))),
    chat(
        "the content of a delta is a number",
        events=first(last_choice, put(5, "choices", 0, "delta", "content")),
    ),
    chat(
        "the reasoning is a list",
        whole=True,
        whole_answer=put(["so"], "choices", 0, "message", "reasoning_content"),
    ),
    chat(
        "no content",
        case="no-text",
        whole=True,
        whole_answer=put(
            lambda message: message if message["content"] else {"role": "assistant"}, "choices", 0, "message"
        ),
    ),
    chat(
        "no finish reason in chunks",
        events=every(lambda data: with_choices(data) and not last_choice(data), lose("choices", 0, "finish_reason")),
    ),
    chat("no last chunk", columns="finish form", events=every(last_choice, drop)),
    chat("two last chunks", events=every(last_choice, twice)),
    chat(
        "text after the last chunk",
        columns="text form",
        events=every(last_choice, lambda data: [data, {**data, "choices": [LEAVE]}]),
    ),
    chat(
        "a reason in each chunk",
        columns="form",
        case="no-stop",
        events=every(with_choices, put("stop", "choices", 0, "finish_reason")),
    ),
    chat("no [DONE]", events=every(done, drop)),
    chat("[DONE] before the usage", columns="form", events=every(with_usage, before("[DONE]"))),
    chat("a stream as JSON", media="application/json"),
    chat("a stream as text", media="text/plain"),
    chat("no media type", media=""),
    chat("an answer as text", whole=True, media="text/plain"),
    chat("no usage in a stream", events=every(with_usage, drop)),
    chat(
        "usage in each chunk",
        events=every(
            with_choices,
            lambda data: {**data, "usage": {"prompt_tokens": 1, "completion_tokens": 6, "total_tokens": 7}},
        ),
    ),
    chat(
        "usage with choices",
        events=every(with_usage, lambda data: {**data, "choices": [{"index": 0, "delta": {}, "finish_reason": None}]}),
    ),
    chat(
        "usage without choices, not asked for",
        case="usage-not-asked",
        events=every(
            done,
            before({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "reciter", "choices": []}),
        ),
    ),
    chat("a wrong sum", whole=True, whole_answer=put(3, "usage", "total_tokens")),
    chat("no sum", events=every(with_usage, lose("usage", "total_tokens"))),
    chat(
        "other prompt tokens each time",
        case="twice-the-same",
        columns="cost",
        whole=True,
        whole_answer=put(prompts_counted_together, "usage"),
    ),
    chat(
        "two choices",
        columns="text form",
        whole=True,
        whole_answer=put(lambda choices: [*choices, {**choices[0], "index": 1}], "choices"),
    ),
    chat("no empty line after an event", columns="text finish form", frame=lambda name, data: f"data: {data}\n"),
    chat(
        "lines that end at any separator",
        case="line-separators",
        columns="text",
        frame=lambda name, data: (
            "".join(f"data: {line}\n" for line in data.encode().decode("unicode_escape").splitlines()) + "\n"
        ),
    ),
    chat(
        "an error in the stream",
        columns="text finish form",
        events=first(lambda data: chunk(data) and "the" in str(data), put({"message": "out of memory"}, "error")),
    ),
]

COMPLETIONS = [
    completions("the object of chat", events=every(chunk, put("chat.completion.chunk", "object"))),
    completions(
        "no text",
        columns="text form",
        whole=True,
        whole_answer=put(
            lambda choice: {("content" if key == "text" else key): value for key, value in choice.items()}, "choices", 0
        ),
    ),
    completions(
        "deltas",
        columns="text form",
        events=every(
            with_choices,
            put(
                lambda choice: {
                    "index": 0,
                    "delta": {"content": choice["text"]},
                    **{key: value for key, value in choice.items() if key != "text"},
                },
                "choices",
                0,
            ),
        ),
    ),
    completions("no [DONE]", events=every(done, drop)),
    completions(
        "no finish reason", columns="finish form", whole=True, whole_answer=lose("choices", 0, "finish_reason")
    ),
]

DELTA, DONE_TEXT = typed("response.output_text.delta"), typed("response.output_text.done")
LAST = typed("response.completed")
RESPONSES = [
    responses("no created", events=every(typed("response.created"), drop)),
    responses("no number", events=every(chunk, lose("sequence_number"))),
    responses("each number 0", events=every(chunk, put(0, "sequence_number"))),
    responses("numbers from 1", events=every(chunk, put(lambda number: number + 1, "sequence_number"))),
    responses("a number left out", events=every(LAST, put(lambda number: number + 1, "sequence_number"))),
    responses("no item added", events=every(typed("response.output_item.added"), drop)),
    responses("no part added", events=every(typed("response.content_part.added"), drop)),
    responses("no text done", events=every(DONE_TEXT, drop)),
    responses("no part done", events=every(typed("response.content_part.done"), drop)),
    responses("no item done", events=every(typed("response.output_item.done"), drop)),
    responses("another text when done", events=every(DONE_TEXT, put("This", "text"))),
    responses("another text in the part", events=every(typed("response.content_part.done"), put("", "part", "text"))),
    responses("another text in the last event", events=every(LAST, put([], "response", "output"))),
    responses("deltas of another item", events=every(DELTA, put("item", "item_id"))),
    responses("an item whose id is a list", events=every(typed("response.output_item.added"), put([], "item", "id"))),
    responses("a delta is a number", columns="text", events=first(DELTA, put(5, "delta"))),
    responses("deltas without a place", events=every(DELTA, lose("output_index"))),
    responses(
        "all items at 0",
        case="think",
        events=every(lambda data: isinstance(data, dict) and "output_index" in data, put(0, "output_index")),
    ),
    responses(
        "an item done under another id", events=every(typed("response.output_item.done"), put("x", "item", "id"))
    ),
    responses("another id at the end", events=every(LAST, put("resp", "response", "id"))),
    responses("no usage at the end", events=every(LAST, put(None, "response", "usage"))),
    responses(
        "in progress at the end", columns="finish form", events=every(LAST, put("in_progress", "response", "status"))
    ),
    responses("no end", columns="finish form", events=every(LAST, drop)),
    responses(
        "completed at the limit",
        case="no-stop-limit",
        events=every(typed("response.incomplete"), put("response.completed", "type")),
    ),
    responses("no names", frame=lambda name, data: f"data: {data}\n\n"),
    responses(
        "chunks of chat",
        columns="text form",
        events=every(
            DELTA,
            lambda data: {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]},
        ),
    ),
    responses("the object of chat", whole=True, whole_answer=put("chat.completion", "object")),
    responses("no role", whole=True, whole_answer=lose("output", 0, "role")),
    responses("no annotations", whole=True, whole_answer=lose("output", 0, "content", 0, "annotations")),
    responses(
        "no reason for incomplete",
        columns="finish form",
        case="no-stop-limit",
        whole=True,
        whole_answer=put(None, "incomplete_details"),
    ),
    responses(
        "usage named as in chat",
        whole=True,
        columns="form",
        whole_answer=put(lambda usage: {"prompt_tokens": 1, "completion_tokens": 6, "total_tokens": 7}, "usage"),
    ),
]

DEFECTS = [*CHAT, *COMPLETIONS, *RESPONSES]
