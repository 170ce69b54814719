"""The expected streams of the test model, which recites fixed scripts, with stopscan off and on."""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any

from stopscan_conformance.reciter import SCRIPTS

STREAMS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("streams.json").read_text(encoding="utf-8"))


class Stream:
    """Records the text that is streamed for a script and, for each chunk, the length of the text and the number of
    tokens so far."""

    def __init__(self, script: str) -> None:
        self._pieces = [piece if isinstance(piece, bytes) else piece.encode() for piece in SCRIPTS[script]]
        self._released: dict[int, int] = {}
        self.text = ""
        self.tokens = 0

    def add(self, text: str, tokens: int) -> None:
        self.text += text
        self.tokens += tokens
        self._released[self.tokens] = len(self.text)

    def check(self, row: dict[str, Any]) -> None:
        """Checks the text and the number of tokens against ``row``, which has the expected values. Also checks how many
        characters were withheld after each chunk except the last one.

        A slow reader gets several tokens in one chunk. What was withheld between these tokens is not checked.
        """
        assert (self.text, self.tokens) == (row["text"], row["tokens"])
        running = [tokens for tokens in self._released if tokens < row["tokens"]]
        withheld = [self.length(tokens) - self._released[tokens] for tokens in running]
        assert withheld == [row["withheld"][tokens - 1] for tokens in running]

    def length(self, tokens: int) -> int:
        return len(getincrementaldecoder("utf-8")().decode(b"".join(self._pieces[:tokens])))
