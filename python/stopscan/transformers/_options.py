"""What the scanners of all rows share: the compiled stops, the regions, and the ids that end a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from stopscan import StopSet
from stopscan._protect import PROMPT_TOKENS, Protect, Region, Regions, begins_in, protected, regions
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

Stop = StopSet | SegmentSet | Mapping[str, Mapping[str, str]] | str | Iterable[str] | None
Ids = int | Iterable[int] | None

# The fields of response templates that are each region, by transformers' names.
FIELDS = {"reasoning": ("reasoning_content", "reasoning", "thinking"), "tool_calls": ("tool_calls",)}


class TokenOptions(TypedDict, total=False):
    """The options of rows, whether their text is told apart or not."""

    stop_token_ids: Ids
    eos_token_ids: Ids
    min_tokens: int
    include_stop: bool
    skip_special_tokens: bool


class Options:
    """What is the same for every row; ``scanner`` makes that of one."""

    def __init__(
        self,
        tokenizer: Any,
        stop: Stop,
        *,
        stop_token_ids: Ids = (),
        eos_token_ids: Ids = None,
        min_tokens: int = 0,
        include_stop: bool = False,
        skip_special_tokens: bool = True,
        protect: Protect = (),
        start_protected: bool | None = None,
        region: str | None = None,
    ) -> None:
        if isinstance(stop, Mapping):  # markers, as wherever a SegmentSet is taken
            stop = SegmentSet(stop)
        if isinstance(stop, SegmentSet):
            if protect or start_protected is not None:
                raise ValueError("protect and start_protected: a SegmentSet has stop_in and region for it")
        elif region is not None:
            raise ValueError("region: only a SegmentSet has regions")
        # Processors of several kinds of input carry their tokenizer.
        self.tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
        self._vocabulary = Vocabulary(self.tokenizer)
        self.stops = stop if isinstance(stop, SegmentSet) else StopSet(stop)
        self.eos_token_ids = _ids(self.tokenizer.eos_token_id if eos_token_ids is None else eos_token_ids)
        # What trimmed rows are filled with, as transformers fills those that ended.
        pad = self.tokenizer.pad_token_id
        self.pad_token_id: int = pad if pad is not None else next(iter(self.eos_token_ids), 0)
        self.min_tokens = min_tokens
        self._regions = regions(protect, named_regions(self.tokenizer)) if protect else ()
        self._start_protected = start_protected
        self._region = region
        self._given: dict[str, Any] = {
            "stop_token_ids": _ids(stop_token_ids),
            "eos_token_ids": self.eos_token_ids,
            "min_tokens": min_tokens,
            "include_stop": include_stop,
            "skip_special_tokens": skip_special_tokens,
        }
        self.scanner(())  # bad options raise before the generation

    def scanner(self, prompt: Sequence[int]) -> TokenScanner | TokenSegmenter:
        """The scanner of a row that begins after ``prompt``; with a ``SegmentSet`` it tells segments apart."""
        stops, given = self.stops, {"prompt_token_ids": prompt, **self._given}
        if isinstance(stops, SegmentSet):
            region = begins_in(stops, self._end(prompt)) if self._region is None else self._region
            return TokenSegmenter(self._vocabulary, stops, region=region, **given)
        inside = bool(self._start_protected)
        if self._regions or stops.protect:
            stops, inside = protected(stops, self._regions, self._end(prompt), self._start_protected)
        return TokenScanner(self._vocabulary, stops, start_protected=inside, **given)

    def _end(self, prompt: Sequence[int]) -> str:
        end: str = self.tokenizer.decode(list(prompt[-PROMPT_TOKENS:]), skip_special_tokens=False)
        return end


def named_regions(tokenizer: Any) -> dict[str, Regions]:
    """The markers of reasoning and of tool calls, as far as the tokenizer's response template has them as literals."""
    fields = (getattr(tokenizer, "response_template", None) or {}).get("fields", {})
    found = {name: tuple(_pairs(fields, names)) for name, names in FIELDS.items()}
    return {name: pairs for name, pairs in found.items() if pairs}


def _pairs(fields: dict[str, dict[str, Any]], names: Iterable[str]) -> Iterable[Region]:
    for field in (fields[name] for name in names if name in fields):
        opening, closing = (_literals(field.get(key)) for key in ("open", "close"))
        yield from ((mark, closing[0]) for mark in opening if closing)


def _literals(markers: Any) -> list[str]:
    return [markers] if isinstance(markers, str) else list(markers or ())


def _ids(ids: Ids) -> tuple[int, ...]:
    return () if ids is None else (ids,) if isinstance(ids, int) else tuple(ids)
