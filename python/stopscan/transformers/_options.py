"""What the scanners of all rows share: the compiled stops, the regions, and the ids that end a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from stopscan import StopSet
from stopscan._engine.tokens import EngineTokens, Ids, RowOptions, TokenOptions, ids
from stopscan.regions import Protect, graph_of, protected, region_after
from stopscan.regions._prompt import begins
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

if TYPE_CHECKING:
    from typing_extensions import Unpack

Stop = StopSet | SegmentSet | Mapping[str, Mapping[str, str]] | str | Iterable[str] | None

# How many of a prompt's last tokens are looked at: chat templates end with the marker and line breaks.
PROMPT_TOKENS = 32


class StopsOptions(RowOptions, total=False):
    """The options of all rows of a generation; in ``region`` begins a text that a ``SegmentSet`` tells apart."""

    region: str | None


OPTIONS = tuple(StopsOptions.__annotations__)


class Options:
    """What is the same for every row; ``scanner`` makes that of one."""

    def __init__(
        self, tokenizer: Any, stop: Stop, *, max_tokens: int | None = None, **options: Unpack[StopsOptions]
    ) -> None:
        protect, start_protected = options.pop("protect", ()), options.pop("start_protected", None)
        region = options.pop("region", None)
        if isinstance(stop, Mapping):  # markers, as wherever a SegmentSet is taken
            stop = SegmentSet(stop)
        if isinstance(stop, SegmentSet):
            if protect or start_protected is not None:
                raise ValueError("protect and start_protected: a SegmentSet has stop_in and region for it")
        elif region is not None:
            raise ValueError("region: only a SegmentSet has regions")
        # Processors of several kinds of input carry their tokenizer.
        self.tokenizer: Any = getattr(tokenizer, "tokenizer", tokenizer)
        self._vocabulary = Vocabulary(self.tokenizer)
        self.stops: StopSet | SegmentSet = (
            stop if isinstance(stop, SegmentSet) else self._outside(StopSet(stop), protect)
        )
        eos = options.get("eos_token_ids")
        self.eos_token_ids: tuple[int, ...] = ids(self.tokenizer.eos_token_id if eos is None else eos)
        # What trimmed rows are filled with, as transformers fills those that ended.
        pad = self.tokenizer.pad_token_id
        self.pad_token_id: int = pad if pad is not None else next(iter(self.eos_token_ids), 0)
        self._start_protected = start_protected
        self._region = region
        self._max_tokens = max_tokens
        self._options: TokenOptions = options
        EngineTokens[str](*self.row(()))  # bad options raise before the generation

    def row(self, prompt: Sequence[int]) -> tuple[Any, int | None, TokenOptions, Ids]:
        """What an ``EngineTokens`` is made of whose row begins after ``prompt``."""
        make = partial(self._kind(prompt), prompt_token_ids=prompt)
        return make, self._max_tokens, {"skip_special_tokens": True, **self._options}, self.eos_token_ids

    def _kind(self, prompt: Sequence[int]) -> Any:
        stops = self.stops
        if isinstance(stops, SegmentSet):
            region = region_after(stops.markers, self._end(prompt)) if self._region is None else self._region
            return partial(TokenSegmenter, self._vocabulary, stops, region=region)
        begin = begins(stops, self._end(prompt), self._start_protected)
        return partial(TokenScanner, self._vocabulary, stops, **begin)

    def _outside(self, stops: StopSet, protect: Protect) -> StopSet:
        if not protect:
            return stops
        graph = graph_of(self.tokenizer)
        return protected(stops, graph, protect)

    def _end(self, prompt: Sequence[int]) -> str:
        end: str = self.tokenizer.decode(list(prompt[-PROMPT_TOKENS:]), skip_special_tokens=False)
        return end
