"""Graphs of regions. A graph has states, and each marker leads from one state to another. A region has several states
if a marker does not always mean the same in it. For example, ``</think>`` ends a tool call that began in the reasoning,
but is plain text in other tool calls. So the region ``tool_call`` can have the states ``tool_call`` and
``tool_call/in reasoning``."""

from __future__ import annotations

from collections.abc import Mapping

# A graph maps each state to its markers, and each marker to the state to which it leads.
Graph = Mapping[str, Mapping[str, str]]

# The regions that are protected by default: no stop fires in them.
NAMES = ("reasoning", "tool_call")


def region_name(state: str) -> str:
    """Returns the name of the region to which a state belongs: ``tool_call`` for ``tool_call/in reasoning``."""
    return state.split("/", 1)[0]


def region_names(graph: Graph) -> list[str]:
    """Returns the names of the regions in ``graph``, in its order."""
    return [*dict.fromkeys(map(region_name, graph))]


def edges_of(graph: Graph) -> list[tuple[str, str, str]]:
    """Returns a tuple for each marker in ``graph``: the region in which it counts, the marker, and the region to which
    it leads."""
    return [
        (region_name(state), marker, region_name(to))
        for state, markers in graph.items()
        for marker, to in markers.items()
    ]


def readable_in(graph: Graph) -> set[str]:
    """Returns the names of the regions whose text people read. All other regions have only markup, such as Harmony's
    header ``assistant to=self``. If the graph has no region ``answer``, its first region counts as the answer."""
    regions = region_names(graph)
    return {"answer" if "answer" in regions else regions[0], *NAMES}


def describe(graph: Graph) -> str:
    """Returns a text for the log. It names the regions that can be protected, each with the markers that open it.

    >>> describe({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
    'reasoning (<think>)'
    """
    markers_of = {name: dict.fromkeys(marker for _, marker, to in edges_of(graph) if to == name) for name in NAMES}
    return ", ".join(f"{name} ({' '.join(markers)})" for name, markers in markers_of.items() if markers) or "none"
