"""The names of regions, and of the states in a graph."""

from __future__ import annotations

from collections.abc import Mapping

Graph = Mapping[str, Mapping[str, str]]

# The regions that are not for stops, unless somebody asks for them.
NAMES = ("reasoning", "tool_call")


def region_name(state: str) -> str:
    """Returns the region of a state: ``tool_call`` of ``tool_call/in reasoning``."""
    return state.split("/", 1)[0]


def regions_in(graph: Graph) -> set[str]:
    """Returns the regions of a graph."""
    return {region_name(state) for state in graph}


def openings(graph: Graph) -> str:
    """Returns the regions of ``NAMES`` that a graph has, each with the markers that begin it, for a line in a log.

    >>> openings({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
    'reasoning (<think>)'
    """
    edges = [(region_name(to), mark) for markers in graph.values() for mark, to in markers.items()]
    named = {name: dict.fromkeys(mark for to, mark in edges if to == name) for name in NAMES}
    return ", ".join(f"{name} ({' '.join(marks)})" for name, marks in named.items() if marks) or "none"
