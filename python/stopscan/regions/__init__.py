"""The regions of a model's answers (reasoning, answer, tool calls), and stops that do not fire in some of them.

All adapters find regions with the functions of this package, so stops, protected regions and segments refer to the same
regions. A region is named as in ``stopscan.segments.FORMATS``: ``answer``, ``reasoning`` or ``tool_call``.
"""

from stopscan.regions._checkpoint import graph_of
from stopscan.regions._names import Graph
from stopscan.regions._prompt import region_after
from stopscan.regions._protect import Protect, RegionOptions, protected, segments_of

__all__ = [
    "Graph",
    "Protect",
    "RegionOptions",
    "graph_of",
    "protected",
    "region_after",
    "segments_of",
]
