"""Removes regions from a graph."""

from __future__ import annotations

from collections.abc import Collection

from stopscan.regions._names import NAMES, Graph, region_name

ANSWER = "answer"


def restricted(graph: Graph, names: Collection[str], /) -> Graph:
    """Returns ``graph`` without the regions that are neither ``answer`` nor in ``names``.

    Adapters use it for a route that does not separate all regions, such as a route without a parser of tool calls. The
    text of the other regions becomes part of the answer, and so do their markers: a stop can reach across them. A graph
    that also has regions of other kinds, such as Harmony's headers, is returned unchanged.

    >>> restricted({"answer": {"<think>": "reasoning", "<call>": "tool_call"}, "reasoning": {"</think>": "answer"},
    ...             "tool_call": {"</call>": "answer"}}, ["reasoning"])
    {'answer': {'<think>': 'reasoning'}, 'reasoning': {'</think>': 'answer'}}
    """
    if {*map(region_name, graph)} - {ANSWER, *NAMES} or {*NAMES} <= {*names}:
        return graph
    kept = {state for state in graph if region_name(state) in (ANSWER, *names)}
    next_kept = {state: next((to for to in graph[state].values() if to in kept), next(iter(graph))) for state in graph}
    # In a graph, the closing marker of a dropped region may also lead from the answer to the answer. Without the
    # region, this marker is text.
    now_text = {mark for state in graph if state not in kept for mark in graph[state]}
    now_text -= {mark for state in kept if region_name(state) != ANSWER for mark in graph[state]}
    return {
        state: {
            mark: to if to in kept else next_kept[to]
            for mark, to in graph[state].items()
            if region_name(state) != ANSWER or (to in kept and not (region_name(to) == ANSWER and mark in now_text))
        }
        for state in graph
        if state in kept
    }
