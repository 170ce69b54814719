from __future__ import annotations

from stopscan.regions._names import NAMES, Graph, region_name


def described(graph: Graph) -> str:
    """Returns the names of the regions that stops can be kept out of, each with the markers that begin it, for a log.

    >>> described({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
    'reasoning (<think>)'
    """
    begun = [(region_name(to), marker) for markers in graph.values() for marker, to in markers.items()]
    markers_of = {name: dict.fromkeys(marker for to, marker in begun if to == name) for name in NAMES}
    return ", ".join(f"{name} ({' '.join(markers)})" for name, markers in markers_of.items() if markers) or "none"
