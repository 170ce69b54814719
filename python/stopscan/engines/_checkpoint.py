"""``Checkpoint``: makes the scanners of a model's answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypedDict

from stopscan import StopSet
from stopscan.engines._options import ANSWER, StopOptions
from stopscan.regions import Graph, graph_of, protected, segments_of
from stopscan.regions.shared import NAMES, read_protect, regions_in, start_region, without_regions
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenScanner, TokenSegmenter, Vocabulary

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The regions in which no stop fires by default, on routes that separate reasoning and tool calls from the answer.
CHAT = NAMES
# This many tokens at the end of a prompt are decoded to find the last marker in it. They are enough, because little
# text follows the marker.
PROMPT_TOKENS = 32
# Two options of every scanner that a `Checkpoint` makes. An id that the tokenizer lacks counts as a token without text,
# because an engine may sample unknown ids. An EOS ends the answer, even if it comes before ``min_tokens`` tokens.
AS_DRAWN: dict[str, Any] = {"unknown_ids": "count", "eos_ends_early": True}

Frozen = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
# The options of a request, or the stops of a program.
Options = StopOptions | StopSet | SegmentSet | Mapping[str, Mapping[str, str]] | str | Iterable[str] | None


class EngineOptions(TypedDict, total=False):
    """Options that come from the engine and not from the request.

    - ``region`` is the region in which the answer begins, whatever the prompt and the request say.
    - ``inside`` says whether the answer begins in the reasoning. It counts only if the request does not say where the
      answer begins, and no marker at the end of the prompt opens a region.
    - The other options are the same as in ``TokenScanner``.
    """

    eos_token_ids: int | Iterable[int] | None
    max_tokens: int | None
    skip_special_tokens: bool
    prompt_token_ids: Iterable[int] | None
    region: str | None
    inside: bool


class Checkpoint:
    """A model's tokenizer and the regions of its answers (reasoning, tool calls), shared by threads and requests.

    A second checkpoint for the same tokenizer is cheap, because vocabularies and compiled sets are cached. Pass
    ``graph`` if the engine knows the regions better than the tokenizer and its chat template do. With ``narrow``, the
    scanner knows only regions that are protected. All other markers are plain text to it.

    >>> checkpoint = Checkpoint(tokenizer)
    >>> options = read_options(request_body, defaults, default=CHAT)
    >>> row = checkpoint.scanner(options, prompt_ids, eos_token_ids=2)
    """

    def __init__(self, tokenizer: Any, /, *, graph: Graph | None = None, narrow: bool = False) -> None:
        self.tokenizer = tokenizer
        self.graph: Graph = (graph_of(tokenizer) or {}) if graph is None else graph
        self.narrow = narrow
        self._frozen: Frozen = tuple((state, tuple(markers.items())) for state, markers in self.graph.items())

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokenizer. Raises ``TypeError`` for an object that cannot decode."""
        return Vocabulary(self.tokenizer)

    def scanner(self, options: Options, prompt: Any = (), **engine: Unpack[EngineOptions]) -> TokenScanner:
        """Returns the scanner of an answer to ``prompt``, which is text or token ids.

        ``options`` are those of a request (``read_options``), or the stops of a program. To check before the generation
        whether the options fit the model, call this without ``prompt`` and ``engine``.

        The scanner takes what engines generate: an id that the vocabulary lacks is a token without text, and an EOS
        ends the answer even before ``min_tokens``. Without stops, it still counts the tokens of the model's regions.

        Raises ``ValueError`` whose message begins with the name of the option, such as for a ``protect`` with a region
        that the model lacks. If a default has such a region, the region is left out without an error. If a marker of a
        default region has both a special token and other text, and the scanner leaves special tokens out of the text,
        all default regions are left out.
        """
        scanner: TokenScanner = self._make(TokenScanner, options, prompt, **engine)
        return scanner

    def segmenter(self, options: Options, prompt: Any = (), **engine: Unpack[EngineOptions]) -> TokenSegmenter:
        """Returns the segmenter of an answer. The arguments are the same as in ``scanner``. The segmenter's ``feed``
        returns segments of the model's regions, without the markers."""
        segmenter: TokenSegmenter = self._make(TokenSegmenter, options, prompt, **engine)
        return segmenter

    def stops(self, options: Options) -> StopSet:
        """Returns the ``StopSet`` of the scanner that ``scanner`` would return. Sets are cached.

        Call this if the engine itself scans the text.

        Raises ``ValueError`` as ``scanner`` does.
        """
        stops: StopSet = self._set(TokenScanner, as_options(options))
        return stops

    def start_region(
        self, options: Options, stops: StopSet | SegmentSet, prompt: Any = (), *, inside: bool = False
    ) -> str | None:
        """Returns the region in which the answer begins. Pass it as ``region`` to a scanner of the set ``stops``.
        ``None`` stands for the scanner's default."""
        start, end = as_options(options).start_protected, prompt
        if not isinstance(prompt, str):
            has_regions = isinstance(stops, SegmentSet) or stops.regions is not None or stops.protect
            end = self._end_of(prompt) if has_regions and start is None else ""
        try:
            return start_region(stops, end, start, inside=inside)
        except ValueError:  # no region is protected: the model has none, or a marker of the region is a stop
            return None

    def _make(self, kind: Any, given: Options, prompt: Any, **engine: Any) -> Any:
        options: Any = as_options(given)
        stops, region, inside = self._set(kind, options), engine.pop("region", None), engine.pop("inside", False)
        row = {name: getattr(options, name) for name in ("stop_token_ids", "min_tokens", "include_stop")} | AS_DRAWN
        try:
            region = region or self.start_region(options, stops, prompt, inside=inside)
            return kind(self.vocabulary, stops, region=region, **row, **engine)
        except ValueError as error:
            if kind is TokenScanner and options.protect is None and stops != options.stops:
                # A marker of a default region has both a special token and other text. The scanner leaves special
                # tokens out of the text, so it could not find this marker. The request did not ask for the default
                # regions, so make a scanner without them.
                return kind(self.vocabulary, options.stops, **row, **engine)
            raise _named(error) from None

    def _set(self, kind: Any, options: StopOptions) -> Any:
        stops, by_default = options.stops, options.protect is None
        if isinstance(stops, SegmentSet):
            if options.protect or options.start_protected is not None:
                raise ValueError("protect: a SegmentSet takes no protect and no start_protected: use its stop_in")
            return stops
        try:
            names, pairs = read_protect(options.default if by_default else options.protect, (*NAMES, ANSWER))
            if options.start_protected and not (names or pairs or stops.regions or stops.protect):
                raise ValueError("start_protected: the stops have no protected region")
            entries = (*names, *pairs)
            return _compiled(stops, entries, self._frozen, by_default, self.narrow, segments=kind is TokenSegmenter)
        except ValueError as error:
            raise _named(error) from None

    def _end_of(self, prompt: Any) -> str:
        """Returns the end of the token ids ``prompt`` as text, with its special tokens."""
        ids = prompt[-PROMPT_TOKENS:]
        scanner = TokenScanner(self.vocabulary, skip_special_tokens=False, unknown_ids="count")
        return scanner.feed_many(ids.tolist() if hasattr(ids, "tolist") else ids) + scanner.flush()


def as_options(options: Options) -> StopOptions:
    """Returns ``options`` as ``StopOptions``. The options of a request already are ``StopOptions``. A program may pass
    stops instead: the other options then have their defaults."""
    if isinstance(options, StopOptions):
        return options
    return StopOptions(SegmentSet(options) if isinstance(options, SegmentSet | Mapping) else StopSet(options))


@lru_cache(maxsize=64)
def _compiled(
    stops: StopSet, entries: tuple[Any, ...], frozen: Frozen, by_default: bool, narrow: bool, *, segments: bool
) -> StopSet | SegmentSet:
    graph: Graph = {state: dict(markers) for state, markers in frozen}
    if by_default and ANSWER in entries:  # the route sends no content, so only `repeat` fires
        stops, entries = StopSet(repeat=stops.repeat), ()
    if narrow:
        graph = without_regions(graph, [name for name in NAMES if name not in entries])
    protect = regions_in(graph, entries) if by_default else entries
    if segments:
        return segments_of(stops, graph or {ANSWER: {}}, protect)
    if protect or stops.regions is not None:
        return protected(stops, graph, protect)
    if len(stops) > (stops.repeat is not None) or narrow or not graph:
        return stops
    # There is no stop except perhaps `repeat`, which fires in every region. So the set needs no regions for its stops.
    # It gets them nevertheless, because a scanner counts the tokens of each region only if its set has regions.
    return StopSet(regions=graph, repeat=stops.repeat)


def _named(error: ValueError) -> ValueError:
    """Returns ``error`` with a message that begins with the name of an option. If it has none, adds ``protect: ``."""
    first = str(error).split(maxsplit=1)[0].rstrip(":")
    options = {*EngineOptions.__annotations__, *StopOptions.__annotations__}
    return error if first in options else ValueError(f"protect: {error}")
