"""What one request asks of stopscan, as plain values that go from the scheduler to the detokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from stopscan import Repeat, StopSet
from stopscan._engine.graphs import Frozen, beginning, thawed
from stopscan._engine.sets import stop_set
from stopscan.regions import known, protected
from stopscan.sglang._everywhere import Everywhere
from stopscan.tokens import TokenScanner, Vocabulary


class Spec(NamedTuple):
    """The stops of the user, those that sglang adds, the regions for neither of the user's, and the options of ids."""

    stop: tuple[str, ...]
    everywhere: tuple[str, ...]
    patterns: tuple[str, ...]
    max_held: int | None
    repeat: Repeat | None
    protect: tuple[Any, ...]
    graph: Frozen
    begins: tuple[tuple[str, Any], ...] = ()
    include_stop: bool = False
    stop_token_ids: tuple[int, ...] = ()
    skip_special_tokens: bool = True

    @property
    def stops(self) -> StopSet:
        """The set of it. Raises ``ValueError`` that begins with what is wrong."""
        stop = (*self.stop, *self.everywhere)
        return _stops(stop, self.patterns, self.max_held, self.repeat, self.protect, self.graph)

    def beginning_after(self, prompt_end: str, start_protected: bool | None, *, forced: bool) -> Spec:
        """The same for a prompt that ends with these words; ``forced``: the answer begins in the reasoning anyway."""
        if not self.protect:
            return self
        where = beginning(self.stops, prompt_end, start_protected, forced=forced)
        return self._replace(begins=tuple(where.items()))

    def scanner(self, vocabulary: Vocabulary, prompt_token_ids: Sequence[int]) -> TokenScanner | Everywhere:
        """A new scanner for it. Raises ``ValueError`` that begins with what is wrong."""
        options: dict[str, Any] = {
            "stop_token_ids": self.stop_token_ids,
            "include_stop": self.include_stop,
            "skip_special_tokens": self.skip_special_tokens,
            "prompt_token_ids": prompt_token_ids,
        }
        scanner = TokenScanner(vocabulary, self.stops, **options, **dict(self.begins))
        if not self.everywhere or not self.protect:
            return scanner
        return Everywhere(scanner, TokenScanner(vocabulary, stop_set(self.everywhere, (), (), None), **options))

    def end_of(self, text: str) -> int:
        """Where a whole text ends for its reader, in code points: at the stop that completes first."""
        found = [self.stops.find(text, **dict(self.begins))]
        if self.everywhere and self.protect:
            found.append(stop_set(self.everywhere, (), (), None).find(text))
        match = min(filter(None, found), key=lambda match: match.end, default=None)
        if match is None:
            return len(text)
        return match.end if self.include_stop or match.period else match.offset


@lru_cache(maxsize=128)
def _stops(
    stop: tuple[str, ...],
    patterns: tuple[str, ...],
    max_held: int | None,
    repeat: Repeat | None,
    protect: tuple[Any, ...],
    graph: Frozen,
) -> StopSet:
    try:
        plain = stop_set(stop, patterns, (), max_held, repeat)
    except ValueError as error:
        # sglang's own patterns come first in the list.
        raise ValueError(str(error).replace("stopscan_patterns", "stop_regex or stopscan_patterns", 1)) from error
    if not protect:
        return plain
    try:
        return protected(plain, thawed(graph), protect)
    except ValueError as error:
        raise ValueError(f"stopscan_protect: {str(error).removeprefix('protect').lstrip(': ')}") from error


def by_default(graph: Frozen, protect: Any) -> tuple[Any, ...]:
    """The regions of ``protect`` that this model has."""
    return tuple(known(thawed(graph), protect))
