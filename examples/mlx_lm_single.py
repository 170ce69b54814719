"""Streams one answer from the loop of mlx-lm 0.29 or later, as events of Anthropic's messages, up to the stop."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import mlx_lm

from stopscan.finish import to_anthropic
from stopscan.mlx_lm import RowScanner
from stopscan_conformance.reciter import Reciter


def events(model: Any, tokenizer: Any, prompt: str, stop: list[str], max_tokens: int = 100) -> Iterator[Any]:
    """Yields the events with the answer's text, and then the event that says why the answer ended. mlx-lm's loop is
    closed when a stop fires, or when the caller closes this generator."""
    row = RowScanner(tokenizer, stop, max_tokens=max_tokens, prompt=prompt)
    with closing(mlx_lm.stream_generate(model, tokenizer, prompt, max_tokens=max_tokens)) as responses:
        for response in responses:
            if text := row.feed(response.token):  # the row decodes the token, so response.text is not needed
                yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            if row.finish is not None:
                break
    yield {"type": "message_delta", "delta": to_anthropic(row.finish), "usage": {"output_tokens": row.tokens_seen}}


def main() -> None:
    reciter = Reciter({"story": ["Once", " upon a", " time. E", "ND of", " it"]})
    with tempfile.TemporaryDirectory() as directory:
        model, tokenizer = mlx_lm.load(str(reciter.write(directory)))
    for event in events(model, tokenizer, "[story]", ["END"]):
        print(json.dumps(event))


if __name__ == "__main__":
    main()
