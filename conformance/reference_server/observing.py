"""What is said about requests: a line of JSON for each, and figures for Prometheus. And who may ask."""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import Callable
from typing import Any

from engine import Engine
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from reply import Reply
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("server.access")
OPEN = ("/health",)  # for whoever asks


class Metrics:
    def __init__(self, engine: Engine, paths: set[str]) -> None:
        self._paths = paths
        self._registry = CollectorRegistry()
        Gauge("rows", "Rows in the batch", registry=self._registry).set_function(lambda: engine.rows)
        self._requests = Counter("requests", "Requests", ["path", "status"], registry=self._registry)
        self._tokens = Counter("tokens", "Tokens", ["kind"], registry=self._registry)
        self._finishes = Counter("finishes", "Why answers ended", ["path", "reason"], registry=self._registry)
        self._first = Histogram(
            "time_to_first_token_seconds", "Until the first text", ["path"], registry=self._registry
        )

    def note(self, path: str, status: int, reply: Reply | None) -> None:
        known = path if path in self._paths else "other"
        self._requests.labels(known, status).inc()
        if reply is None:
            return
        self._tokens.labels("prompt").inc(reply.prompt_tokens)
        self._tokens.labels("generated").inc(reply.tokens)
        self._finishes.labels(known, reply.reason).inc()
        if reply.first is not None:
            self._first.labels(known).observe(reply.first)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Observed:
    """The app behind a key, if there is one; each request is noted when it is over, however it ends."""

    def __init__(self, app: ASGIApp, metrics: Metrics, key: str | None, refuse: Callable[[str], Response]) -> None:
        self._app = app
        self._metrics = metrics
        self._key = key and key.encode()
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun, status = time.perf_counter(), 499  # as nginx says: the client left before there was an answer
        scope.setdefault("state", {})

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        path = scope["path"]
        app = self._app if path in OPEN or self._may(Headers(scope=scope)) else self._refuse(path)
        try:
            await app(scope, receive, noted)
        finally:
            self._note(scope, status, time.perf_counter() - begun)

    def _may(self, headers: Headers) -> bool:
        if self._key is None:
            return True
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode("latin-1"), self._key)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        reply: Reply | None = scope["state"].get("reply")
        self._metrics.note(scope["path"], status, reply)
        line: dict[str, Any] = {"method": scope["method"], "path": scope["path"], "status": status}
        line["seconds"] = round(seconds, 4)
        if reply is not None:
            line |= {"prompt_tokens": reply.prompt_tokens, "tokens": reply.tokens, "finish": reply.reason}
        log.info(json.dumps(line))
