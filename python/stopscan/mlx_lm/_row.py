from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mlx_lm.tokenizer_utils import TokenizerWrapper

from stopscan import StopSet
from stopscan._protect import Protect, begins_in
from stopscan.finish import EndReason, Finish
from stopscan.mlx_lm._regions import outside, prompt_end
from stopscan.segments import Segment, SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter

if TYPE_CHECKING:
    from typing_extensions import Self

Piece = TypeVar("Piece", str, list[Segment])


class _Row(Generic[Piece]):
    """A row as mlx-lm and loops see it; what it emits is text or segments."""

    def __init__(self, scanner: Any, eos_token_ids: frozenset[int], min_tokens: int, max_tokens: int | None) -> None:
        self._scanner = scanner
        self._feed = scanner.feed
        self._min_tokens = min_tokens
        self._max_tokens = max_tokens
        self._early_eos = eos_token_ids if min_tokens else frozenset()
        # For each id that the scanner was not given: how many it had been given before.
        self._passed: list[int] = []
        self._pieces: deque[Piece] = deque()
        self._in_use = False

    @property
    def finish(self) -> Finish | None:
        """Why the row ended, and at which stop; None while it goes on."""
        finish: Finish | None = self._scanner.finish
        return finish

    @property
    def tokens_seen(self) -> int:
        """How many tokens were fed, EOS included."""
        seen: int = self._scanner.tokens_seen
        return seen + len(self._passed)

    @property
    def tokens_kept(self) -> int:
        """How many tokens there are up to the last that contributed to the emitted text."""
        kept: int = self._scanner.tokens_kept
        return kept + bisect_left(self._passed, kept)

    def feed(self, token_id: int, /) -> Piece:
        """What is safe to emit now that ``token_id`` was read; nothing once the row is over."""
        if token_id in self._early_eos and self._scanner.tokens_seen < self._min_tokens:
            self._pass()
            return self.close("eos")
        try:
            piece: Piece = self._feed(token_id)
        except ValueError:
            # Models have more ids than their tokenizers; a sampler may draw one, and the other rows go on.
            piece = self._pass()
        if self._passed and self.tokens_seen == self._max_tokens:
            piece += self._scanner.close("length")  # the scanner does not know of all of them
        return piece

    def close(self, reason: EndReason = "eos") -> Piece:
        """The rest, when the row ends for another ``reason``; nothing if it is over."""
        piece: Piece = self._scanner.close(reason)
        return piece

    def matcher(self) -> Self:
        """Itself. mlx-lm calls it when the row starts; for a second row it raises ``ValueError``."""
        if self._in_use:
            raise ValueError(f"a {type(self).__name__} is for one row: make one for each")
        self._in_use = True
        return self

    def advance(self, token_id: int, /) -> bool:
        """Whether the row ends with ``token_id``. mlx-lm calls it for each token, before it hands out the response."""
        self._pieces.append(self.feed(token_id))
        finish = self._scanner.finish
        # The end by length is mlx-lm's own to report.
        return finish is not None and finish.reason != "length"

    def _of(self, response: Any) -> Piece:
        piece = self._pieces.popleft()
        return piece + self.close("length") if response.finish_reason == "length" else piece

    def _pass(self) -> Piece:
        """Nothing, for an id that the scanner is not given."""
        if self._scanner.finish is None:
            self._passed.append(self._scanner.tokens_seen)
        nothing: Piece = self._scanner.feed_many(())
        return nothing


class RowScanner(_Row[str]):
    """Scans one row of a ``BatchGenerator``, as its ``stop_sequences``; ``text`` is the safe text of a response.
    The row ends in the very step that completes a stop, and then ``finish`` says why.

    In any other loop, and with mlx-lm before 0.32: ``feed`` each token, end the row when there is a ``finish``, and
    ``close("length")`` at the loop's own limit.

    The text is what ``tokenizer.decode`` makes of the tokens, special ones included. ``min_tokens`` holds for stops and
    ``stop_token_ids``; the model's EOS ends the row at any time, as in mlx-lm. ``max_tokens`` is the row's own. An id
    that the tokenizer does not have gives no text; only ``min_tokens`` does not count it.

    No stop fires in the regions of ``protect``: ``"reasoning"``, ``"tool_calls"``, pairs of markers, or a list of them.
    ``start_protected`` says whether the answer begins inside one; by default the end of ``prompt``, text or token ids,
    tells. The other options are those of ``TokenScanner``.

    Raises ``ValueError`` for a region that mlx-lm knows no markers of, and ``TypeError`` for a tokenizer that
    ``TokenScanner`` does not take.

    >>> rows = [RowScanner(tokenizer, ["END"]), RowScanner(tokenizer, ["6"], stop_token_ids=[42])]
    >>> row_of = dict(zip(generator.insert(prompts, stop_sequences=rows), rows))
    >>> while responses := generator.next_generated():
    ...     for response in responses:
    ...         print(response.uid, row_of[response.uid].text(response))
    """

    def __init__(
        self,
        tokenizer: Any,
        stop: StopSet | str | Iterable[str] | None = (),
        /,
        *,
        stop_token_ids: Iterable[int] = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        include_stop: bool = False,
        protect: Protect = (),
        start_protected: bool | None = None,
        prompt: Any = (),
    ) -> None:
        tokenizer = wrapped(tokenizer)
        stops, inside = outside(StopSet(stop), tokenizer, protect, prompt, start_protected)
        eos_token_ids = eos_ids(tokenizer)
        scanner = TokenScanner(
            tokenizer._tokenizer,
            stops,
            stop_token_ids=stop_token_ids,
            eos_token_ids=eos_token_ids,
            min_tokens=min_tokens,
            max_tokens=max_tokens,
            include_stop=include_stop,
            start_protected=inside,
            # mlx-lm's text has them, and markers can be among them.
            skip_special_tokens=False,
        )
        super().__init__(scanner, eos_token_ids, min_tokens, max_tokens)

    def text(self, response: Any, /) -> str:
        """The safe text that comes with the row's ``response``; each is to be asked for once, in order."""
        return self._of(response)


class RowSegmenter(_Row[list[Segment]]):
    """The same with the text told apart by a ``SegmentSet``, which has the stops; ``segments`` are the safe segments of
    a response. ``region`` is the one that the answer begins in; by default the end of ``prompt`` tells.
    There is nothing to protect; the other options are those of ``RowScanner``.

    >>> row = RowSegmenter(tokenizer, SegmentSet(FORMATS["qwen3"], stop=["END"], stop_in=["answer"]), prompt=prompt)
    >>> generator.insert([prompt], stop_sequences=[row])
    >>> [response] = generator.next_generated()
    >>> row.segments(response)
    [('reasoning', 'Hm')]
    """

    def __init__(
        self,
        tokenizer: Any,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        /,
        *,
        region: str | None = None,
        stop_token_ids: Iterable[int] = (),
        min_tokens: int = 0,
        max_tokens: int | None = None,
        include_stop: bool = False,
        prompt: Any = (),
    ) -> None:
        tokenizer, segments = wrapped(tokenizer), SegmentSet(segments)
        eos_token_ids = eos_ids(tokenizer)
        scanner = TokenSegmenter(
            tokenizer._tokenizer,
            segments,
            region=begins_in(segments, prompt_end(tokenizer, prompt)) if region is None else region,
            stop_token_ids=stop_token_ids,
            eos_token_ids=eos_token_ids,
            min_tokens=min_tokens,
            max_tokens=max_tokens,
            include_stop=include_stop,
            skip_special_tokens=False,
        )
        super().__init__(scanner, eos_token_ids, min_tokens, max_tokens)

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

    def segments(self, response: Any, /) -> list[Segment]:
        """The safe segments that come with the row's ``response``; each is to be asked for once, in order."""
        return self._of(response)


def wrapped(tokenizer: Any) -> Any:
    return tokenizer if isinstance(tokenizer, TokenizerWrapper) else TokenizerWrapper(tokenizer)


def eos_ids(tokenizer: TokenizerWrapper) -> frozenset[int]:
    return frozenset(tokenizer.eos_token_ids) - {None}  # before 0.32 that may be in it
