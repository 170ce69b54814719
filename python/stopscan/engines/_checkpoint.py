"""``Checkpoint``: makes the scanners of a model's answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from stopscan import StopSet
from stopscan.regions import NAMES, Graph, begins, graph_of, known, protected, read_protect, region_after
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

# The regions in which no stop fires by default, on routes that separate reasoning and tool calls from the answer.
CHAT = NAMES
# How many tokens at the end of a prompt are decoded to find its last marker. 32 suffice: little text follows a marker.
PROMPT_TOKENS = 32

Frozen = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


class Checkpoint:
    """A model's tokenizer and the regions of its answers (reasoning, tool calls), shared by threads and requests.

    A second checkpoint for the same tokenizer is cheap, because vocabularies and compiled sets are cached. ``graph`` is
    for engines that know the regions better than the tokenizer and its chat template do.

    >>> checkpoint = Checkpoint(tokenizer)
    >>> row = checkpoint.scanner(StopSet("END"), prompt_ids, default=CHAT, eos_token_ids=2)
    """

    def __init__(self, tokenizer: Any, /, *, graph: Graph | None = None) -> None:
        self.tokenizer = tokenizer
        self.graph: Graph = (graph_of(tokenizer) or {}) if graph is None else graph
        self._frozen: Frozen = tuple((state, tuple(markers.items())) for state, markers in self.graph.items())

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokenizer. Raises ``TypeError`` for a tokenizer of an unknown kind."""
        return Vocabulary(self.tokenizer)

    def stops(self, stops: StopSet, protect: Any = None, default: Any = ()) -> StopSet:
        """Returns a set with the stops of ``stops``, which do not fire in the regions of ``protect``. Sets are cached.

        If ``protect`` is ``None``, the regions of ``default`` are protected, except those that the model lacks. If
        ``stops`` has no stops, the set still has the model's regions, so that its scanner counts their tokens.

        Raises ``ValueError`` whose message begins with ``protect``, such as for a region that the model lacks.
        """
        try:
            return _in_regions(stops, self._frozen, None if protect is None else _plain(protect), _plain(default))
        except ValueError as error:
            message = str(error)
            raise ValueError(message if message.startswith("protect") else f"protect: {message}") from None

    def begins(
        self, stops: StopSet, prompt: Any = (), start_protected: bool | None = None, *, inside: bool = False
    ) -> str | None:
        """Returns the region in which the answer begins, for a scanner's argument ``region``. ``None`` means the
        default of the scanner.

        ``prompt`` is text or token ids. The markers at its end decide, unless ``start_protected`` is given. If no
        marker there opens a region and ``inside`` is true, the answer begins in the reasoning.

        Raises ``ValueError`` if ``start_protected`` is true and no region is protected. The message begins with
        ``start_protected``.
        """
        prompt_decides = (stops.regions is not None or stops.protect) and start_protected is None
        return begins(stops, self._end_of(prompt) if prompt_decides else "", start_protected, inside=inside)

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
        """Returns the scanner of an answer. The methods ``stops`` and ``begins`` explain the arguments.

        The scanner accepts what engines generate: an id that the vocabulary lacks is a token without text, and an EOS
        ends the answer even before ``min_tokens``. The other ``options`` are those of ``TokenScanner``.
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
        """Returns the segmenter of an answer. Like a ``scanner``, it accepts what engines generate.

        ``segments`` has the stops. The answer begins in ``region``, or if that is ``None``, in the region that is open
        at the end of ``prompt``.
        """
        segments = SegmentSet(segments)
        region = region or region_after(segments.markers, self._end_of(prompt))
        return TokenSegmenter(self.vocabulary, segments, region=region, **AS_DRAWN, **options)

    def _end_of(self, prompt: Any) -> str:
        """Returns the end of ``prompt`` as text, with its special tokens."""
        if isinstance(prompt, str):
            return prompt
        ids = prompt[-PROMPT_TOKENS:]
        scanner = TokenScanner(self.vocabulary, skip_special_tokens=False, unknown_ids="count")
        return scanner.feed_many(ids.tolist() if hasattr(ids, "tolist") else ids) + scanner.flush()


AS_DRAWN: dict[str, Any] = {"unknown_ids": "count", "eos_ends_early": True}


@lru_cache(maxsize=16)
def _in_regions(stops: StopSet, frozen: Frozen, protect: Any, default: Any) -> StopSet:
    graph = {state: dict(markers) for state, markers in frozen}
    entries = known(graph, default) if protect is None else protect
    if entries or stops.regions is not None:
        return protected(stops, graph, entries)
    if stops.stop or stops.patterns or stops.visible or not graph:
        return stops
    # No strings, patterns or protected regions. `repeat` fires everywhere; the regions are there to count their tokens.
    return StopSet(regions=graph, repeat=stops.repeat)


def _plain(protect: Any) -> tuple[Any, ...]:
    """Returns ``protect`` as a hashable value, for the cache."""
    names, pairs = read_protect(protect)
    return (*names, *pairs)
