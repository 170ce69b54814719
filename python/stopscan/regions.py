"""Where a checkpoint thinks, answers and calls tools: its graph of regions, and stops that do not fire in some of them.

Every adapter asks here, so that stops, protection and segments agree. The regions have the names of
``stopscan.segments.FORMATS``: ``answer``, ``reasoning`` and ``tool_call``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypedDict

from stopscan import StopSet
from stopscan.segments import FORMATS, Segmenter, SegmentSet, from_response_template, keep

__all__ = [
    "NAMES",
    "PROTECTED",
    "Graph",
    "Protect",
    "RegionOptions",
    "graph_of",
    "known",
    "protected",
    "region_after",
    "segments_of",
]

Graph = Mapping[str, Mapping[str, str]]
Protect = str | Iterable[str | Sequence[str]]

# The regions that are not for stops, unless somebody asks for them.
NAMES = ("reasoning", "tool_call")

# How the name of a region ends that is between the markers of a pair.
PROTECTED = " protected"

# What the templates of a form have beside its markers, which are another form's, too.
SIGNS = {"glm45": "<arg_key>"}

# What chat templates write behind a prompt is not longer, in code points.
PROMPT_END = 256

# The regions that somebody reads. Any other is the form's own, such as a header: "assistant to=self".
TEXTS = ("answer", *NAMES)
HEADER = re.compile(r"[\w .=-]*\s*")

# mlx-lm's names of parts that have another one here.
PARTS = {"normal": "answer", "tool": "tool_call"}


class RegionOptions(TypedDict, total=False):
    """The options about regions: in which regions no stop fires, and whether the text begins in the first of these
    regions. ``None`` asks the prompt.
    """

    protect: Protect
    start_protected: bool | None


def graph_of(tokenizer: Any, /) -> Graph | None:
    """Returns the regions of the answers of a tokenizer's model, with their markers, or ``None`` if they are not known.

    What mlx-lm knows of its model counts first, then the tokenizer's response template, then the form of ``FORMATS``
    whose markers the chat template has.

    >>> graph_of(AutoTokenizer.from_pretrained("Qwen/Qwen3-0.6B"))["reasoning"]
    {'</think>': 'answer', '<tool_call>': 'tool_call'}
    """
    template = getattr(tokenizer, "response_template", None)
    try:
        declared = from_response_template(template) if template else None
    except (ValueError, TypeError):  # its anchors are no literals, or it is no template
        declared = None
    found = [_of_mlx_lm(tokenizer), declared, _of_chat_template(_template(tokenizer))]
    graphs = [graph for graph in found if graph]
    # mlx-lm knows the tool calls alone of some models that think.
    return max(graphs, key=lambda graph: len({*NAMES} & _regions(graph)), default=None)


def protected(stops: StopSet, graph: Graph | None, protect: Protect = NAMES, /) -> StopSet:
    """Returns ``stops`` as a ``StopSet`` whose stops do not fire in the regions of ``protect`` either.

    ``protect`` has names of regions and pairs of markers. The two markers of a pair may also stand in the list one
    after the other. If a stop is a marker of a region, the stop counts, and the region is not protected. A set with
    ``regions`` of its own is returned as it is.

    Raises ``ValueError`` for a name that the graph lacks. Without ``protect`` such a name is no error.

    >>> stops = protected(StopSet("END"), FORMATS["qwen3"])
    >>> stops.truncate("<think>END</think>Yes. END")
    ('<think>END</think>Yes. ', StopMatch("END", 23))
    """
    if stops.regions is not None:
        read(protect)  # for its errors
        return stops
    names, pairs = _chosen(stops, graph, protect)
    if names:
        regions, stop_in = _with_stops(stops, graph or {}, names, pairs)
        return StopSet(stops.stop, regions=regions, stop_in=stop_in, **_others(stops))
    return StopSet(stops.stop, protect=pairs, **_others(stops)) if pairs else stops


def segments_of(stops: StopSet, graph: Graph, protect: Protect = NAMES, /) -> SegmentSet:
    """Returns the segments of ``graph`` as a ``SegmentSet`` with the stops of ``stops``, which do not fire in the
    regions of ``protect`` either.

    ``protect`` and the errors are those of ``protected``. The markers of a pair stay in the text. The text between the
    two markers is a segment of its own, whose region has the name of the region around it and ``PROTECTED``.

    >>> segments = segments_of(StopSet("END"), FORMATS["qwen3"], ["reasoning", "(", ")"])
    >>> list(split(["<think>END</think>Yes (END). END"], segments))
    [('reasoning', 'END'), ('answer', 'Yes '), ('answer protected', '(END'), ('answer', '). ')]
    """
    regions, stop_in = _with_stops(stops, graph, *_chosen(stops, graph, protect))
    return SegmentSet(regions, stop=stops.stop, stop_in=stop_in, **_others(stops))


def region_after(graph: Graph, prompt_end: str, /) -> str:
    """Returns the region in which the answer to a prompt begins.

    Only markers at the end of the prompt open a region, where chat templates put markers: between two of them, and
    behind the last, there is nothing but white space, or the words of a header. So a user who writes about markers
    cannot switch the operator's stops off.

    Raises ``ValueError`` for a graph without regions.

    >>> region_after(FORMATS["qwen3"], "<|im_start|>assistant\\n<think>\\n")
    'reasoning'
    >>> region_after(FORMATS["harmony"], "<|start|>assistant<|channel|>analysis<|message|>")
    'reasoning'
    """
    if not graph:
        raise ValueError("a graph has at least one region")
    first = next(iter(graph))
    end = prompt_end[-PROMPT_END:]
    starts = [start for start in range(len(end)) if end.startswith(tuple(graph[first]), start)]
    if starts:
        segments = _without_kept(tuple((state, tuple(graph[state].items())) for state in graph))
        for start in starts:
            segmenter = Segmenter(segments)
            parts = [*segmenter.feed(end[start:]), *segmenter.flush()]
            if not any(text.strip() if region in TEXTS else HEADER.fullmatch(text) is None for region, text in parts):
                return segments.region_after(end[start:])
    return first


def begins(stops: StopSet, prompt_end: str, start_protected: bool | None) -> dict[str, Any]:
    """Returns the options of a scanner of ``stops`` that say where the text after a prompt begins."""
    if stops.regions is None:
        opened = [pair for pair in stops.protect if prompt_end.rstrip().endswith(pair[0])]
        if start_protected is None and opened:
            return {"region": opened[0][0]}
        return {"start_protected": bool(start_protected)}
    if start_protected is None:
        return {"region": region_after(stops.regions, prompt_end)}
    closed = [region for region in stops.regions if _name(region) not in stops.stop_in]
    if start_protected and not closed:
        raise ValueError("start_protected: nothing is protected")
    return {"region": closed[0] if start_protected else next(iter(stops.regions))}


def known(graph: Graph | None, protect: Protect) -> list[Any]:
    """Returns ``protect`` without the names that the graph lacks, as for a server's default."""
    names, pairs = read(protect)
    return [*(name for name in names if name in _regions(graph or {})), *pairs]


def read(protect: object, regions: Sequence[str] = NAMES) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the names of regions, and the pairs of markers, that ``protect`` has.

    Raises ``ValueError`` for an entry that is neither a name in ``regions`` nor a pair of markers.

    >>> read(["reasoning", "<a>", "</a>"])
    (['reasoning'], [('<a>', '</a>')])
    """
    if isinstance(protect, str):
        protect = [protect]
    if not isinstance(protect, Iterable):
        raise ValueError(f"protect must be a list of regions, not {protect!r}")
    names, pairs = [], []
    items: Iterator[object] = iter(protect)
    for item in items:
        if item in regions:
            names.append(str(item))
        elif isinstance(item, list | tuple):
            if len(item) != 2:
                raise ValueError(f"protect: {item!r} is not an opening and a closing marker")
            pairs.append((_marker(item[0]), _marker(item[1])))
        else:
            closing = next(items, None)
            if closing is None:
                raise ValueError(f"protect: {item!r} is neither a name, one of {NAMES}, nor has it a closing marker")
            pairs.append((_marker(item), _marker(closing)))
    return names, pairs


def _marker(item: object) -> str:
    if not isinstance(item, str) or not item:
        raise ValueError(f"protect: {item!r} is no marker")
    return item


def _name(state: str) -> str:
    return state.split("/", 1)[0]


def _regions(graph: Graph) -> set[str]:
    return {_name(state) for state in graph}


def _others(stops: StopSet) -> dict[str, Any]:
    """Returns the options that ``StopSet`` and ``SegmentSet`` share, but for stops and regions."""
    return {name: getattr(stops, name) for name in ("patterns", "visible", "max_held", "repeat")}


def _chosen(stops: StopSet, graph: Graph | None, protect: Protect) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the regions, and the pairs of markers, that are to be protected: those of ``stops``, too."""
    names, pairs = read(protect)
    regions = _regions(graph or {})
    if protect is NAMES:
        names = [name for name in names if name in regions]
    for name in names:
        if name not in regions:
            raise ValueError(f"protect: this model has no markers for {name!r}; name the markers instead")
    taken = {*stops.stop, *stops.visible}
    return names, [pair for pair in dict.fromkeys([*pairs, *stops.protect]) if taken.isdisjoint(pair)]


def _with_stops(
    stops: StopSet, graph: Graph, names: list[str], pairs: list[tuple[str, str]]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Returns the graph with the pairs and without the markers that are stops, and the regions where stops fire."""
    # The pair of a region that the graph has is another name of the region.
    own = {marker: _name(to) for markers in graph.values() for marker, to in markers.items() if _name(to) in NAMES}
    closed = {*names, *(own[opening] for opening, _ in pairs if opening in own)}
    taken = {*stops.stop, *stops.visible}
    spared = {_name(region) for region, markers in graph.items() if not taken.isdisjoint(markers)}
    spared |= {_name(to) for markers in graph.values() for mark, to in markers.items() if mark in taken}
    # What is neither is the form's own, such as Harmony's headers, and for nobody. A response template may have no name
    # for the answer: then the answer is where the text begins.
    ordered = list(dict.fromkeys(map(_name, graph)))
    text = {"answer" if "answer" in ordered else ordered[0], *NAMES}
    stop_in = [region for region in ordered if region in (text - closed) | spared]
    regions = {
        state: {mark: to for mark, to in markers.items() if mark not in taken} for state, markers in graph.items()
    }
    inside: dict[str, dict[str, str]] = {}
    for state in [state for state in regions if _name(state) in text]:
        for number, (opening, closing) in enumerate(pair for pair in pairs if pair[0] not in own):
            if opening not in graph[state]:
                between = f"{_name(state)}{PROTECTED}/{number}/{state}"
                regions[state][opening] = keep(between)
                inside[between] = {closing: keep(state)}
    return regions | inside, stop_in


def _of_mlx_lm(tokenizer: Any) -> Graph | None:
    transitions = getattr(tokenizer, "response_transitions", None)
    if transitions:  # of models whose answers have several parts: {part: [(marker, the part that it leads to)]}
        first = getattr(tokenizer, "_response_format", {}).get("initial_state", next(iter(transitions)))
        parts = dict.fromkeys([first, *transitions, *(to for edges in transitions.values() for _, to in edges)])
        return {_part(part): {mark: _part(to) for mark, to in transitions.get(part, ())} for part in parts}
    graph: dict[str, dict[str, str]] = {"answer": {}}
    if getattr(tokenizer, "has_thinking", False):
        graph["answer"][tokenizer.think_start] = "reasoning"
        graph["reasoning"] = {tokenizer.think_end: "answer"}
    if getattr(tokenizer, "has_tool_calling", False):
        # A call that begins in the reasoning ends it. Mistral's calls end with the answer: they have no closing marker.
        for markers in graph.values():
            markers[tokenizer.tool_call_start] = "tool_call"
        graph["tool_call"] = {tokenizer.tool_call_end: "answer"} if tokenizer.tool_call_end else {}
    return graph if len(graph) > 1 else None


def _part(part: str) -> str:
    return PARTS.get(part, part)


@lru_cache(maxsize=16)
def _without_kept(graph: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> SegmentSet:
    """The segments of a graph whose markers are never text."""
    return SegmentSet({state: {marker: str(to) for marker, to in markers} for state, markers in graph})


def _template(tokenizer: Any) -> str:
    """Its chat template, or all of them: some tokenizers have one for each use, by name."""
    template = getattr(tokenizer, "chat_template", None)
    templates = template.values() if isinstance(template, Mapping) else [template]
    return "\n".join(text for text in templates if isinstance(text, str))


@lru_cache(maxsize=16)
def _of_chat_template(template: str) -> Graph | None:
    best, most = None, (0, False)
    for name, form in FORMATS.items():
        edges = {(marker, _name(to)) for markers in form.values() for marker, to in markers.items()}
        found = {marker for marker, _ in edges if marker in template}
        missing = {*NAMES} & _regions(form) - {to for marker, to in edges if marker in found}
        # A form of which a region cannot be entered is another model's; of several, more of the template is one's own.
        size = sum(map(len, found)) - len({marker for marker, _ in edges} - found)
        known = size, SIGNS.get(name, "\0") in template
        if not missing and known > most and size > 0:
            best, most = form, known
    return best
