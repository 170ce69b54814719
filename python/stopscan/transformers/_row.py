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
    """A row (one sequence of a batch), its text so far without held text, and the streamer that gets the text piece by
    piece."""

    def __init__(self, scanner: Any, streamer: Any = None) -> None:
        super().__init__(scanner)
        self.pieces: list[Any] = []
        self._streamer = streamer

    @property
    def text(self) -> str:
        """The text so far, without text that is held because it may be part of a stop or of a marker."""
        return "".join(self.pieces)

    def add(self, *pieces: Any) -> None:
        """Adds ``pieces``, the results of the scanner, and passes them to the streamer. Tells the streamer once when
        the row has ended."""
        new = [*filter(None, pieces)]
        self.pieces += new
        over = self.finish is not None
        if self._streamer is not None and (new or over):
            self._stream(new, over)
            if over:
                self._streamer = None

    def end(self, reason: EndReason) -> None:
        """Ends the row with ``reason``, unless it has ended already."""
        self.add(self.scanner.flush(reason))

    def copy(self) -> Self:
        """Returns an independent copy in the same state. The copy has no streamer."""
        other = super().copy()
        other._streamer, other.pieces = None, self.pieces[:]
        return other

    def _stream(self, pieces: list[Any], over: bool) -> None:
        self._streamer.on_finalized_text("".join(pieces), stream_end=over)


class SegmentRow(TextRow):
    """A row whose stop is a ``SegmentSet``. Its pieces are segments, and its streamer gets segments."""

    @property
    def text(self) -> str:
        """The text so far, without held text and without the markers."""
        return "".join(text for _, text, _ in self.segments)

    @property
    def segments(self) -> list[Segment]:
        """The segments so far, without held text."""
        return joined(chain.from_iterable(self.pieces))

    def _stream(self, pieces: list[Any], over: bool) -> None:
        part = self.pieces[-1][-1][2] if self.pieces else 0
        segments = joined(chain.from_iterable(pieces)) or [(self.region, "", part)]
        for place, segment in enumerate(segments, 1):
            self._streamer.on_finalized_text(segment, stream_end=over and place == len(segments))


def length_of(row: Row[Any]) -> int:
    """Returns how many tokens of a row to keep. If a stop ended the row, these are the tokens up to the end of the
    row's text. Otherwise these are all tokens, including the EOS."""
    stopped = row.finish is not None and row.finish.matched_stop is not None
    return row.tokens_kept if stopped else row.tokens_seen
