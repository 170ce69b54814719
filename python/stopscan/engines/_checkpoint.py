"""What stopscan knows of a model, and the scanners of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from stopscan import StopSet
from stopscan.regions import NAMES, Graph, begins, graph_of, known, protected, read_protect, region_after
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

# The default for `protect` of routes that tell reasoning and calls from the answer.
CHAT = NAMES
# How many of a prompt's last tokens are looked at: chat templates end with a marker and line breaks.
PROMPT_TOKENS = 32

Frozen = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


class Checkpoint:
    """A model's tokenizer and the regions of its answers, shared by threads and requests.

    It is cheap to make again: vocabularies and compiled sets are kept elsewhere. ``graph`` is for engines that know the
    regions better than the tokenizer and its chat template.

    >>> checkpoint = Checkpoint(tokenizer)
    >>> row = checkpoint.scanner(StopSet("END"), prompt_ids, default=CHAT, eos_token_ids=2)
    """

    def __init__(self, tokenizer: Any, /, *, graph: Graph | None = None) -> None:
        self.tokenizer = tokenizer
        self.graph: Graph = (graph_of(tokenizer) or {}) if graph is None else graph
        self._frozen: Frozen = tuple((state, tuple(markers.items())) for state, markers in self.graph.items())

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The bytes of every token. Raises ``TypeError`` for a tokenizer that cannot be scanned."""
        return Vocabulary(self.tokenizer)

    def stops(self, stops: StopSet, protect: Any = None, default: Any = ()) -> StopSet:
        """Returns ``stops`` that do not fire in the regions of ``protect``. The set is compiled once, and kept for a
        while.

        Without ``protect`` the regions of ``default`` count that the model has. A set without stops still has the
        model's regions, so that its scanner counts their tokens.

        Raises ``ValueError`` that begins with ``protect``, such as for a region that the model does not have.
        """
        try:
            return _in_regions(stops, self._frozen, None if protect is None else _plain(protect), _plain(default))
        except ValueError as error:
            told = str(error)
            raise ValueError(told if told.startswith("protect") else f"protect: {told}") from None

    def begins(
        self, stops: StopSet, prompt: Any = (), start_protected: bool | None = None, *, inside: bool = False
    ) -> str | None:
        """Returns the state in which the answer to ``prompt``, text or token ids, begins, for ``region=``; ``None`` if
        the set has one region alone.

        ``start_protected`` counts most, then the markers at the prompt's end, then ``inside``: the engine's own word
        that the answer begins in the reasoning.

        Raises ``ValueError`` that begins with ``start_protected``, if nothing is protected.
        """
        ends = (stops.regions is not None or stops.protect) and start_protected is None
        return begins(stops, self._end_of(prompt) if ends else "", start_protected, inside=inside)

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
        """Returns the scanner of an answer: what ``stops`` and ``begins`` say, and for tokens as engines draw them. Ids
        that the vocabulary lacks are tokens without text, and an EOS ends the answer at any time.

        The other ``options`` are those of ``TokenScanner``.
        """
        stops = self.stops(stops, protect, default)
        region = self.begins(stops, prompt, start_protected, inside=inside)
        return TokenScanner(self.vocabulary, stops, region=region, **AS_DRAWN, **options)

    def segmenter(
        self,
        segments: SegmentSet | Mapping[str, Mapping[str, str]],
        prompt: Any = (),
        *,
        region: str | None = None,
        **options: Any,
    ) -> TokenSegmenter:
        """Returns the segmenter of an answer, as ``scanner`` does. The ``SegmentSet`` has the stops. ``region`` is
        where the answer begins; without it the prompt's end decides."""
        segments = SegmentSet(segments)
        region = region or region_after(segments.markers, self._end_of(prompt))
        return TokenSegmenter(self.vocabulary, segments, region=region, **AS_DRAWN, **options)

    def _end_of(self, prompt: Any) -> str:
        """The end of a prompt as text, with its special tokens."""
        if isinstance(prompt, str):
            return prompt
        ids = prompt[-PROMPT_TOKENS:]
        scanner = TokenScanner(self.vocabulary, skip_special_tokens=False, unknown_ids="count")
        return scanner.feed_many(ids.tolist() if hasattr(ids, "tolist") else ids) + scanner.flush()


AS_DRAWN: dict[str, Any] = {"unknown_ids": "count", "eos_ends_early": True}


@lru_cache(maxsize=16)
def _in_regions(stops: StopSet, frozen: Frozen, protect: Any, default: Any) -> StopSet:
    graph = {state: dict(markers) for state, markers in frozen}
    closed = known(graph, default) if protect is None else protect
    if closed or stops.regions is not None:
        return protected(stops, graph, closed)
    if stops.stop or stops.patterns or stops.visible or not graph:
        return stops
    # Without a stop no region needs protection, and all of them are there to be counted. A loop ends each of them.
    return StopSet(regions=graph, repeat=stops.repeat)


def _plain(protect: Any) -> tuple[Any, ...]:
    """``protect`` as values that can be a key."""
    names, pairs = read_protect(protect)
    return (*names, *pairs)
