"""OpenAI's chat and text completions, with the extensions of the engines: `stop_token_ids`, `matched_stop`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from reply import MAX_TOKENS, Ask, Reply, chat, event

from stopscan.finish import to_openai


class Chat:
    path = "/v1/chat/completions"
    media_type = "text/event-stream"

    def read(self, body: dict[str, Any]) -> Ask:
        return _ask(body, chat(body.get("messages")))

    def error(self, status: int, message: str) -> dict[str, Any]:
        return error(status, message)

    async def whole(self, reply: Reply) -> dict[str, Any]:
        answer, reasoning = await reply.whole()
        message = {"role": "assistant", "content": answer, **({"reasoning_content": reasoning} if reasoning else {})}
        choice = {"index": 0, "message": message, "logprobs": None, **to_openai(reply.finish)}
        return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[str]:
        head = _head(reply, "chat.completion.chunk")

        def chunk(delta: dict[str, Any], **finish: Any) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": None, **finish}
            return event({**head, "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        async for kind, text in reply:
            yield chunk({"content" if kind == "answer" else "reasoning_content": text})
        yield chunk({}, **to_openai(reply.finish))
        yield event({**head, "choices": [], "usage": _usage(reply)})
        yield "data: [DONE]\n\n"


class Completions:
    path = "/v1/completions"
    media_type = "text/event-stream"

    def read(self, body: dict[str, Any]) -> Ask:
        return _ask(body, body.get("prompt"), apart=False)

    def error(self, status: int, message: str) -> dict[str, Any]:
        return error(status, message)

    async def whole(self, reply: Reply) -> dict[str, Any]:
        answer, _ = await reply.whole()
        choice = {"index": 0, "text": answer, "logprobs": None, **to_openai(reply.finish)}
        return {**_head(reply, "text_completion"), "choices": [choice], "usage": _usage(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[str]:
        head = _head(reply, "text_completion")

        def chunk(text: str, **finish: Any) -> str:
            choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": None, **finish}
            return event({**head, "choices": [choice]})

        async for _, text in reply:
            yield chunk(text)
        yield chunk("", **to_openai(reply.finish))
        yield event({**head, "choices": [], "usage": _usage(reply)})
        yield "data: [DONE]\n\n"


def error(status: int, message: str) -> dict[str, Any]:
    """The form of an error in all of OpenAI's APIs."""
    code = "model_not_found" if status == 404 else None
    kind = "server_error" if status == 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _ask(body: dict[str, Any], prompt: Any, *, apart: bool = True) -> Ask:
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return Ask(
        prompt,
        MAX_TOKENS if limit is None else limit,
        body.get("stop"),
        body.get("stop_token_ids"),
        stream=body.get("stream") is True,
        stop_in_reasoning=body.get("stop_in_reasoning") is True,
        apart=apart,
    )


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": reply.id, "object": kind, "created": int(reply.created), "model": reply.model}


def _usage(reply: Reply) -> dict[str, int]:
    prompt, tokens = reply.prompt_tokens, reply.tokens
    return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
