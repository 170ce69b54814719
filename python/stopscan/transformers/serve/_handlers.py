from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi.responses import JSONResponse, StreamingResponse

from stopscan.transformers.serve._request import Asked, Defaults, current, refusing


def exact(handler: type[Any], defaults: Defaults, *, ends_with_done: bool) -> type[Any]:
    """A subclass of one of transformers' handlers whose requests have exact stops.

    OpenAI's streams of choices end with a ``[DONE]``, which transformers does not send.
    """

    class Exact(handler):
        async def handle_request(self, body: dict[str, Any], request_id: str) -> Any:
            with refusing():
                current.set(Asked.take(body, defaults))
            return await super().handle_request(body, request_id)

        def _streaming(self, *args: Any, **options: Any) -> StreamingResponse:
            reply = super()._streaming(*args, **options)
            if ends_with_done:
                reply.body_iterator = _with_done(reply.body_iterator)
            return reply

        async def _non_streaming(self, *args: Any, **options: Any) -> JSONResponse:
            reply = await super()._non_streaming(*args, **options)
            answer, asked = json.loads(bytes(reply.body)), current.get()
            asked.name(answer)
            for choice in answer.get("choices", [answer]):
                asked.end(choice)
            if answer.get("usage"):
                asked.count_reasoning(answer["usage"])
            return JSONResponse(answer)

    return Exact


async def _with_done(events: AsyncGenerator[str, None]) -> AsyncIterator[str]:
    # Closed with this one: that a client has gone ends its generation.
    async with aclosing(events):
        async for event in events:
            yield event
    yield "data: [DONE]\n\n"
