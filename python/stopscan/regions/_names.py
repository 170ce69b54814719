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
