from __future__ import annotations

import logging
from asyncio import CancelledError
from typing import ClassVar

# Not ours. A panic of Rust is a BaseException, so that `except Exception` would let it through to the engine's loop.
NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError)


class Circuit:
    """The failures of stopscan in one process. After ``LIMIT`` of them, new requests stay with the engine."""

    LIMIT = 3
    # Tests set it, because a way back hides the faults that it helps over.
    strict: ClassVar[bool] = False

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self.failures = 0

    @property
    def closed(self) -> bool:
        """Whether new requests are still given to stopscan."""
        return self.failures < self.LIMIT

    def note(self, error: BaseException, outcome: str) -> None:
        """Counts a stream that failed, and logs the first and the last; ``outcome`` says what becomes of the stream."""
        if isinstance(error, NOT_OURS) or self.strict:
            raise error
        self.failures += 1
        if self.failures == 1:
            self._logger.error(
                "stopscan failed in a stream, which %s. Please report this with the lines below.",
                outcome,
                exc_info=error,
            )
        if self.failures == self.LIMIT:
            self._logger.error("stopscan failed in %d streams and is off for new requests", self.LIMIT)
