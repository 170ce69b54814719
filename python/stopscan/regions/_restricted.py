"""A graph of regions for a text that is told apart into some of them only."""

from __future__ import annotations

from collections.abc import Collection

from stopscan.regions._names import NAMES, Graph, region_name

ANSWER = "answer"


def restricted(graph: Graph, names: Collection[str], /) -> Graph:
    """Returns the graph with the answer and the regions ``names`` alone: what a route tells apart that has no parser of
    tool calls, for example.

    What stands in another region is answer then, and its markers are text, so that a stop may reach across them. A
    graph with regions of its own, such as Harmony's headers, is returned as it is.

    >>> restricted({"answer": {"<think>": "reasoning", "<call>": "tool_call"}, "reasoning": {"</think>": "answer"},
    ...             "tool_call": {"</call>": "answer"}}, ["reasoning"])
    {'answer': {'<think>': 'reasoning'}, 'reasoning': {'</think>': 'answer'}}
    """
    if {*map(region_name, graph)} - {ANSWER, *NAMES} or {*NAMES} <= {*names}:
        return graph
    kept = {state for state in graph if region_name(state) in (ANSWER, *names)}
    leads = {state: next((to for to in graph[state].values() if to in kept), next(iter(graph))) for state in graph}
    # A closing marker that is left over in the answer would be taken for an edge, too.
    left = {mark for state in graph if state not in kept for mark in graph[state]}
    left -= {mark for state in kept if region_name(state) != ANSWER for mark in graph[state]}
    return {
        state: {
            mark: to if to in kept else leads[to]
            for mark, to in graph[state].items()
            if region_name(state) != ANSWER or (to in kept and not (region_name(to) == ANSWER and mark in left))
        }
        for state in graph
        if state in kept
    }
