"""Steps that are to be waited for, said once for sync and async: a generator yields what is to be waited for, and is sent
what came of it."""

from __future__ import annotations

from collections.abc import Generator
from inspect import isawaitable
from typing import Any, TypeAlias

Steps: TypeAlias = Generator[Any, Any, Any]


def run(steps: Steps) -> Any:
    """Returns what the steps return, which wait for nothing."""
    value = None
    try:
        while True:
            value = steps.send(value)
    except StopIteration as end:
        return end.value


async def arun(steps: Steps) -> Any:
    """Returns what the steps return, each of which is awaited if it can be."""
    try:
        step = steps.send(None)
        while True:
            try:
                value = await step if isawaitable(step) else step
            except BaseException as error:  # a cancellation, too, still closes what is to be closed
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration as end:
        return end.value
