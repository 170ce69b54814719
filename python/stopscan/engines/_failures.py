from __future__ import annotations

import logging
from asyncio import CancelledError

# Not faults of ours. A panic of Rust is a BaseException, so `except Exception` would let it through to the engine.
NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError)


class Failures:
    """Counts the faults of an adapter in one process, and logs them. After ``LIMIT`` faults it is ``off``: leave new
    requests to the engine then, and refuse what the engine cannot keep.

    Only faults of the adapter itself are for ``note``. What a client sent is a ``ValueError`` of ``read_options``.

    >>> failures = Failures(logging.getLogger("engine.stopscan"))
    >>> try:
    ...     text = row.feed(token_id)
    ... except BaseException as error:
    ...     failures.note(error, "was left to the engine")
    """

    LIMIT = 3
    # Tests set it, because a way back to the engine hides faults.
    strict = False

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self.count: int = 0

    @property
    def off(self) -> bool:
        """Whether there were ``LIMIT`` faults."""
        return self.count >= self.LIMIT

    def note(self, error: BaseException, outcome: str) -> None:
        """Counts a fault, and logs the first and the last. ``outcome`` says what becomes of the request.

        Raises ``error`` if it is none of ours, such as a ``KeyboardInterrupt``.
        """
        if isinstance(error, NOT_OURS) or self.strict:
            raise error
        self.count += 1
        if self.count == 1:
            words = "stopscan failed in a request, which %s. Please report this with the lines below."
            self._logger.error(words, outcome, exc_info=error)
        if self.count == self.LIMIT:
            self._logger.error("stopscan failed in %d requests and is off for new requests", self.count)
