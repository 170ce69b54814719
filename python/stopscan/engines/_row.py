"""The API of a token scanner, for the rows of an adapter, and the options of a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from stopscan.regions import RegionOptions
from stopscan.segments import Segment

if TYPE_CHECKING:
    from typing_extensions import Self

    from stopscan import StopMatch
    from stopscan.finish import EndReason, Finish

Piece = TypeVar("Piece", str, list[Segment])


class TokenOptions(TypedDict, total=False):
    """The options of a row beside its stops and regions. They are those of ``TokenScanner``."""

    eos_token_ids: int | Iterable[int] | None
    stop_token_ids: int | Iterable[int] | None
    min_tokens: int
    max_tokens: int | None
    include_stop: bool
    skip_special_tokens: bool


class RowOptions(TokenOptions, RegionOptions, total=False):
    """The options of a row whose stops are a ``StopSet``."""


class Row(Generic[Piece]):
    """A row of an engine: the API of the ``TokenScanner`` or ``TokenSegmenter`` that it has in ``scanner``.

    Adapters derive from it and add what their engine asks of a row.
    """

    def __init__(self, scanner: Any) -> None:
        self.scanner = scanner

    @property
    def finish(self) -> Finish | None:
        """Why the row ended, and at which stop; ``None`` while it goes on."""
        finish: Finish | None = self.scanner.finish
        return finish

    @property
    def match(self) -> StopMatch | None:
        """The stop that fired: a string, a pattern or a loop."""
        match: StopMatch | None = self.scanner.match
        return match

    @property
    def held(self) -> str:
        """The text that is withheld because it may still become a hidden stop or a marker."""
        held: str = self.scanner.held
        return held

    @property
    def region(self) -> str:
        """The region of the text that comes next."""
        region: str = self.scanner.region
        return region

    @property
    def tokens_seen(self) -> int:
        """How many tokens were fed, for usage."""
        seen: int = self.scanner.tokens_seen
        return seen

    @property
    def tokens_kept(self) -> int:
        """How many tokens there are up to the last that contributed to the emitted text, for ids and logprobs."""
        kept: int = self.scanner.tokens_kept
        return kept

    @property
    def tokens_in(self) -> dict[str, int]:
        """How many tokens each region has had, by its name."""
        tokens: dict[str, int] = self.scanner.tokens_in
        return tokens

    def feed(self, token_id: int, /) -> Piece:
        """Returns what is safe to emit now that ``token_id`` was read."""
        piece: Piece = self.scanner.feed(token_id)
        return piece

    def feed_many(self, token_ids: Iterable[int], /) -> Piece:
        """Returns what ``feed`` gives for each of ``token_ids``, joined."""
        piece: Piece = self.scanner.feed_many(token_ids)
        return piece

    def flush(self, reason: EndReason = "eos") -> Piece:
        """Ends the row for another ``reason``, and returns the rest; nothing if it is over."""
        piece: Piece = self.scanner.flush(reason)
        return piece

    def reset(self) -> None:
        """Goes back to the start of the row."""
        self.scanner.reset()

    def copy(self) -> Self:
        """Returns the same row in the same state, which goes on independently."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.scanner = self.scanner.copy()
        return other

    def snapshot(self) -> bytes:
        """Returns the state as bytes, for a row of the same tokenizer, stops and options anywhere."""
        snapshot: bytes = self.scanner.snapshot()
        return snapshot

    def restore(self, snapshot: bytes, /) -> None:
        """Takes the state of a ``snapshot``. Raises ``ValueError`` for one of other stops or options, and for damaged
        bytes; the row is then as before."""
        self.scanner.restore(snapshot)

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, _memo: Any) -> Self:
        return self.copy()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scanner!r})"
