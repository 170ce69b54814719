"""A scheduler for mlx-lm 0.31 or later: it decodes each row's tokens itself, and finds stops with ``StopScanner``.

With ``RowScanner`` (see ``mlx_lm_batch.py``) a scheduler needs no detokenizer.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import Any

import mlx_lm
from mlx_lm.generate import BatchGenerator

from stopscan import StopScanner
from stopscan.finish import Finish, to_anthropic
from stopscan_conformance.reciter import Reciter


class Request:
    """One row: its detokenizer, its scanner, and why it ended."""

    def __init__(self, tokenizer: Any, stop: list[str]) -> None:
        self._eos_token_ids = tokenizer.eos_token_ids
        self._detokenizer = tokenizer.detokenizer
        self._scanner = StopScanner(stop)
        self.finish: Finish | None = None

    def take(self, token: int, at_limit: bool) -> str:
        """Returns the text that is safe to send after ``token``."""
        at_eos = token in self._eos_token_ids
        if not at_eos:
            self._detokenizer.add_token(token)
        if at_eos or at_limit:
            self._detokenizer.finalize()
        text = self._scanner.feed(self._detokenizer.last_segment)
        if at_eos or at_limit:
            text += self._scanner.flush()  # the held text did not become a stop
        if self._scanner.match or at_eos or at_limit:
            self.finish = Finish.of(self._scanner.match, "eos" if at_eos else "length")
        return text


class Scheduler:
    """Runs all requests in one batch. When a request ends, it leaves the batch before the next step."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._generator = BatchGenerator(model)
        self._running: dict[int, Request] = {}

    def add(self, prompt: str, stop: list[str], max_tokens: int = 100) -> int:
        request = Request(self._tokenizer, stop)  # raises for bad stops, before a row is inserted
        (uid,) = self._generator.insert([self._tokenizer.encode(prompt)], [max_tokens])
        self._running[uid] = request
        return uid

    def abort(self, uid: int) -> None:
        if self._running.pop(uid, None) is not None:
            self._generator.remove([uid])

    def run(self) -> Iterator[tuple[int, Any]]:
        """Yields events of Anthropic's messages, each with the id of its request, until all requests have ended."""
        while self._running:
            for response in self._generator.next_generated():
                if (request := self._running.get(response.uid)) is None:
                    continue  # it was aborted in this step
                if text := request.take(response.token, response.finish_reason == "length"):
                    delta = {"type": "text_delta", "text": text}
                    yield response.uid, {"type": "content_block_delta", "index": 0, "delta": delta}
                if request.finish is not None and self._running.pop(response.uid, None):
                    if response.finish_reason is None:
                        self._generator.remove([response.uid])
                    yield response.uid, {"type": "message_delta", "delta": to_anthropic(request.finish)}

    def close(self) -> None:
        self._generator.close()


def main() -> None:
    reciter = Reciter({"story": ["Once", " upon a", " time. E", "ND of", " it"]})
    with tempfile.TemporaryDirectory() as directory:
        scheduler = Scheduler(*mlx_lm.load(str(reciter.write(directory))))
    for stop in (["END"], ["\n\nHuman:"]):
        scheduler.add("[story]", stop)
    for uid, event in scheduler.run():
        print(uid, json.dumps(event))
    scheduler.close()


if __name__ == "__main__":
    main()
