"""A server in memory: an httpx transport that answers requests without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
import wire
from replay import sse

from stopscan_clients import StopTransport

CHAT = "/v1/chat/completions"


class Server:
    """Answers each request with the pieces of a body, and keeps the requests."""

    def __init__(self, package: Any, pieces: Iterable[bytes], media: str = "text/event-stream", **options: Any) -> None:
        self.package, self.pieces, self.media = package, pieces, media
        self.status: Callable[[Any], int] = options.get("status", lambda body: 200)
        self.headers = options.get("headers", {})
        self.requests: list[Any] = []
        self.sent = 0
        self.closed = 0
        self.close_error: Exception | None = None

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]

    def handle_request(self, request: Any) -> Any:
        server = self
        request.read()
        self.requests.append(request)

        class Stream(self.package.SyncByteStream):  # type: ignore[misc, name-defined]
            def __iter__(self) -> Iterator[bytes]:
                for piece in server.pieces:
                    server.sent += 1
                    yield piece

            def close(self) -> None:
                server.closed += 1
                if server.close_error is not None:
                    raise server.close_error

        headers = {"content-type": self.media, **self.headers}
        return self.package.Response(self.status(request), headers=headers, stream=Stream())

    def close(self) -> None:
        pass


def post(server: Server, body: Any, path: str = CHAT, *stop: Any, headers: Any = None, **options: Any) -> Any:
    client = server.package.Client(transport=StopTransport(*stop, transport=server, **options))
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(f"http://server{path}", content=content, headers=headers)


def events(*texts: str) -> list[bytes]:
    return [*map(sse, wire.chat(texts)), b"data: [DONE]\n\n"]


def read_all(client: Any, seen: list[bytes]) -> None:
    with client.stream("POST", f"http://server{CHAT}", json={"stream": True}) as answer:
        for piece in answer.iter_raw():
            seen.append(piece)


def text_in(body: bytes) -> str:
    parsed = [json.loads(part[6:]) for part in body.split(b"\n\n") if part.startswith(b"data: {")]
    return "".join(choice["delta"].get("content") or "" for event in parsed for choice in event["choices"])


packages = pytest.mark.parametrize("package", [httpx, httpx2], ids=["httpx", "httpx2"])
