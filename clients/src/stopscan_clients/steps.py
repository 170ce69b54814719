"""Sync and async, written once. What waits for something is a coroutine. For a sync caller nothing in it has to be
awaited, so it runs to its end in one step."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from inspect import isawaitable
from typing import Any


def run(coroutine: Any) -> Any:
    """Returns what the coroutine returns, which waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a sync call has to wait for something async")


async def settled(value: Any) -> Any:
    """Returns the value, awaited if it can be."""
    return await value if isawaitable(value) else value


def at_once(step: Callable[[], Any]) -> Callable[[], Any]:
    """Returns the ``__anext__`` of a sync iterator with this ``__next__``."""

    async def astep() -> Any:
        try:
            return step()
        except StopIteration:
            raise StopAsyncIteration from None

    return astep


def each(pieces: AsyncGenerator[Any, None]) -> Iterator[Any]:
    """Yields what an async generator yields, which waits for nothing."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)  # an event loop of this thread would close the generator when it ends
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
