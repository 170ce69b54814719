"""Finds a model's regions and their markers in mlx-lm's tokenizer, a response template or the chat template."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from stopscan.regions._names import NAMES, Graph, edges_of, region_name, region_names
from stopscan.segments import FORMATS, from_response_template

# `FORMATS` has a form (the markers) for each family of models. Two forms may have the same markers. For one of them,
# `SIGNS` has a text that only the chat templates of this form contain.
SIGNS = {"glm45": "<arg_key>"}

# mlx-lm's name of a region, and stopscan's name of the same region. All other regions have the same name in both.
PARTS = {"normal": "answer", "tool": "tool_call"}


def graph_of(tokenizer: Any, /) -> Graph | None:
    """Returns the regions of the model's answers with their markers, or ``None`` if they are not known.

    There are three sources, in this order: mlx-lm's wrapper of the tokenizer, the response template, and the form in
    ``FORMATS`` whose markers the chat template has. The source that has the most of the regions ``reasoning`` and
    ``tool_call`` is used. If several have equally many, the first of them is used.

    >>> graph_of(AutoTokenizer.from_pretrained("Qwen/Qwen3-0.6B"))["reasoning"]
    {'</think>': 'answer', '<tool_call>': 'tool_call'}
    """
    template = getattr(tokenizer, "response_template", None)
    try:
        declared = from_response_template(template) if template else None
    except (ValueError, TypeError):  # if a marker is a regular expression, or the value is not a template
        declared = None
    sources = [_of_mlx_lm(tokenizer), declared, _of_chat_template(_template(tokenizer))]
    graphs = [graph for graph in sources if graph]
    # A source may lack a region. For example, for some models that reason, mlx-lm knows only the markers of tool calls.
    # So take the graph with the most regions.
    return max(graphs, key=lambda graph: len({*NAMES}.intersection(region_names(graph))), default=None)


def with_reasoning(graph: Graph | None, own: Graph | None, /) -> Graph | None:
    """Combines two graphs (regions and their markers) of one model: ``graph`` has the known regions of the model, and
    ``own`` has the regions that the parser of an engine reads.

    Returns ``graph`` if it has all markers of ``own`` that open a region or end the reasoning. Otherwise returns
    ``own``, and adds the tool calls of ``graph`` if ``own`` has no tool calls. If only one graph is known, returns this
    graph.
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
    if transitions:  # for each state, a list of its markers, each with the state to which it leads
        first = getattr(tokenizer, "_response_format", {}).get("initial_state", next(iter(transitions)))
        parts = dict.fromkeys([first, *transitions, *(to for edges in transitions.values() for _, to in edges)])
        return {_part(part): {mark: _part(to) for mark, to in transitions.get(part, ())} for part in parts}
    graph: dict[str, dict[str, str]] = {"answer": {}}
    if getattr(tokenizer, "has_thinking", False):
        graph["answer"][tokenizer.think_start] = "reasoning"
        graph["reasoning"] = {tokenizer.think_end: "answer"}
    if getattr(tokenizer, "has_tool_calling", False):
        # A call may begin in every region. A call in the reasoning ends the reasoning. A closing marker ends the call,
        # and the answer goes on. Some calls, such as Mistral's, have no closing marker.
        for markers in graph.values():
            markers[tokenizer.tool_call_start] = "tool_call"
        graph["tool_call"] = {tokenizer.tool_call_end: "answer"} if tokenizer.tool_call_end else {}
    return graph if len(graph) > 1 else None


def _part(part: str) -> str:
    return PARTS.get(part, part)


def _template(tokenizer: Any) -> str:
    """Returns the chat template. If the tokenizer has several named templates, they are joined."""
    template = getattr(tokenizer, "chat_template", None)
    templates = template.values() if isinstance(template, Mapping) else [template]
    return "\n".join(text for text in templates if isinstance(text, str))


@lru_cache(maxsize=16)
def _of_chat_template(template: str) -> Graph | None:
    """Returns the form in ``FORMATS`` whose markers fit ``template`` best, or ``None``. Longer markers count more."""
    best, highest = None, (0, False)
    for name, form in FORMATS.items():
        leads_to = {(marker, to) for _, marker, to in edges_of(form)}
        present = {marker for marker, _ in leads_to if marker in template}
        missing = {*NAMES}.intersection(region_names(form)) - {to for marker, to in leads_to if marker in present}
        # A form with reasoning fits only if the template has a marker that opens the reasoning. A form with tool calls
        # fits only if the template has a marker that opens them. `size` says how well the form fits: the total length
        # of its markers that the template has, minus one for each marker that the template lacks.
        size = sum(map(len, present)) - len({marker for marker, _ in leads_to} - present)
        score = size, SIGNS.get(name, "\0") in template
        if not missing and score > highest and size > 0:
            best, highest = form, score
    return best
