"""Sources of deltas that count the calls of `close`. A test can choose how many of these calls fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

MARKERS = {"answer": {"<think>": "answer"}}


class Source:
    """An iterator that counts how often it was closed. The first `failures` calls of `close` fail."""

    def __init__(self, *deltas: str, failures: int = 0) -> None:
        self.deltas = iter(deltas)
        self.failures = failures
        self.closed = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self.deltas)

    def close(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("cannot close")
        self.closed += 1


class AsyncSource(Source):
    def __aiter__(self) -> AsyncIterator[str]:
        return self  # type: ignore[return-value]

    async def __anext__(self) -> str:
        for delta in self.deltas:
            return delta
        raise StopAsyncIteration

    async def aclose(self) -> None:
        super().close()


class ApiStream(AsyncSource):
    """A source like the streams of the official clients, which have an async method `close` but no `aclose`."""

    aclose = None  # type: ignore[assignment]

    async def close(self) -> None:  # type: ignore[override]
        super().close()


def texts(items: list[Any]) -> str:
    return "".join(item if isinstance(item, str) else item[1] for item in items)
