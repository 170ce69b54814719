"""Computes the output that an engine must give when a test model recites a script. `Reference` finds the stops."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reference import Reference


@dataclass
class Recital:
    """The text that must come out with each token, including the EOS, and why the output ended."""

    texts: list[str]
    matched: str | None = None
    finish_reason: str = "stop"

    @property
    def text(self) -> str:
        return "".join(self.texts)


def recite(
    script: Sequence[str | bytes], *args: Any, min_tokens: int = 0, max_tokens: int = -1, **options: Any
) -> Recital:
    """Returns the expected output for a script, token by token. ``args`` and ``options`` go to ``Reference``."""
    reference, texts = Reference(*args, **options), []
    # A character whose bytes are in two tokens comes out with the second token. Invalid bytes become U+FFFD at once.
    decoder = getincrementaldecoder("utf-8")("replace")
    for number, piece in enumerate(script, 1):
        decoded = decoder.decode(piece.encode() if isinstance(piece, str) else piece)
        texts.append(reference.feed(decoded, armed=number > min_tokens))
        if reference.match is not None:
            return Recital(texts, reference.match.sequence)
        if number == max_tokens:
            texts[-1] += reference.feed(decoder.decode(b"", final=True)) + reference.flush()
            return Recital(texts, finish_reason="length")
    texts.append(reference.feed(decoder.decode(b"", final=True)) + reference.flush())
    return Recital(texts, reference.match and reference.match.sequence)
