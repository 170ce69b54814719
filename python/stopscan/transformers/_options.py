"""What the scanners of all rows share: the compiled stops, the regions, and the ids that end a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stopscan import StopSet
from stopscan._protect import PROMPT_TOKENS, Protect, Region, Regions, protected, regions
from stopscan.tokens import TokenScanner, Vocabulary

Stop = StopSet | str | Iterable[str] | None
Ids = int | Iterable[int] | None

# The fields of response templates that are each region, by transformers' names.
FIELDS = {"reasoning": ("reasoning_content", "reasoning", "thinking"), "tool_calls": ("tool_calls",)}


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
    ) -> None:
        # Processors of several kinds of input carry their tokenizer.
        self.tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
        self._vocabulary = Vocabulary(self.tokenizer)
        self.stops = stop if isinstance(stop, StopSet) else StopSet(stop)
        self.eos_token_ids = _ids(self.tokenizer.eos_token_id if eos_token_ids is None else eos_token_ids)
        # What trimmed rows are filled with, as transformers fills those that ended.
        pad = self.tokenizer.pad_token_id
        self.pad_token_id: int = pad if pad is not None else next(iter(self.eos_token_ids), 0)
        self.min_tokens = min_tokens
        self._regions = regions(protect, named_regions(self.tokenizer)) if protect else ()
        self._start_protected = start_protected
        self._given: dict[str, Any] = {
            "stop_token_ids": _ids(stop_token_ids),
            "eos_token_ids": self.eos_token_ids,
            "min_tokens": min_tokens,
            "include_stop": include_stop,
            "skip_special_tokens": skip_special_tokens,
        }
        self.scanner(())  # bad options raise before the generation

    def scanner(self, prompt: Sequence[int]) -> TokenScanner:
        """The scanner of a row that begins after ``prompt``."""
        stops, inside = self.stops, bool(self._start_protected)
        if self._regions or stops.protect:
            end = self.tokenizer.decode(list(prompt[-PROMPT_TOKENS:]), skip_special_tokens=False)
            stops, inside = protected(stops, self._regions, end, self._start_protected)
        return TokenScanner(self._vocabulary, stops, start_protected=inside, prompt_token_ids=prompt, **self._given)


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
