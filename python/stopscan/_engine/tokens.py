"""Token ids as engines have them: of models with more ids than their tokenizers, and with an EOS that always ends."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, groupby
from operator import index, itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, cast
from zlib import crc32

from stopscan.finish import EndReason, Finish
from stopscan.regions import RegionOptions
from stopscan.segments import Segment

if TYPE_CHECKING:
    from typing_extensions import Self

    from stopscan import StopMatch

Ids = int | Iterable[int] | None
Piece = TypeVar("Piece", str, list[Segment])

# Engines draw ids of 32 bits; what is larger, or below 0, no sampler has drawn.
IDS = range(2**31)

# Of a snapshot's numbers, in bytes.
SIZE = 4


class EndOptions(TypedDict, total=False):
    """What ends a row beside its stops, as a request may say it."""

    stop_token_ids: Ids
    min_tokens: int
    include_stop: bool


class TokenOptions(EndOptions, total=False):
    """The options of rows of an engine, whether their text is told apart or not."""

    eos_token_ids: Ids
    skip_special_tokens: bool


class RequestOptions(EndOptions, RegionOptions, total=False):
    """What a request may say about its stops; what its model ends with is the engine's."""


class RowOptions(TokenOptions, RegionOptions, total=False):
    """The options of a row whose stops are a ``StopSet``."""


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
        eos = given.pop("eos_token_ids", None)
        eos = ids(model_eos_ids if eos is None else eos)
        given["stop_token_ids"] = ids(given.get("stop_token_ids"))
        self._scanner = make(eos_token_ids=eos, max_tokens=max_tokens, **given)
        self._min_tokens: int = given.get("min_tokens", 0)
        self._eos_token_ids = frozenset(eos)
        # What the engine's tokens brought, and nobody has asked for yet.
        self._pieces: deque[Any] = deque()

    @property
    def finish(self) -> Finish | None:
        """Why the stream ended, and at which stop; None while it goes on."""
        finish: Finish | None = self._scanner.finish
        return finish

    @property
    def match(self) -> StopMatch | None:
        """The stop that fired, a string, a pattern or a loop."""
        match: StopMatch | None = self._scanner.match
        return match

    @property
    def held(self) -> str:
        """The text that is withheld because it may still turn into a hidden stop."""
        held: str = self._scanner.held
        return held

    @property
    def region(self) -> str:
        """The region of the text that comes next."""
        region: str = self._scanner.region
        return region

    @property
    def tokens_seen(self) -> int:
        """How many tokens were fed, for usage."""
        seen: int = self._scanner.tokens_seen
        return seen

    @property
    def tokens_kept(self) -> int:
        """How many tokens there are up to the last that contributed to the emitted text."""
        kept: int = self._scanner.tokens_kept
        return kept

    def feed(self, token_id: int, /) -> Piece:
        """What is safe to emit now that ``token_id`` was read; nothing once the stream is over. Raises ``ValueError``
        for what is no token id of any model, and ``TypeError`` for what is no integer."""
        piece: Piece
        if self._min_tokens and token_id in self._eos_token_ids and self._scanner.tokens_seen < self._min_tokens:
            piece = self._scanner._count("eos")
            return piece
        try:
            piece = self._scanner.feed(token_id)
        except ValueError:
            _check(token_id)
            piece = self._scanner._count()
        return piece

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
        self._scanner.reset()
        self._pieces.clear()

    def copy(self) -> Self:
        """The same in the same state, which goes on independently."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._scanner, other._pieces = self._scanner.copy(), self._pieces.copy()
        return other

    def snapshot(self) -> bytes:
        """The state as bytes, for one of the same tokenizer, stops and options, in another process or on another
        machine; what nobody has asked for yet is in it."""
        pieces = json.dumps([*self._pieces]).encode()
        state: bytes = self._scanner.snapshot() + pieces + len(pieces).to_bytes(SIZE, "big")
        return state + crc32(state).to_bytes(SIZE, "big")

    def restore(self, snapshot: bytes) -> None:
        """Takes the state that ``snapshot`` is of. Raises ``ValueError`` for one of other stops or options, and for
        damaged bytes; the stream is then as before."""
        state, check = snapshot[:-SIZE], snapshot[-SIZE:]
        size = int.from_bytes(state[-SIZE:], "big")
        end = len(state) - SIZE - size
        if crc32(state).to_bytes(SIZE, "big") != check or end < 0:
            raise ValueError("the snapshot is damaged")
        self._scanner.restore(state[:end])
        self._pieces = deque(map(_piece, json.loads(state[end:-SIZE])))

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, _memo: Any) -> Self:
        return self.copy()

    def _joined(self, pieces: Iterable[Any]) -> Piece:
        nothing: Piece = self._scanner.feed_many(())
        all_of_them: Any = "".join(pieces) if nothing == "" else joined(chain.from_iterable(pieces))
        piece: Piece = all_of_them
        return piece


class InRegions:
    """What a segmenter knows beside it."""

    _scanner: Any

    @property
    def tokens_in(self) -> dict[str, int]:
        """How many tokens each region has had, by its name."""
        tokens: dict[str, int] = self._scanner.tokens_in
        return tokens


class EngineSegments(InRegions, EngineTokens[list[Segment]]):
    """``EngineTokens`` of a segmenter."""


def own_options(given: Mapping[str, Any]) -> tuple[RequestOptions, dict[str, Any]]:
    """The options of rows in ``given``, and what is the engine's."""
    own = {name: given[name] for name in RequestOptions.__annotations__ if name in given}
    return cast("RequestOptions", own), {name: value for name, value in given.items() if name not in own}


def ids(given: Ids) -> tuple[int, ...]:
    """Token ids as options take them: one, some, or None, of which some models have one among the others."""
    some = given if isinstance(given, Iterable) else (given,)
    return tuple(token_id for token_id in some if token_id is not None)


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """The same with neighbours of one part as one segment."""
    parts = groupby(segments, itemgetter(0, 2))
    return [(region, "".join(text for _, text, _ in run), part) for (region, part), run in parts]


def _piece(written: Any) -> Any:
    """A piece that JSON has written, where segments are no tuples."""
    return written if isinstance(written, str) else [*map(tuple, written)]


def _check(token_id: int) -> None:
    if token_id not in IDS:
        raise ValueError(f"token_id: {token_id} is no token id")
