"""mlx-lm in one thread, which steps the rows of all requests at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import mlx_lm
from mlx_lm.generate import BatchGenerator

from stopscan.mlx_lm import RowScanner


class Row:
    """One generation. Iterate over its text; what ends the iteration early, a client that is gone, ends the row."""

    def __init__(self, engine: Engine, prompt: list[int], max_tokens: int, scanner: RowScanner) -> None:
        self.prompt = prompt
        self.max_tokens = max_tokens
        self.scanner = scanner
        self.uid: int | None = None
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._texts: asyncio.Queue[str | Exception | None] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[str]:
        self._engine.send(self)
        ended = False
        try:
            while (text := await self._texts.get()) is not None:
                if isinstance(text, Exception):
                    raise text
                yield text
            ended = True
        finally:
            if not ended:
                self._engine.send(self)

    def put(self, text: str | Exception | None) -> None:
        """Called by the engine's thread; None is the end."""
        self._loop.call_soon_threadsafe(self._texts.put_nowait, text)


class Engine:
    """The model at `path`. A row that stops leaves the batch before the next step."""

    def __init__(self, path: str) -> None:
        self.name = Path(path).name
        self._inbox: SimpleQueue[Row | None] = SimpleQueue()
        self._rows: dict[int, Row] = {}
        tokenizer: Future[Any] = Future()
        self._thread = Thread(target=self._run, args=(path, tokenizer), daemon=True)
        self._thread.start()
        self.tokenizer = tokenizer.result()

    def send(self, row: Row) -> None:
        """Starts the row; sent again, it ends the row."""
        self._inbox.put(row)

    def close(self) -> None:
        self._inbox.put(None)
        self._thread.join()

    def _run(self, path: str, tokenizer: Future[Any]) -> None:
        try:
            model, loaded = self.load(path)  # here: mlx's arrays belong to the thread that made them
        except Exception as error:
            tokenizer.set_exception(error)
            return
        tokenizer.set_result(loaded)
        with closing(BatchGenerator(model)) as generator:
            while self._take(generator):
                try:
                    self._step(generator)
                except Exception as error:
                    self._fail(generator, error)

    def load(self, path: str) -> tuple[Any, Any]:
        return mlx_lm.load(path)

    def _take(self, generator: BatchGenerator) -> bool:
        """Takes in and out what was sent; waits while there is nothing to do. False at the end."""
        while not self._rows or not self._inbox.empty():
            row = self._inbox.get()
            if row is None:
                return False
            if row.uid is None:
                (row.uid,) = generator.insert([row.prompt], [row.max_tokens], stop_sequences=[row.scanner])
                self._rows[row.uid] = row
            elif self._rows.pop(row.uid, None):
                generator.remove([row.uid])
        return True

    def _step(self, generator: BatchGenerator) -> None:
        for response in generator.next_generated():
            row = self._rows[response.uid]
            if text := row.scanner.text(response):
                row.put(text)
            if response.finish_reason is not None:
                del self._rows[response.uid]
                row.put(None)

    def _fail(self, generator: BatchGenerator, error: Exception) -> None:
        generator.remove(list(self._rows))
        for row in self._rows.values():
            row.put(error)
        self._rows.clear()
