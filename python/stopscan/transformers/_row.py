from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

from stopscan.finish import EndReason, Finish
from stopscan.transformers._options import Options


class Row:
    """One row of a generation: its scanner, the safe text so far, and the streamer that gets it."""

    def __init__(self, options: Options, prompt: Sequence[int], streamer: Any = None) -> None:
        self.scanner = options.scanner(prompt)
        self.texts: list[str] = []
        self.streamer = streamer
        # transformers ends a row at an EOS even where stops do not count yet.
        self._always_end = frozenset(options.eos_token_ids) if options.min_tokens else frozenset()
        self._min_tokens = options.min_tokens
        # How many tokens the scanner had seen at each that it was not given.
        self._others: list[int] = []

    @property
    def finish(self) -> Finish | None:
        return self.scanner.finish

    @property
    def seen(self) -> int:
        """How many tokens the row took."""
        return self.scanner.tokens_seen + len(self._others)

    def feed(self, token_ids: Iterable[int]) -> None:
        """Reads tokens of the row; those behind its end count for nothing."""
        if self.scanner.finish is None:
            self._emit("".join(map(self._feed, token_ids)))

    def close(self, reason: EndReason) -> None:
        """Ends the row for another ``reason``, unless it is over."""
        if self.scanner.finish is None:
            self._emit(self.scanner.close(reason))

    def length(self) -> int:
        """How many tokens belong to the row: to the last of the text if a stop ended it, else all, with the EOS."""
        finish = self.scanner.finish
        if finish is None or finish.matched_stop is None:
            return self.seen
        kept = self.scanner.tokens_kept
        return kept + sum(seen < kept for seen in self._others)

    def copy(self) -> Row:
        """The same row, to go on in another way; it has no streamer."""
        other = copy(self)
        other.scanner, other.streamer = self.scanner.copy(), None
        other.texts, other._others = self.texts[:], self._others[:]
        return other

    def _feed(self, token_id: int) -> str:
        scanner = self.scanner
        if token_id in self._always_end and scanner.finish is None and scanner.tokens_seen < self._min_tokens:
            self._others.append(scanner.tokens_seen)
            return scanner.close("eos")
        try:
            return scanner.feed(token_id)
        except ValueError:
            # Models have more ids than their tokenizers; a sampler may draw one, and the row goes on.
            self._others.append(scanner.tokens_seen)
            return ""

    def _emit(self, text: str) -> None:
        if text:
            self.texts.append(text)
        if self.streamer is not None:
            over = self.scanner.finish is not None
            if text or over:
                self.streamer.on_finalized_text(text, stream_end=over)
