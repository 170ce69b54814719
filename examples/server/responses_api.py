"""OpenAI's Responses, with `stop` and `stop_token_ids` as an extension: the API has no stops of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

from channels import Kind
from openai_api import error
from reply import MAX_TOKENS, Ask, Reply, chat, event

from stopscan.finish import to_responses

PARTS = {"answer": "output_text", "reasoning": "reasoning_text"}


class Responses:
    path = "/v1/responses"
    media_type = "text/event-stream"

    def read(self, body: dict[str, Any]) -> Ask:
        given, limit = body.get("input"), body.get("max_output_tokens")
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return Ask(
            chat(messages, body.get("instructions")),
            MAX_TOKENS if limit is None else limit,
            body.get("stop"),
            body.get("stop_token_ids"),
            stream=body.get("stream") is True,
            stop_in_reasoning=body.get("stop_in_reasoning") is True,
        )

    def error(self, status: int, message: str) -> dict[str, Any]:
        return error(status, message)

    async def whole(self, reply: Reply) -> dict[str, Any]:
        texts: list[tuple[Kind, str]] = []
        async for kind, text in reply:
            if texts and texts[-1][0] == kind:
                texts[-1] = (kind, texts[-1][1] + text)
            else:
                texts.append((kind, text))
        status = to_responses(reply.finish)["status"]
        return _ended(reply, [_item(reply, index, kind, text, status) for index, (kind, text) in enumerate(texts)])

    async def events(self, reply: Reply) -> AsyncIterator[str]:
        numbers = count()

        def tell(kind: str, **data: Any) -> str:
            return event({"type": f"response.{kind}", "sequence_number": next(numbers), **data}, named=True)

        yield tell("created", response=_response(reply, "in_progress"))
        yield tell("in_progress", response=_response(reply, "in_progress"))
        items: list[dict[str, Any]] = []
        last: Kind | None = None
        text = ""
        async for kind, delta in reply:
            if kind != last:
                if last is not None:
                    items.append(_item(reply, len(items), last, text, "completed"))
                    for done in _done(items):
                        yield tell(**done)
                last, text = kind, ""
                for begun in _begun(_item(reply, len(items), kind, "", "in_progress"), len(items)):
                    yield tell(**begun)
            text += delta
            yield tell(f"{PARTS[kind]}.delta", **_place(reply, len(items), kind), delta=delta)
        if last is not None:
            items.append(_item(reply, len(items), last, text, to_responses(reply.finish)["status"]))
            for done in _done(items):
                yield tell(**done)
        response = _ended(reply, items)
        yield tell(response["status"], response=response)


def _begun(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    part = item.pop("content")[0]
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    return [
        {"kind": "output_item.added", "output_index": index, "item": {**item, "content": []}},
        {"kind": "content_part.added", **place, "part": part},
    ]


def _done(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    item, index = items[-1], len(items) - 1
    part = item["content"][0]
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    logprobs = {"logprobs": []} if part["type"] == "output_text" else {}
    return [
        {"kind": f"{part['type']}.done", **place, **logprobs, "text": part["text"]},
        {"kind": "content_part.done", **place, "part": part},
        {"kind": "output_item.done", "output_index": index, "item": item},
    ]


def _place(reply: Reply, index: int, kind: Kind) -> dict[str, Any]:
    place = {"item_id": f"item_{reply.id}_{index}", "output_index": index, "content_index": 0}
    return place | {"logprobs": []} if kind == "answer" else place


def _item(reply: Reply, index: int, kind: Kind, text: str, status: str) -> dict[str, Any]:
    item = {"id": f"item_{reply.id}_{index}", "status": status}
    if kind == "reasoning":
        return {**item, "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {**item, "type": "message", "role": "assistant", "content": [part]}


def _response(reply: Reply, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": reply.created,
        "model": reply.model,
        "status": status,
        "incomplete_details": None,
        "error": None,
        "output": [],
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
        "usage": None,
    }


def _ended(reply: Reply, items: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens + reply.tokens,
    }
    return {**_response(reply, ""), **to_responses(reply.finish), "output": items, "usage": usage}
