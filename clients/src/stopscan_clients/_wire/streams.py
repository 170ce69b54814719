"""The body of an answer on its way to the client, as httpx and httpx2 read it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

from stopscan_clients._steps import Steps, arun, run
from stopscan_clients._wire.body import Body
from stopscan_clients._wire.h2 import shutting


def package_of(request: Any) -> Any:
    """httpx or httpx2, whichever the request is of: what answers it must be of the same."""
    for cls in type(request).__mro__:
        package = cls.__module__.partition(".")[0]
        if package.startswith("httpx"):
            return sys.modules[package]
    raise TypeError(f"{type(request).__name__} is no request of httpx or httpx2")


class Stream:
    """A body on its way. The package's ``Response`` asks for a stream of its own class: ``of_package`` makes that."""

    def __init__(self, response: Any, body: Body, content: bytes | None) -> None:
        self._response, self._body, self._content = response, body, content
        self.whole = content is not None
        self.failed = body.failed

    def __iter__(self) -> Iterator[bytes]:
        body, out = self._body, self._content
        if out is None:
            source = iter(self._response.stream if body.plain else self._response.iter_bytes())
            while True:
                try:
                    data = next(source, None)
                except Exception:
                    yield body.broken()
                    raise
                out = body.end() if data is None else body.feed(data)
                if data is None or body.ended:
                    break
                if out is data and not body.matches:
                    yield data  # most events
                    continue
                yield from body.told(out)
            if body.ended:
                run(self._shut("close"))
        yield from body.told(out)

    def _shut(self, close: str) -> Steps:
        try:
            yield from shutting(self._response, close)
        except Exception as error:  # the closing events come first
            self._body.error = self._body.error or error

    def close(self) -> None:
        # httpx2 closes the response with its iterator, and that sends no reset.
        run(shutting(self._response, "close", self._body.over))


class AsyncStream(Stream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        body, out = self._body, self._content
        if out is None:
            source = aiter(self._response.stream if body.plain else self._response.aiter_bytes())
            while True:
                try:
                    data = await anext(source, None)
                except Exception:
                    yield body.broken()
                    raise
                out = body.end() if data is None else body.feed(data)
                if data is None or body.ended:
                    break
                if out is data and not body.matches:
                    yield data
                    continue
                for piece in body.told(out):
                    yield piece
            if body.ended:
                await arun(self._shut("aclose"))
        for piece in body.told(out):
            yield piece

    async def aclose(self) -> None:
        await arun(shutting(self._response, "aclose", self._body.over))


@cache
def of_package(stream: Any, base: Any) -> Any:
    return type("Stream", (stream, base), {})
