"""Runs mlx-lm in one thread, with the rows of all requests in one batch. After a failure, makes a new batch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

import mlx_lm
from mlx_lm.generate import BatchGenerator

from stopscan.mlx_lm import RowScanner, RowSegmenter
from stopscan.segments import Segment

Scanner = RowScanner | RowSegmenter
DEFAULT_CONTEXT = 8192
PLACES = 64  # the most rows (answers) in the batch at once; mlx-lm lets further rows wait


class EngineError(RuntimeError):
    """Raised if the engine has failed or is closed, so that the rest of an answer cannot come."""


class Row:
    """One generation. Iterate over its steps: each is a list of segments (region, text, part) that are safe to send. A
    `RowScanner` does not tell regions apart, so all its text has the region "answer". If the iteration ends early
    because the client is gone, the row ends. Raises `EngineError` if the engine fails.
    """

    def __init__(self, engine: Engine, prompt: list[int], max_tokens: int, scanner: Scanner, sampler: Any) -> None:
        self.prompt = prompt
        self.max_tokens = max_tokens
        self.scanner = scanner
        self.sampler = sampler
        self.uid: int | None = None  # None until the row is started
        self._engine = engine
        self._steps: asyncio.Queue[list[Segment] | EngineError | None] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[list[Segment]]:
        self._loop = asyncio.get_running_loop()
        self._engine.send(self)
        ended = False
        try:
            while (step := await self._steps.get()) is not None:
                if isinstance(step, EngineError):
                    ended = True
                    raise step
                yield step
                await asyncio.sleep(0)  # if steps are queued, `get` does not wait: let other tasks run between them
            ended = True
        finally:
            if not ended:
                self._engine.send(self)

    def read(self, response: Any) -> list[Segment]:
        """Returns the segments that are safe to send after a response of mlx-lm."""
        if isinstance(self.scanner, RowSegmenter):
            return self.scanner.segments(response)
        text = self.scanner.text(response)
        return [("answer", text, 0)] if text else []

    def put(self, step: list[Segment] | EngineError | None) -> None:
        """Hands a step to the task that iterates over the row. None ends the row. The engine's thread calls this."""
        with suppress(RuntimeError):  # if the loop is closed, nobody waits for the step
            self._loop.call_soon_threadsafe(self._steps.put_nowait, step)


class Engine:
    """Runs the model at `path` in a thread. A row that stops leaves the batch before the next step.

    After a failure, every running row raises `EngineError`, and later rows run in a new batch. If no new batch can be
    made, the engine gives no more answers: `failure` says why, and every row raises it.
    """

    def __init__(self, path: str) -> None:
        self.name = Path(path).name
        self.failure: EngineError | None = None
        self._inbox: SimpleQueue[Row | None] = SimpleQueue()
        self._rows: dict[int, Row] = {}
        self._sending = Lock()
        self._closing = False
        loaded: Future[tuple[Any, int]] = Future()
        self._thread = Thread(target=self._run, args=(path, loaded), daemon=True)
        self._thread.start()
        self.tokenizer, self.context = loaded.result()

    @property
    def rows(self) -> int:
        """The number of rows that run or wait for a place in the batch."""
        return len(self._rows)

    def check(self) -> None:
        """Raises `EngineError` if the engine gives no more answers."""
        if self.failure is not None:
            raise self.failure

    @property
    def status(self) -> int:
        """The HTTP status: 200 while the engine gives answers, otherwise 503."""
        return 200 if self.failure is None else 503

    def send(self, row: Row) -> None:
        """Starts the row, or ends it if it was sent before. If the engine has failed, the row gets the failure."""
        with self._sending:
            if self.failure is None:
                self._inbox.put(row)
            else:
                row.put(self.failure)

    def close(self, seconds: float = 10.0) -> None:
        """Ends all rows. Waits until the current step of the model is done, but no longer than `seconds`."""
        self._closing = True
        self._inbox.put(None)
        self._thread.join(seconds)

    def load(self, path: str) -> tuple[Any, Any]:
        return mlx_lm.load(path)

    def batch(self, model: Any) -> BatchGenerator:
        return BatchGenerator(model, completion_batch_size=PLACES)

    def _run(self, path: str, loaded: Future[tuple[Any, int]]) -> None:
        try:
            model, tokenizer = self.load(path)  # in this thread, to which mlx's arrays then belong
            context = getattr(getattr(model, "args", None), "max_position_embeddings", None) or DEFAULT_CONTEXT
            RowScanner(tokenizer)  # makes the vocabulary, which all rows share
            loaded.set_result((tokenizer, context))
            while not self._served(model) and not self._closing:
                pass
            self._over(EngineError("the server is shutting down"))
        except Exception as error:
            if loaded.done():
                self._over(EngineError(f"the engine cannot be started again: {error}"))
            else:
                loaded.set_exception(error)

    def _served(self, model: Any) -> bool:
        """Runs one batch until the engine is closed (returns True) or fails for any reason (returns False)."""
        generator = self.batch(model)
        try:
            with closing(generator):
                while self._take(generator):
                    self._step(generator)
        except Exception as error:
            self._fail(EngineError(f"the engine failed: {error}"))
            return False
        return True

    def _take(self, generator: BatchGenerator) -> bool:
        """Starts rows that are new, and ends rows that are sent again. Waits while no row runs. Returns False if the
        engine closes."""
        while not self._inbox.empty() or not self._rows:
            row = self._inbox.get()
            if row is None:
                return False
            if row.uid is None:
                self._start(generator, row)
            elif self._rows.get(row.uid) is row:  # in a new batch, another row may have this uid
                del self._rows[row.uid]
                generator.remove([row.uid])
        return True

    def _start(self, generator: BatchGenerator, row: Row) -> None:
        row.uid = -1  # not None: if the next call fails, a second `send` must not start the row again
        try:
            (row.uid,) = generator.insert(
                [row.prompt], [row.max_tokens], samplers=[row.sampler], stop_sequences=[row.scanner]
            )
        finally:
            if row.uid == -1:
                row.put(EngineError("the engine did not take the request"))
        self._rows[row.uid] = row

    def _step(self, generator: BatchGenerator) -> None:
        for response in generator.next_generated():
            row = self._rows[response.uid]
            if segments := row.read(response):
                row.put(segments)
            if response.finish_reason is not None:
                del self._rows[response.uid]
                row.put(None)

    def _fail(self, error: EngineError) -> None:
        for row in self._rows.values():
            row.put(error)
        self._rows.clear()

    def _over(self, error: EngineError) -> None:
        """Makes all rows fail with `error`: those that run, those that wait, and all later ones."""
        with self._sending:
            self.failure = error
        self._fail(error)
        with suppress(Empty):
            while True:
                if (sent := self._inbox.get_nowait()) is not None:
                    sent.put(error)
