"""Helpers that let one coroutine serve sync and async callers.

The code for both is a coroutine. For an async caller it may wait. For a sync caller nothing in it waits, so it runs to
its end in one step.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from inspect import isawaitable
from typing import Any


def run(coroutine: Any) -> Any:
    """Runs a coroutine that never waits, and returns its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("the source is async: use AsyncStopTransport or ascan_events")


async def settled(value: Any) -> Any:
    """Returns the value, or its result if it is awaitable."""
    return await value if isawaitable(value) else value


async def called(function: Callable[[], Any]) -> Any:
    """Returns the result of a function that may be sync or async."""
    return await settled(function())


def at_once(step: Callable[[], Any]) -> Callable[[], Any]:
    """Returns an ``__anext__`` for an async iterator that never waits. It calls ``step``, the ``__next__`` of a sync
    iterator."""

    async def astep() -> Any:
        try:
            return step()
        except StopIteration:
            raise StopAsyncIteration from None

    return astep


def each(pieces: AsyncGenerator[Any, None]) -> Iterator[Any]:
    """Yields the items of an async generator that never waits."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)  # so that an event loop in this thread does not later close the generator
    try:
        step = pieces.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)
    try:
        while True:
            yield run(step)
            step = pieces.__anext__()
    except StopAsyncIteration:
        pass
    finally:
        run(pieces.aclose())
