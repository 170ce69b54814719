"""Ollama's chat and generate, with `stop_token_ids` and `stop_in_reasoning` among the options as an extension."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Any

from reply import MAX_TOKENS, Ask, Reply, chat

from stopscan.finish import to_ollama


class _Ollama:
    media_type = "application/x-ndjson"

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": message}

    async def whole(self, reply: Reply) -> dict[str, Any]:
        answer, reasoning = await reply.whole()
        return {**_head(reply), **self.content(answer, reasoning), **_tail(reply)}

    async def events(self, reply: Reply) -> AsyncIterator[str]:
        async for kind, text in reply:
            content = self.content(text, "") if kind == "answer" else self.content("", text)
            yield json.dumps({**_head(reply), **content, "done": False}) + "\n"
        yield json.dumps({**_head(reply), **self.content("", ""), **_tail(reply)}) + "\n"

    def content(self, answer: str, reasoning: str) -> dict[str, Any]:
        raise NotImplementedError


class Chat(_Ollama):
    path = "/api/chat"

    def read(self, body: dict[str, Any]) -> Ask:
        return _ask(body, chat(body.get("messages")))

    def content(self, answer: str, reasoning: str) -> dict[str, Any]:
        thinking = {"thinking": reasoning} if reasoning else {}
        return {"message": {"role": "assistant", "content": answer, **thinking}}


class Generate(_Ollama):
    path = "/api/generate"

    def read(self, body: dict[str, Any]) -> Ask:
        return _ask(body, chat([{"role": "user", "content": body.get("prompt")}], body.get("system")))

    def content(self, answer: str, reasoning: str) -> dict[str, Any]:
        return {"response": answer, **({"thinking": reasoning} if reasoning else {})}


def _ask(body: dict[str, Any], prompt: Any) -> Ask:
    options = body.get("options") or {}
    limit = options.get("num_predict", -1)
    return Ask(
        prompt,
        MAX_TOKENS if limit < 0 else limit,  # -1: no limit
        options.get("stop"),
        options.get("stop_token_ids"),
        stream=body.get("stream") is not False,  # unlike everybody else
        stop_in_reasoning=options.get("stop_in_reasoning") is True,
    )


def _head(reply: Reply) -> dict[str, Any]:
    return {"model": reply.model, "created_at": datetime.now(timezone.utc).isoformat()}


def _tail(reply: Reply) -> dict[str, Any]:
    nanoseconds = int((time.time() - reply.created) * 1e9)
    counts = {"prompt_eval_count": reply.prompt_tokens, "eval_count": reply.tokens, "total_duration": nanoseconds}
    return {**to_ollama(reply.finish), **counts}
