"""Graphs of regions. A graph leads from state to state. A region can have several states, which differ in where their
markers lead: ``tool_call``, ``tool_call/in reasoning``."""

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


def readable_in(graph: Graph) -> set[str]:
    """Returns the names of the regions whose text is for readers. Any other region has only markup, such as Harmony's
    header ``assistant to=self``. The graph of a response template may have no "answer"; then the first region is the
    answer."""
    regions = [region_name(state) for state in graph]
    return {"answer" if "answer" in regions else regions[0], *NAMES}


def described(graph: Graph) -> str:
    """Returns the names of the regions that stops can be kept out of, each with the markers that begin it, for a log.

    >>> described({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
    'reasoning (<think>)'
    """
    begun = [(region_name(to), marker) for markers in graph.values() for marker, to in markers.items()]
    markers_of = {name: dict.fromkeys(marker for to, marker in begun if to == name) for name in NAMES}
    return ", ".join(f"{name} ({' '.join(markers)})" for name, markers in markers_of.items() if markers) or "none"
