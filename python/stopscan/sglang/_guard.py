"""``Guard`` runs the hooks around functions of sglang, so that no failure of stopscan reaches sglang."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from http import HTTPStatus
from typing import Any

from stopscan.engines import Failures

# A hook is a generator with one `yield`, called with the arguments of a function of sglang. Before that function runs,
# the hook may yield other arguments for it. After the function has returned, the `yield` gives the hook the result. The
# hook may return another result, or `None` to keep this one.
Hook = Callable[..., Generator[tuple[Any, ...] | None, Any, Any]]


class Refused(ValueError):  # noqa: N818 - sglang answers it with a 400
    """Raised for a wrong request, with a message for the client. No other exception of a hook reaches sglang."""

    def __init__(self, words: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(words)
        self.status = status


class Guard:
    """Runs a hook around a function of sglang. If the hook fails, notes the failure, and runs the function without the
    hook. Repeated failures switch off all of stopscan, or only this hook if ``alone`` is true."""

    def __init__(self, failures: Failures, name: str = "", *, alone: bool = False) -> None:
        self._failures, self._name, self._alone = failures, name, alone

    def around(self, hook: Hook) -> Callable[..., Any]:
        """Returns ``hook`` in the form of sglang's type ``AROUND``: a function that itself calls sglang's function."""

        def guarded(original: Callable[..., Any], *args: Any, **options: Any) -> Any:
            if self._alone and self._failures.gone(self._name):
                return original(*args, **options)
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
        """Yields the items of the stream ``made``, each changed by the function ``each``. At the end calls the function
        ``last`` with the count of items, and yields the text that ``last`` returns, unless it is empty."""
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
        self._failures.note(error, "goes on without stopscan", self._name, alone=self._alone)
