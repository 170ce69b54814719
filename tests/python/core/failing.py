"""Makes each memory allocation of Python fail in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

T = TypeVar("T")


def failing(start: Callable[[], T], call: Callable[[T], object]) -> Iterator[tuple[T, object]]:
    """Calls `call(start())` while allocation 0 fails, then allocation 1, …, until 50 calls in a row succeed."""
    succeeded = 0
    for number in range(2_000):
        made = start()
        outcome = without(number, lambda made=made: call(made))
        yield made, outcome
        succeeded = 0 if isinstance(outcome, BaseException) else succeeded + 1
        if succeeded == 50:
            return
    pytest.fail("some allocation always failed")


def without(number: int, call: Callable[[], object]) -> object:
    """Returns what `call` returns or raises while its allocation `number`, counted from 0, fails."""
    hooks = pytest.importorskip("_testcapi")
    hooks.set_nomemory(number, number + 1)
    try:
        return call()
    except BaseException as error:
        return error
    finally:
        hooks.remove_mem_hooks()
