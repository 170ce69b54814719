"""``TextRow`` and ``SegmentRow``: one row of a generation, with its text and its streamer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from stopscan.engines import Row
from stopscan.segments import Segment, SegmentSet, joined
from stopscan.transformers._options import Options

if TYPE_CHECKING:
    from typing_extensions import Self

    from stopscan.finish import EndReason


def row_of(options: Options, prompt: Sequence[int], streamer: Any = None, eos_token_ids: Iterable[int] = ()) -> TextRow:
    """Returns a row for an answer that begins after ``prompt``."""
    kind = SegmentRow if isinstance(options.stops, SegmentSet) else TextRow
    return kind(options.scanner(prompt, eos_token_ids), streamer)


class TextRow(Row[Any]):
    """A row, its text so far without held text, and the streamer that gets the text piece by piece."""

    def __init__(self, scanner: Any, streamer: Any = None) -> None:
        super().__init__(scanner)
        self.pieces: list[Any] = []
        self.streamer = streamer
        self.over = False

    @property
    def text(self) -> str:
        """The text so far, without text that is held because it may be part of a stop or of a marker."""
        return "".join(self.pieces)

    def step(self, token_id: int) -> bool:
        """Feeds ``token_id``. Returns whether the row ends with it."""
        return not self.over and self._take(self.scanner.feed(token_id))

    def steps(self, token_ids: Iterable[int]) -> bool:
        """Feeds ``token_ids``. Returns whether the row ends with one of them. Tokens after the end are ignored."""
        return not self.over and self._take(self.scanner.feed_many(token_ids))

    def end(self, reason: EndReason) -> None:
        """Ends the row with ``reason``, unless it has ended already."""
        if not self.over:
            self._take(self.scanner.flush(reason))

    def copy(self) -> Self:
        """Returns an independent copy in the same state. The copy has no streamer."""
        other = super().copy()
        other.streamer, other.pieces = None, self.pieces[:]
        return other

    def _take(self, new: Any) -> bool:
        over = self.over = self.scanner.finish is not None
        if new:
            self.pieces.append(new)
        if self.streamer is not None and (new or over):
            self._stream(new)
        return over

    def _stream(self, text: Any) -> None:
        self.streamer.on_finalized_text(text, stream_end=self.over)


class SegmentRow(TextRow):
    """A row of a ``SegmentSet``. Its pieces are segments, and its streamer gets segments."""

    @property
    def text(self) -> str:
        """The text so far, without held text and without the markers."""
        return "".join(text for _, text, _ in self.segments)

    @property
    def segments(self) -> list[Segment]:
        """The segments so far, without held text."""
        return joined(chain.from_iterable(self.pieces))

    def _stream(self, segments: Any) -> None:
        part = self.pieces[-1][-1][2] if self.pieces else 0
        for left, segment in enumerate(segments or [(self.region, "", part)], 1):
            self.streamer.on_finalized_text(segment, stream_end=self.over and left >= len(segments))


def length_of(row: Row[Any]) -> int:
    """Returns how many tokens of a row to keep: if a stop ended the row, the tokens up to the end of the row's text,
    otherwise all tokens, including the EOS."""
    stopped = row.finish is not None and row.finish.matched_stop is not None
    return row.tokens_kept if stopped else row.tokens_seen
