"""What the scanners of all rows share: the compiled stops, the regions, and the ids that end a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stopscan import StopSet
from stopscan.engines import Checkpoint
from stopscan.segments import SegmentSet

Stop = StopSet | SegmentSet | Mapping[str, Mapping[str, str]] | str | Iterable[str] | None

OPTIONS = (
    "protect", "start_protected", "region", "eos_token_ids", "stop_token_ids", "min_tokens", "include_stop",
    "skip_special_tokens", "max_tokens",
)  # fmt: skip


class Options:
    """What is the same for every row; ``scanner`` makes that of one."""

    def __init__(
        self,
        tokenizer: Any,
        stop: Stop,
        *,
        protect: Any = (),
        start_protected: bool | None = None,
        region: str | None = None,
        eos_token_ids: Any = None,
        **options: Any,
    ) -> None:
        # Processors of several kinds of input carry their tokenizer.
        self.tokenizer: Any = getattr(tokenizer, "tokenizer", tokenizer)
        self._checkpoint = Checkpoint(self.tokenizer)
        self.stops: StopSet | SegmentSet
        if isinstance(stop, SegmentSet | Mapping):
            if protect or start_protected is not None:
                raise ValueError("protect and start_protected: a SegmentSet has stop_in and region for it")
            self.stops = SegmentSet(stop)
        elif region is not None:
            raise ValueError("region: only a SegmentSet has regions")
        else:
            self.stops = self._checkpoint.stops(StopSet(stop), protect)
        eos = self.tokenizer.eos_token_id if eos_token_ids is None else eos_token_ids
        self.eos_token_ids = tuple(each for each in ([eos] if isinstance(eos, int) else eos or ()) if each is not None)
        self._own_eos = eos_token_ids is not None
        # What trimmed rows are filled with, as transformers fills those that ended.
        pad = self.tokenizer.pad_token_id
        self.pad_token_id: int = pad if pad is not None else next(iter(self.eos_token_ids), 0)
        self._start_protected, self._region, self._options = start_protected, region, options
        self.scanner(())  # bad options raise before the generation

    def tell_eos(self, token_ids: Iterable[int]) -> None:
        """The EOS tokens of the model, which may be more than the tokenizer's; the user's own count more."""
        if not self._own_eos:
            self.eos_token_ids = tuple({*self.eos_token_ids, *token_ids})

    def scanner(self, prompt: Sequence[int]) -> Any:
        """The scanner, or the segmenter, of a row that begins after ``prompt``."""
        options = {"eos_token_ids": self.eos_token_ids, **self._options}
        known = [token_id for token_id in prompt if token_id < len(self.tokenizer)]  # models have more ids
        options["prompt_token_ids"] = known
        if isinstance(self.stops, SegmentSet):
            return self._checkpoint.segmenter(self.stops, known, region=self._region, **options)
        return self._checkpoint.scanner(self.stops, known, start_protected=self._start_protected, **options)
