from __future__ import annotations

import logging
from asyncio import CancelledError

# Not ours. A panic of Rust is a BaseException, so that `except Exception` would let it through to the engine's loop.
NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError)


class Failures:
    """How often stopscan failed in one process. After ``LIMIT`` times new requests stay with the engine."""

    LIMIT = 3
    # Tests set it, because a way back hides the faults that it helps over.
    strict = False

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self.count = 0

    @property
    def off(self) -> bool:
        return self.count >= self.LIMIT

    def note(self, error: BaseException, outcome: str) -> None:
        """Counts a stream that failed, and logs the first and the last; ``outcome`` says what becomes of the stream."""
        if isinstance(error, NOT_OURS) or self.strict:
            raise error
        self.count += 1
        if self.count == 1:
            words = "stopscan failed in a stream, which %s. Please report this with the lines below."
            self._logger.error(words, outcome, exc_info=error)
        if self.count == self.LIMIT:
            self._logger.error("stopscan failed in %d streams and is off for new requests", self.count)
