"""Around each function of sglang that stopscan stands around: no exception of ours goes past here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from http import HTTPStatus
from typing import Any

from stopscan.engines import Failures

# A hook is a generator. What is before its one `yield` comes before sglang's function, and gets the same arguments. It
# may yield others. `yield` gives the result, and what the hook returns takes its place; `None` leaves it.
Hook = Callable[..., Generator[tuple[Any, ...] | None, Any, Any]]


class Refused(ValueError):  # noqa: N818 - an answer, which sglang makes a 400 of
    """Says what is wrong with a request. No fault of ours, and the only exception that leaves a hook."""

    def __init__(self, words: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(words)
        self.status = status


class Guard:
    """Runs hooks. If one fails, sglang's function runs as if there were no hook."""

    def __init__(self, failures: Failures) -> None:
        self.failures = failures

    def around(self, hook: Hook) -> Callable[..., Any]:
        """Returns what sglang's registry takes for a hook of the type ``AROUND``."""

        def guarded(original: Callable[..., Any], *args: Any, **options: Any) -> Any:
            try:
                steps = hook(*args, **options)
                changed = next(steps)
            except Refused:
                raise
            except BaseException as error:
                self._note(error)
                return original(*args, **options)
            result = original(*(args if changed is None else changed), **options)
            try:
                steps.send(result)
            except StopIteration as done:
                return result if done.value is None else done.value
            except BaseException as error:
                self._note(error)
            return result

        return guarded

    async def stream(
        self, made: AsyncIterator[str], each: Callable[[str], str] = str, last: Callable[[int], str] = lambda _: ""
    ) -> AsyncIterator[str]:
        """Gives the items of a stream, as ``each`` changes them, and then ``last`` of their number."""
        count = 0
        async for item in made:
            count += 1
            yield self._tried(item, each, item)
        if end := self._tried("", last, count):
            yield end

    def _tried(self, otherwise: str, change: Callable[[Any], str], value: Any) -> str:
        try:
            return change(value)
        except BaseException as error:
            self._note(error)
            return otherwise

    def _note(self, error: BaseException) -> None:
        self.failures.note(error, "goes on as in sglang")
