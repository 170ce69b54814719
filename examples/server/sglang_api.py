"""sglang's `/generate`. Each object of a stream has the whole text so far."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from reply import MAX_TOKENS, Ask, Reply, event

from stopscan.finish import to_sglang


class Generate:
    path = "/generate"
    media_type = "text/event-stream"

    def read(self, body: dict[str, Any]) -> Ask:
        sampling = body.get("sampling_params") or {}
        return Ask(
            body.get("text") or "",
            sampling.get("max_new_tokens", MAX_TOKENS),
            sampling.get("stop"),
            sampling.get("stop_token_ids"),
            stream=body.get("stream") is True,
            stop_in_reasoning=sampling.get("stop_in_reasoning") is True,
            apart=False,
        )

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"message": message}}

    async def whole(self, reply: Reply) -> dict[str, Any]:
        answer, _ = await reply.whole()
        return {"text": answer, "meta_info": {**_counts(reply), **to_sglang(reply.finish)}}

    async def events(self, reply: Reply) -> AsyncIterator[str]:
        answer = ""
        async for _, text in reply:
            answer += text
            yield event({"text": answer, "meta_info": {**_counts(reply), "finish_reason": None}})
        yield event({"text": answer, "meta_info": {**_counts(reply), **to_sglang(reply.finish)}})
        yield "data: [DONE]\n\n"


def _counts(reply: Reply) -> dict[str, Any]:
    return {"id": reply.id, "prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.tokens}
