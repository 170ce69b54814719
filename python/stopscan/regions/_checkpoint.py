"""The graph of regions of a checkpoint: what mlx-lm, a response template or a chat template knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from stopscan.regions._names import NAMES, Graph, region_name, regions_in
from stopscan.segments import FORMATS, from_response_template

# What the templates of a form have beside its markers, which are another form's, too.
SIGNS = {"glm45": "<arg_key>"}

# mlx-lm's names of parts that have another one here.
PARTS = {"normal": "answer", "tool": "tool_call"}


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
    return max(graphs, key=lambda graph: len({*NAMES} & regions_in(graph)), default=None)


def with_reasoning(graph: Graph | None, own: Graph | None, /) -> Graph | None:
    """Returns the graph of a checkpoint with the reasoning of ``own``, which an engine's parser knows better.

    If ``graph`` has the markers of ``own`` already, it is returned as it is. Otherwise only its tool calls are kept, if
    ``own`` has none. ``None`` if neither is known.
    """
    if not own or not graph:
        return own or graph
    first, inside = graph[next(iter(graph))], graph.get("reasoning", {})
    openings = next(iter(own.values()))
    closings = [mark for state, markers in own.items() if region_name(state) == "reasoning" for mark in markers]
    if all(mark in first for mark in openings) and all(mark in inside for mark in closings):
        return graph
    calls = {mark: "tool_call" for mark, to in first.items() if region_name(to) == "tool_call"}
    if "tool_call" in own or not calls:
        return own
    ends = dict.fromkeys(graph.get("tool_call", {}), "answer")
    return {**own, next(iter(own)): {**openings, **calls}, "tool_call": ends}


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


def _template(tokenizer: Any) -> str:
    """Its chat template, or all of them: some tokenizers have one for each use, by name."""
    template = getattr(tokenizer, "chat_template", None)
    templates = template.values() if isinstance(template, Mapping) else [template]
    return "\n".join(text for text in templates if isinstance(text, str))


@lru_cache(maxsize=16)
def _of_chat_template(template: str) -> Graph | None:
    best, most = None, (0, False)
    for name, form in FORMATS.items():
        edges = {(marker, region_name(to)) for markers in form.values() for marker, to in markers.items()}
        found = {marker for marker, _ in edges if marker in template}
        missing = {*NAMES} & regions_in(form) - {to for marker, to in edges if marker in found}
        # A form of which a region cannot be entered is another model's; of several, more of the template is one's own.
        size = sum(map(len, found)) - len({marker for marker, _ in edges} - found)
        known = size, SIGNS.get(name, "\0") in template
        if not missing and known > most and size > 0:
            best, most = form, known
    return best
