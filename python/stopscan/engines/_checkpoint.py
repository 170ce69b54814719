"""What stopscan knows of a model, and the scanners of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from stopscan import StopSet
from stopscan.regions import NAMES, Graph, graph_of, known, protected, region_after
from stopscan.regions._names import region_name, regions_in
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

# The default of routes that tell reasoning and calls from the answer.
CHAT = NAMES
# How many of a prompt's last tokens are looked at: chat templates end with a marker and line breaks.
PROMPT_TOKENS = 32

Frozen = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


class Checkpoint:
    """A model's tokenizer and the regions of its answers, shared by threads and requests; it is cheap to make again.

    ``graph`` is for engines that know the regions better than the tokenizer and its chat template.
    """

    def __init__(self, tokenizer: Any, /, *, graph: Graph | None = None) -> None:
        self.tokenizer = tokenizer
        self.graph: Graph = (graph_of(tokenizer) or {}) if graph is None else graph
        self._frozen: Frozen = tuple((state, tuple(markers.items())) for state, markers in self.graph.items())

    @property
    def vocabulary(self) -> Vocabulary:
        """Raises ``TypeError`` for a tokenizer that cannot be scanned."""
        return Vocabulary(self.tokenizer)

    def stops(self, stops: StopSet, protect: Any = None, default: Any = ()) -> StopSet:
        """Returns ``stops`` that do not fire in the regions of ``protect``. Where a request has none, ``default``
        counts, of which the model need not have every region. The set is compiled once, and kept for a while.

        Raises ``ValueError`` for a region of ``protect`` that the model does not have.
        """
        return _in_regions(stops, self._frozen, None if protect is None else _plain(protect), _plain(default))

    def prompt_end(self, prompt: Any) -> str:
        """The end of a prompt, text or token ids, as text with its special tokens."""
        if isinstance(prompt, str):
            return prompt
        ids = prompt[-PROMPT_TOKENS:]
        ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        return str(self.tokenizer.decode(ids)) if ids else ""

    def begins(
        self, stops: StopSet, prompt: Any = (), start_protected: bool | None = None, *, inside: bool = False
    ) -> str | None:
        """Returns the region in which the answer begins, for ``region=``; ``None`` where there is one region alone.

        ``inside`` says that the engine knows that the answer begins in the reasoning, though no marker says so.
        """
        graph: Graph
        if stops.regions is not None:
            graph = stops.regions
            closed = [state for state in graph if region_name(state) not in stops.stop_in]
        else:
            closed = [opening for opening, _ in stops.protect]
            graph = {"answer": {opening: opening for opening in closed}}
        first = next(iter(graph))
        if start_protected and not closed:
            raise ValueError("start_protected: nothing is protected")
        if start_protected is not None:
            return closed[0] if start_protected else first
        end = self.prompt_end(prompt)
        if stops.regions is None:
            return next((opening for opening in closed if end.rstrip().endswith(opening)), None)
        found = region_after(graph, end)
        thoughts = [state for state in graph if region_name(state) == "reasoning"]
        return thoughts[0] if inside and thoughts and found == first else found

    def scanner(
        self,
        stops: StopSet,
        prompt: Any = (),
        *,
        protect: Any = None,
        start_protected: bool | None = None,
        default: Any = (),
        inside: bool = False,
        **options: Any,
    ) -> TokenScanner:
        """Returns the scanner of an answer. Ids that the vocabulary lacks are tokens without text, as engines draw
        them. ``options`` are those of ``TokenScanner``."""
        stops = self.stops(stops, protect, default)
        region = self.begins(stops, prompt, start_protected, inside=inside)
        return TokenScanner(self.vocabulary, stops, region=region, unknown_ids="count", **options)

    def segmenter(
        self,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        prompt: Any = (),
        *,
        region: str | None = None,
        **options: Any,
    ) -> TokenSegmenter:
        """Returns the segmenter of an answer, as ``scanner`` does; the set has the stops."""
        segments = SegmentSet(segments)
        region = region or region_after(segments.markers, self.prompt_end(prompt))
        return TokenSegmenter(self.vocabulary, segments, region=region, unknown_ids="count", **options)


@lru_cache(maxsize=128)
def _in_regions(stops: StopSet, frozen: Frozen, protect: Any, default: Any) -> StopSet:
    graph = {state: dict(markers) for state, markers in frozen}
    closed = known(graph, default) if protect is None else protect
    if not closed or stops.regions is not None:
        return protected(stops, graph, closed) if closed else stops
    if stops.stop or stops.patterns or stops.visible:
        return protected(stops, graph, closed)
    # A loop ends an answer in every region; without any stop the regions are there for usage alone.
    return StopSet(regions=graph, stop_in=[*regions_in(graph)], repeat=stops.repeat) if graph else stops


def _plain(protect: Any) -> tuple[Any, ...]:
    """``protect`` as values that can be a key."""
    entries = (protect,) if isinstance(protect, str) else protect
    return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in entries)
