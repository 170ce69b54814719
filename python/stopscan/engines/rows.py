"""``Row``: the base class of an adapter's rows (the streams of a batch), and the types of a row's options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from stopscan.engines._checkpoint import EngineOptions, Options, as_options
from stopscan.engines._options import StopOptions
from stopscan.regions import RegionOptions
from stopscan.segments import Segment

if TYPE_CHECKING:
    from typing_extensions import Self

    from stopscan import StopMatch
    from stopscan.finish import EndReason, Finish

Piece = TypeVar("Piece", str, list[Segment])


class TokenOptions(TypedDict, total=False):
    """The options of ``TokenScanner``, without the stops and the regions."""

    eos_token_ids: int | Iterable[int] | None
    stop_token_ids: int | Iterable[int] | None
    min_tokens: int
    max_tokens: int | None
    include_stop: bool
    skip_special_tokens: bool


class RowOptions(TokenOptions, RegionOptions, total=False):
    """All options of a row, except its stops, which are a ``StopSet``."""


class Row(Generic[Piece]):
    """One stream of an engine's batch. Passes calls on to ``scanner``, which is a ``TokenScanner`` or a
    ``TokenSegmenter``.

    Adapters derive from ``Row`` and add the methods that their engine calls.
    """

    def __init__(self, scanner: Any) -> None:
        self.scanner = scanner

    @property
    def finish(self) -> Finish | None:
        """The ``Finish`` of the row, or ``None`` if the row has not ended."""
        finish: Finish | None = self.scanner.finish
        return finish

    @property
    def match(self) -> StopMatch | None:
        """The match of the stop string, pattern or loop that ended the row, or ``None``."""
        match: StopMatch | None = self.scanner.match
        return match

    @property
    def held(self) -> str:
        """The text that is withheld because it may be the beginning of a hidden stop or of a marker."""
        held: str = self.scanner.held
        return held

    @property
    def unused(self) -> str:
        """The text after the stop in the token that completed the stop."""
        unused: str = self.scanner.unused
        return unused

    @property
    def region(self) -> str:
        """The region in which the text is now, such as ``reasoning``."""
        region: str = self.scanner.region
        return region

    @property
    def tokens_seen(self) -> int:
        """How many tokens were fed, for a usage report."""
        seen: int = self.scanner.tokens_seen
        return seen

    @property
    def tokens_kept(self) -> int:
        """How many tokens to keep: all up to the last one with text in the output. Cut ids and logprobs there."""
        kept: int = self.scanner.tokens_kept
        return kept

    @property
    def tokens_in(self) -> dict[str, int]:
        """The number of tokens of each region, for a usage report."""
        tokens: dict[str, int] = self.scanner.tokens_in
        return tokens

    def feed(self, token_id: int, /) -> Piece:
        """Feeds a token, and returns the text or the segments that are safe to emit now."""
        piece: Piece = self.scanner.feed(token_id)
        return piece

    def feed_many(self, token_ids: Iterable[int], /) -> Piece:
        """Feeds several tokens, and returns the joined results of ``feed``."""
        piece: Piece = self.scanner.feed_many(token_ids)
        return piece

    def flush(self, reason: EndReason = "eos") -> Piece:
        """Ends the row with ``reason``. Returns the held text or segments. The result is empty if the row has already
        ended."""
        piece: Piece = self.scanner.flush(reason)
        return piece

    def reset(self) -> None:
        """Puts the row back into its state before the first token."""
        self.scanner.reset()

    def copy(self) -> Self:
        """Returns a copy of the row. The two go on independently."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.scanner = self.scanner.copy()
        return other

    def snapshot(self) -> bytes:
        """Returns the state as bytes. A row with equal tokenizer, stops and options can restore it in any process."""
        snapshot: bytes = self.scanner.snapshot()
        return snapshot

    def restore(self, snapshot: bytes, /) -> None:
        """Puts the state of ``snapshot`` into the row.

        Raises ``ValueError``, and leaves the row unchanged, if the snapshot was made with other stops or options, or is
        damaged.
        """
        self.scanner.restore(snapshot)

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, _memo: Any) -> Self:
        return self.copy()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scanner!r})"


def split(stops: Options, options: Mapping[str, Any]) -> tuple[StopOptions, dict[str, Any]]:
    """Sorts the keyword arguments of a row. Returns a ``StopOptions`` with ``stops`` and the options about stops, and
    a dict with the ``EngineOptions``."""
    engine = {name: value for name, value in options.items() if name in EngineOptions.__annotations__}
    rest = {name: value for name, value in options.items() if name not in engine and value is not None}
    return replace(as_options(stops), **rest), engine
