"""Fake streams that can be closed, for tests without a network."""

from __future__ import annotations

import asyncio
from typing import Any

import wire


def texts(events: Any) -> list[str | None]:
    return [event["choices"][0]["delta"].get("content") for event in events]


def chunks(*deltas: str) -> list[Any]:
    return [wire.chat_chunk([wire.chat_choice(content=delta)]) for delta in deltas]


class Source:
    """A stream of events that counts how often it was closed. The first ``failures`` calls of ``close`` raise."""

    def __init__(self, *events: Any, failures: int = 0, failure: BaseException | None = None) -> None:
        self.events = iter(events)
        self.failures = failures
        self.failure = failure or OSError("cannot be closed")
        self.closed = 0

    def __iter__(self) -> Source:
        return self

    def __next__(self) -> Any:
        event = next(self.events)
        if isinstance(event, BaseException):
            raise event
        return event

    def close(self) -> None:
        if self.failures:
            self.failures -= 1
            raise self.failure
        self.closed += 1


class AsyncSource(Source):
    def __init__(self, *events: Any, failures: int = 0, slow_close: bool = False) -> None:
        super().__init__(*events, failures=failures)
        self.slow_close = slow_close

    def __aiter__(self) -> AsyncSource:
        return self

    async def __anext__(self) -> Any:
        await asyncio.sleep(0)
        try:
            event = super().__next__()
        except StopIteration:
            raise StopAsyncIteration from None
        return await event if asyncio.isfuture(event) else event

    async def close(self) -> None:  # type: ignore[override]
        if self.slow_close:
            self.slow_close = False
            await asyncio.sleep(30)
        super().close()
