from __future__ import annotations

import logging
from asyncio import CancelledError
from collections import Counter

# Exceptions that are not faults of the adapter. The hooks of an adapter also catch them, because only
# `except BaseException` catches a panic in Rust code. `note` then raises them again.
NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError)


class Failures:
    """Counts and logs the faults of an adapter in one process. A hook is a place in the engine where code of the
    adapter runs.

    Pass each fault in a hook to ``note``. Do not pass the error of a client, such as a ``ValueError`` of
    ``read_options``. After ``LIMIT`` faults in one hook, ``off`` is true. From then on, the adapter must leave new
    requests to the engine, and refuse a request whose stops the engine does not support.

    >>> failures = Failures(logging.getLogger("engine.stopscan"))
    >>> try:
    ...     text = row.feed(token_id)
    ... except BaseException as error:
    ...     failures.note(error, "was left to the engine")
    """

    LIMIT = 3
    # If true, `note` raises each fault. Tests set this, because after a fault the engine itself finds the stops, and a
    # test would not see the fault.
    strict = False

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self.count: int = 0
        self.off: bool = False
        self._counts: Counter[str] = Counter()

    def gone(self, hook: str) -> bool:
        """Returns whether there were ``LIMIT`` faults in ``hook``."""
        return self._counts[hook] >= self.LIMIT

    def note(self, error: BaseException, outcome: str, hook: str = "", *, alone: bool = False) -> None:
        """Counts a fault in ``hook``. Logs the first fault of all, and the fault with which ``hook`` reaches ``LIMIT``.

        After ``LIMIT`` faults in ``hook``, ``off`` is true, which ends all work of the adapter in new requests. With
        ``alone=True``, ``off`` does not change, and only ``gone(hook)`` is true. The adapter must then no longer run
        this hook. ``outcome`` says what happens to the request, such as "was left to the engine".

        Raises ``error`` if it is not a fault of the adapter, such as a ``KeyboardInterrupt``.
        """
        if isinstance(error, NOT_OURS) or self.strict:
            raise error
        self.count += 1
        self._counts[hook] += 1
        if self.count == 1:
            words = "stopscan failed in a request, which %s. Please report this with the lines below."
            self._logger.error(words, outcome, exc_info=error)
        if self._counts[hook] == self.LIMIT:
            self.off = self.off or not alone
            what = f"no longer runs {hook}" if alone else "is off for new requests"
            self._logger.error("stopscan failed %d times and %s", self.LIMIT, what)
