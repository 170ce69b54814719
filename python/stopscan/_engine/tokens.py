"""Token ids as engines have them: of models with more ids than their tokenizers, and with an EOS that always ends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, groupby
from operator import index, itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from stopscan.finish import EndReason, Finish
from stopscan.segments import Segment

if TYPE_CHECKING:
    from typing_extensions import Self

    from stopscan import StopMatch

Ids = int | Iterable[int] | None
Piece = TypeVar("Piece", str, list[Segment])

# Engines draw ids of 32 bits; what is larger, or below 0, no sampler has drawn.
IDS = range(2**31)


class TokenOptions(TypedDict, total=False):
    """The options of rows of an engine, whether their text is told apart or not."""

    stop_token_ids: Ids
    eos_token_ids: Ids
    min_tokens: int
    include_stop: bool
    skip_special_tokens: bool


class EngineTokens(Generic[Piece]):
    """A scanner or a segmenter of token ids that takes each id that an engine may draw.

    ``make`` is ``TokenScanner`` or ``TokenSegmenter`` with its tokenizer and set. An id that the tokenizer does not
    have is a token without text, which counts for ``min_tokens`` and ``max_tokens``. One of ``eos_token_ids``, by
    default ``model_eos_ids``, ends the stream before ``min_tokens``, too, as engines end a row there.
    """

    def __init__(
        self, make: Callable[..., Any], max_tokens: int | None, options: TokenOptions, model_eos_ids: Ids
    ) -> None:
        given: dict[str, Any] = {**options}
        self._min_tokens: int = given.pop("min_tokens", 0)
        self._max_tokens = max_tokens
        eos = given.pop("eos_token_ids", None)
        eos = ids(model_eos_ids if eos is None else eos)
        given["stop_token_ids"] = ids(given.get("stop_token_ids"))
        self._make = partial(make, eos_token_ids=eos, max_tokens=max_tokens, **given)
        self._begin()
        self._eos_token_ids = frozenset(eos)

    @property
    def finish(self) -> Finish | None:
        """Why the stream ended, and at which stop; None while it goes on."""
        finish: Finish | None = self._scanner.finish
        return finish

    @property
    def match(self) -> StopMatch | None:
        """The stop string that fired."""
        match: StopMatch | None = self._scanner.match
        return match

    @property
    def held(self) -> str:
        """The text that is withheld because it may still turn into a hidden stop."""
        held: str = self._scanner.held
        return held

    @property
    def tokens_seen(self) -> int:
        """How many tokens were fed, EOS included."""
        seen: int = self._scanner.tokens_seen
        return seen + len(self._without_text)

    @property
    def tokens_kept(self) -> int:
        """How many tokens there are up to the last that contributed to the emitted text."""
        kept: int = self._scanner.tokens_kept
        return kept + bisect_left(self._without_text, kept)

    def feed(self, token_id: int, /) -> Piece:
        """What is safe to emit now that ``token_id`` was read; nothing once the stream is over. Raises ``ValueError``
        for what is no token id of any model, and ``TypeError`` for what is no integer."""
        if self._early is not None:
            return self._feed_early(token_id, self._early)
        try:
            piece: Piece = self._scanner.feed(token_id)
        except ValueError:
            piece = self._pass(token_id)
        return self._limited(piece) if self._without_text else piece

    def feed_many(self, token_ids: Iterable[int], /) -> Piece:
        """What ``feed`` gives for each of ``token_ids``, joined. If one of them is wrong, none was read."""
        token_ids = [index(token_id) for token_id in token_ids]
        for token_id in token_ids:
            _check(token_id)
        return self._joined(map(self.feed, token_ids))

    def close(self, reason: EndReason = "eos") -> Piece:
        """The rest, when the stream ends for another ``reason``; nothing if it is over."""
        piece: Piece = self._scanner.close(reason)
        return piece

    def reset(self) -> None:
        """Goes back to the start of the stream."""
        self._begin()

    def copy(self) -> Self:
        """The same in the same state, which goes on independently."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._scanner, other._without_text = self._scanner.copy(), self._without_text[:]
        other._early = None if self._early is None else self._early[:]
        return other

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, _memo: Any) -> Self:
        return self.copy()

    def _begin(self) -> None:
        self._scanner = self._make(min_tokens=self._min_tokens)
        # For each id that the scanner was not given: how many it had been given before.
        self._without_text: list[int] = []
        # The ids that it was given, while stops do not count yet.
        self._early: list[int] | None = [] if self._min_tokens else None

    def _feed_early(self, token_id: int, early: list[int]) -> Piece:
        if token_id in self._eos_token_ids:
            self._pass(token_id)
            rest: Piece = self._scanner.close("eos")
            return rest
        try:
            piece: Piece = self._scanner.feed(token_id)
            early.append(token_id)
        except ValueError:
            piece = self._pass(token_id)
        if self.finish is None and self.tokens_seen >= self._min_tokens:
            self._arm(early)
        return self._limited(piece)

    def _arm(self, early: list[int]) -> None:
        self._early = None
        if self._without_text:
            # The scanner waits for more tokens than are left: one that waits for these alone takes its place.
            self._scanner = self._make(min_tokens=len(early))
            self._scanner.feed_many(early)

    def _limited(self, piece: Piece) -> Piece:
        """``piece``, with the rest if the stream ends at its limit; the scanner does not know of all tokens."""
        if self._max_tokens is None or self.tokens_seen < self._max_tokens or self.finish is not None:
            return piece
        return self._joined([piece, self._scanner.close("length")])

    def _pass(self, token_id: int) -> Piece:
        """Nothing, for an id that the scanner is not given."""
        _check(token_id)
        if self._scanner.finish is None:
            self._without_text.append(self._scanner.tokens_seen)
        return self._joined(())

    def _joined(self, pieces: Iterable[Any]) -> Piece:
        nothing: Piece = self._scanner.feed_many(())
        all_of_them: Any = "".join(pieces) if nothing == "" else joined(chain.from_iterable(pieces))
        piece: Piece = all_of_them
        return piece


class InRegions:
    """What a segmenter knows beside it."""

    _scanner: Any

    @property
    def region(self) -> str:
        """The region of the text that comes next."""
        region: str = self._scanner.region
        return region

    @property
    def tokens_in(self) -> dict[str, int]:
        """How many tokens each region has had, by its name."""
        tokens: dict[str, int] = self._scanner.tokens_in
        return tokens


class EngineSegments(InRegions, EngineTokens[list[Segment]]):
    """``EngineTokens`` of a segmenter."""


def ids(given: Ids) -> tuple[int, ...]:
    """Token ids as options take them: one, some, or None, of which some models have one among the others."""
    some = given if isinstance(given, Iterable) else (given,)
    return tuple(token_id for token_id in some if token_id is not None)


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """The same with neighbours of one region as one segment."""
    return [(region, "".join(text for _, text in run)) for region, run in groupby(segments, itemgetter(0))]


def _check(token_id: int) -> None:
    if token_id not in IDS:
        raise ValueError(f"token_id: {token_id} is no token id")
