"""Removes regions from a graph."""

from __future__ import annotations

from collections.abc import Collection

from stopscan.regions._names import NAMES, Graph, region_name, region_names

ANSWER = "answer"


def without_regions(graph: Graph, names: Collection[str], /) -> Graph:
    """Returns ``graph`` without the regions of ``names``, which are ``reasoning``, ``tool_call`` or both.

    Adapters use it for a route that does not separate all regions, such as a route without a parser of tool calls. The
    text and the markers of a removed region become part of the answer. So a stop can begin before a marker and end
    after it. A graph that also has regions of other kinds, such as Harmony's headers, is returned unchanged.

    >>> without_regions({"answer": {"<think>": "reasoning", "<call>": "tool_call"},
    ...                  "reasoning": {"</think>": "answer"}, "tool_call": {"</call>": "answer"}}, ["tool_call"])
    {'answer': {'<think>': 'reasoning'}, 'reasoning': {'</think>': 'answer'}}
    """
    regions = {*region_names(graph)}
    if regions - {ANSWER, *NAMES} or regions.isdisjoint(names):
        return graph
    kept = {state: markers for state, markers in graph.items() if region_name(state) not in names}
    removed = {state: markers for state, markers in graph.items() if state not in kept}
    # A marker that led to a removed region now leads to the region that followed the removed one.
    end_of = {
        state: next((to for to in markers.values() if to in kept), next(iter(graph)))
        for state, markers in removed.items()
    }
    # In some graphs, the closing marker of a region also counts in the answer, and leads back to the answer. If all
    # regions that the marker closes are removed, the marker becomes plain text.
    closing = {marker for markers in removed.values() for marker in markers}
    closing -= {marker for state, markers in kept.items() if region_name(state) != ANSWER for marker in markers}

    def is_text(state: str, marker: str, to: str) -> bool:
        in_answer, to_answer = region_name(state) == ANSWER, region_name(to) == ANSWER
        return in_answer and (to in removed or (to_answer and marker in closing))

    return {
        state: {marker: end_of.get(to, to) for marker, to in markers.items() if not is_text(state, marker, to)}
        for state, markers in kept.items()
    }
