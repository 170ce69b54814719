from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from itertools import groupby
from operator import itemgetter
from typing import Any

from stopscan.finish import EndReason, Finish
from stopscan.segments import Segment, SegmentSet
from stopscan.transformers._options import Options


def row_of(options: Options, prompt: Sequence[int], streamer: Any = None) -> Row:
    """The row of a generation that begins after ``prompt``."""
    kind = SegmentRow if isinstance(options.stops, SegmentSet) else Row
    return kind(options, prompt, streamer)


class Row:
    """One row of a generation: its scanner, the safe text so far, and the streamer that gets it, piece by piece."""

    def __init__(self, options: Options, prompt: Sequence[int], streamer: Any = None) -> None:
        self.scanner: Any = options.scanner(prompt)
        self.pieces: list[Any] = []  # the safe text so far, as it came
        self.streamer = streamer
        self.over = False

    @property
    def finish(self) -> Finish | None:
        finish: Finish | None = self.scanner.finish
        return finish

    @property
    def text(self) -> str:
        """The safe text so far."""
        return "".join(self.pieces)

    @property
    def segments(self) -> list[Segment]:
        """The safe text so far, told apart."""
        raise RuntimeError("there are segments only with a SegmentSet as the stop")

    @property
    def seen(self) -> int:
        """How many tokens the row took."""
        seen: int = self.scanner.tokens_seen
        return seen

    def step(self, token_id: int) -> bool:
        """Whether the row ends with ``token_id``."""
        return not self.over and self._take(self.scanner.feed(token_id))

    def feed(self, token_ids: Iterable[int]) -> bool:
        """Whether the row ends with one of ``token_ids``; those behind its end count for nothing."""
        return not self.over and self._take(self.scanner.feed_many(token_ids))

    def close(self, reason: EndReason) -> None:
        """Ends the row for another ``reason``, unless it is over."""
        if not self.over:
            self._take(self.scanner.close(reason))

    def length(self) -> int:
        """How many tokens belong to the row: to the last of the text if a stop ended it, else all, with the EOS."""
        return length_of(self.scanner)

    def copy(self) -> Row:
        """The same row, to go on in another way; it has no streamer."""
        other = copy(self)
        other.scanner, other.streamer, other.pieces = self.scanner.copy(), None, self.pieces[:]
        return other

    def _take(self, new: Any) -> bool:
        self.over = self.scanner.finish is not None
        if new or self.over:
            self._emit(new)
        return self.over

    def _emit(self, text: Any) -> None:
        if text:
            self.pieces.append(text)
        if self.streamer is not None:
            self.streamer.on_finalized_text(text, stream_end=self.over)


class SegmentRow(Row):
    """A row whose text is told apart: its pieces are segments, and so is what its streamer gets."""

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)

    @property
    def segments(self) -> list[Segment]:
        return [(region, "".join(text for _, text in run)) for region, run in groupby(self.pieces, itemgetter(0))]

    def _emit(self, segments: Any) -> None:
        self.pieces += segments
        if self.streamer is not None:
            for left, segment in zip(range(len(segments) - 1, -1, -1), segments, strict=True):
                self.streamer.on_finalized_text(segment, stream_end=self.over and not left)
            if not segments:
                self.streamer.on_finalized_text((self.scanner.region, ""), stream_end=True)


def length_of(tokens: Any) -> int:
    """How many tokens belong to a row: to the last of the text if a stop ended it, else all, with the EOS."""
    if tokens.finish is None or tokens.finish.matched_stop is None:
        return tokens.tokens_seen
    return tokens.tokens_kept
