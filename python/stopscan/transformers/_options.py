"""``Options`` holds what all rows of a generation share: the compiled stops, the options, and the EOS ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stopscan import StopSet
from stopscan.engines import Checkpoint, RowOptions
from stopscan.engines.rows import split
from stopscan.segments import SegmentSet

if TYPE_CHECKING:
    from typing_extensions import Unpack

Stop = StopSet | SegmentSet | Mapping[str, Mapping[str, str]] | str | Iterable[str] | None


class StopsOptions(RowOptions, total=False):
    """The options of ``Stops``. ``region`` is the region of a ``SegmentSet`` in which the answer begins."""

    region: str | None


# The annotations of a TypedDict include the options of its base classes.
OPTIONS = tuple(StopsOptions.__annotations__)


class Options:
    """The stops and options of all rows (the sequences of a batch). ``scanner`` makes the scanner of one row."""

    def __init__(self, tokenizer: Any, stop: Stop, **given: Unpack[StopsOptions]) -> None:
        if isinstance(stop, Mapping) and not all(isinstance(markers, Mapping) for markers in stop.values()):
            raise TypeError("a mapping as the stop has {region: {marker: region}}; pass stops as a list of strings")
        # A multimodal processor has its tokenizer as an attribute.
        self.tokenizer: Any = getattr(tokenizer, "tokenizer", tokenizer)
        self._checkpoint = Checkpoint(self.tokenizer)
        self._given, self._engine = split(stop, given)
        self.stops: StopSet | SegmentSet = self._given.stops
        if self._engine.get("region") is not None and isinstance(self.stops, StopSet):
            raise ValueError("region needs a SegmentSet as the stop")
        eos = self._engine.pop("eos_token_ids", None)
        self.eos_token_ids: list[int] = ids(self.tokenizer.eos_token_id if eos is None else eos)
        self.scanner(())  # make a scanner now, so that wrong options raise before the generation begins

    def scanner(self, prompt: Sequence[int], eos_token_ids: Iterable[int] = ()) -> Any:
        """Returns the scanner of a row with this ``prompt``, or the segmenter if the stop is a ``SegmentSet``.
        ``eos_token_ids`` are further EOS ids."""
        make = self._checkpoint.segmenter if isinstance(self.stops, SegmentSet) else self._checkpoint.scanner
        eos = {*self.eos_token_ids, *eos_token_ids}
        return make(self._given, prompt, **{**self._engine, "prompt_token_ids": prompt, "eos_token_ids": eos})


def ids(given: Any) -> list[int]:
    """Returns ``given``, which is one id, several ids or ``None``, as a list of ids."""
    if given is None or isinstance(given, int):
        return [] if given is None else [given]
    return [each for each in given if each is not None]
