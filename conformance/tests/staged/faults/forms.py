"""How an answer is written: what public reports say of the forms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from staged.edits import every, lose, put, typed, with_usage
from staged.faults.fault import Asked, fault

AT_0 = Asked("alphabet", stop=["a"])
CUT = Asked(limit=3)


def items(status: str) -> Any:
    """Of a response that is incomplete."""

    def change(response: Any) -> Any:
        if response["status"] != "incomplete":
            return response
        return {**response, "output": [{**one, "status": status} for one in response["output"]]}

    return change


def complete_details(response: Any) -> Any:
    """A status that says that it was cut, and nothing that says by what."""
    return {**response, "incomplete_details": None} if response["status"] == "incomplete" else response


def empty_block(data: Any) -> Any:
    return {**data, "content": data["content"] or [{"type": "text", "text": ""}]}


async def empty_block_in_a_stream(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    begun = False
    async for data in source:
        begun = begun or data["type"] == "content_block_start"
        if data["type"] == "message_delta" and not begun:
            yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            yield {"type": "content_block_stop", "index": 0}
        yield data


async def text_after_the_reason(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """The last text comes behind the chunk that says why the answer ended."""
    held: Any = None
    async for data in source:
        choices = data.get("choices") if isinstance(data, dict) else None
        if choices and choices[0]["finish_reason"] is None and choices[0]["delta"].get("content"):
            if held is not None:
                yield held
            held = data
            continue
        yield data
        if choices and choices[0]["finish_reason"] is not None and held is not None:
            yield held
            held = None


async def usage_before_the_reason(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Counts that stand before the last text, and so before the end."""
    kept = [data async for data in source]
    counts = [data for data in kept if isinstance(data, dict) and data.get("usage")]
    for data in [*counts, *(one for one in kept if one not in counts)]:
        yield data


async def two_answers_of_a_block(source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Each delta is a block of its own, as if it began anew."""
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


FAULTS = [
    fault("items of an incomplete response are complete", "documented", "openai-responses", CUT,
          whole_answer=items("completed")),
    fault("items of an incomplete response are in progress", "documented", "openai-responses", CUT,
          whole_answer=items("in_progress")),
    fault("items of an incomplete response are complete in a stream", "documented", "openai-responses",
          Asked(limit=3, stream=True), events=every(typed("response.incomplete"), put(items("completed"), "response"))),
    fault("a cut response ends as a complete one", "documented", "openai-responses", Asked(limit=3, stream=True),
          events=every(typed("response.incomplete"), put("response.completed", "type"))),
    fault("no usage in an incomplete response", "documented", "openai-responses", Asked(limit=3, stream=True),
          events=every(typed("response.incomplete"), put(None, "response", "usage"))),
    fault("nothing says why a response is incomplete", "documented", "openai-responses", CUT,
          whole_answer=complete_details),
    fault("no total in a stream's usage", "documented", "openai-chat", Asked(stream=True),
          events=every(with_usage, lose("usage", "total_tokens"))),
    fault("no usage in message_start", "documented", "anthropic", Asked(stream=True),
          events=every(typed("message_start"), lose("message", "usage"))),
    fault("no prompt in the usage of message_start", "documented", "anthropic", Asked(stream=True),
          events=every(typed("message_start"), lose("message", "usage", "input_tokens"))),
    fault("an empty block where a stop comes first", "documented", "anthropic", AT_0, whole_answer=empty_block),
    fault("an empty block where a stop comes first in a stream", "documented", "anthropic",
          Asked("alphabet", stop=["a"], stream=True), events=empty_block_in_a_stream),
    fault("the last text comes after the reason", "documented", "openai-chat", Asked(stream=True),
          events=text_after_the_reason),
    fault("usage comes before the text", "documented", "openai-chat", Asked(stream=True),
          events=usage_before_the_reason),
    fault("deltas belong to another block", "documented", "anthropic", Asked("count", stream=True),
          events=two_answers_of_a_block),
]  # fmt: skip
