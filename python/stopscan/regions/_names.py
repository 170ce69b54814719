"""Graphs of regions: a region can have several states, named ``region`` or ``region/detail``."""

from __future__ import annotations

from collections.abc import Mapping

# For each state its markers, and the state to which each marker leads.
Graph = Mapping[str, Mapping[str, str]]

# The regions that are protected by default: no stop fires in them.
NAMES = ("reasoning", "tool_call")


def region_name(state: str) -> str:
    """Returns the name of the region to which a state belongs: ``tool_call`` for ``tool_call/in reasoning``."""
    return state.split("/", 1)[0]


def regions_in(graph: Graph) -> set[str]:
    """Returns the names of the regions in ``graph``."""
    return {region_name(state) for state in graph}


def openings(graph: Graph) -> str:
    """Returns the regions of ``NAMES`` that a graph has, each with the markers that begin it, for a line in a log.

    >>> openings({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
    'reasoning (<think>)'
    """
    edges = [(region_name(to), mark) for markers in graph.values() for mark, to in markers.items()]
    named = {name: dict.fromkeys(mark for to, mark in edges if to == name) for name in NAMES}
    return ", ".join(f"{name} ({' '.join(marks)})" for name, marks in named.items() if marks) or "none"
