"""Anthropic's messages, with `stop_token_ids` as an extension."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from reply import Ask, Reply, chat, event

from stopscan.finish import to_anthropic

EMPTY = {
    "answer": {"type": "text", "text": ""},
    "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
}
UNENDED = {"stop_reason": None, "stop_sequence": None}


class Messages:
    path = "/v1/messages"
    media_type = "text/event-stream"

    def read(self, body: dict[str, Any]) -> Ask:
        if "max_tokens" not in body:
            raise ValueError("max_tokens: Field required")
        return Ask(
            chat(body.get("messages"), body.get("system")),
            body["max_tokens"],
            body.get("stop_sequences"),
            body.get("stop_token_ids"),
            stream=body.get("stream") is True,
            stop_in_reasoning=body.get("stop_in_reasoning") is True,
        )

    def error(self, status: int, message: str) -> dict[str, Any]:
        kinds = {400: "invalid_request_error", 404: "not_found_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}

    async def whole(self, reply: Reply) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = []
        async for kind, text in reply:
            name = "text" if kind == "answer" else "thinking"
            if not blocks or blocks[-1]["type"] != name:
                blocks.append(dict(EMPTY[kind]))
            blocks[-1][name] += text
        return {
            **_message(reply),
            "content": blocks,
            **to_anthropic(reply.finish),
            "usage": _usage(reply, reply.tokens),
        }

    async def events(self, reply: Reply) -> AsyncIterator[str]:
        def tell(kind: str, **data: Any) -> str:
            return event({"type": kind, **data}, named=True)

        yield tell("message_start", message={**_message(reply), "content": [], **UNENDED, "usage": _usage(reply, 0)})
        index, last = -1, None
        async for kind, text in reply:
            if kind != last:
                if last is not None:
                    yield tell("content_block_stop", index=index)
                index, last = index + 1, kind
                yield tell("content_block_start", index=index, content_block=EMPTY[kind])
            name = "text" if kind == "answer" else "thinking"
            yield tell("content_block_delta", index=index, delta={"type": f"{name}_delta", name: text})
        if last is not None:
            yield tell("content_block_stop", index=index)
        yield tell("message_delta", delta=to_anthropic(reply.finish), usage=_usage(reply, reply.tokens))
        yield tell("message_stop")


def _message(reply: Reply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _usage(reply: Reply, tokens: int) -> dict[str, int]:
    return {"input_tokens": reply.prompt_tokens, "output_tokens": tokens}
