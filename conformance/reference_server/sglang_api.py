"""sglang's `/generate`. Each object of a stream has the whole text so far."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from api import Api, event
from fields import SGLANG, SGLANG_SAMPLING, Limit, Many, Stopping, Streamed
from parts import said
from reply import Ask, Reply
from sse_starlette import ServerSentEvent

from stopscan.finish import to_sglang


class Sampling(Stopping):
    taken = SGLANG_SAMPLING
    max_new_tokens: Limit | None = None


class GenerateBody(Streamed):
    taken = SGLANG
    text: str = ""
    input_ids: Many[int] | None = None
    sampling_params: Sampling | None = None

    def ask(self) -> Ask:
        sampling = self.sampling_params or Sampling()
        prompt = self.text if self.input_ids is None else self.input_ids
        return Ask(prompt, sampling.max_new_tokens, sampling, stream=bool(self.stream), apart=False)


class Generate(Api):
    path = "/generate"
    body = GenerateBody

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"message": message}}

    def broken(self, reply: Reply, message: str) -> list[ServerSentEvent]:
        return [*super().broken(reply, message), ServerSentEvent("[DONE]")]

    async def whole(self, reply: Reply) -> dict[str, Any]:
        return {"text": said(await reply.whole()), "meta_info": {**_counts(reply), **to_sglang(reply.finish)}}

    async def events(self, reply: Reply) -> AsyncIterator[ServerSentEvent]:
        answer = ""
        async for _, text, _ in reply:
            answer += text
            yield event({"text": answer, "meta_info": {**_counts(reply), "finish_reason": None}})
        yield event({"text": answer, "meta_info": {**_counts(reply), **to_sglang(reply.finish)}})
        yield ServerSentEvent("[DONE]")


def _counts(reply: Reply) -> dict[str, Any]:
    return {"id": reply.id, "prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.tokens}
