"""The regions of a model's answers (reasoning, answer, tool calls), and stops that do not fire in some of them.

All adapters use these functions, so that stops, protected regions and segments agree. The regions have the names of
``stopscan.segments.FORMATS``: ``answer``, ``reasoning`` and ``tool_call``.
"""

from stopscan.regions._checkpoint import graph_of, with_reasoning
from stopscan.regions._names import NAMES, Graph, described, region_name
from stopscan.regions._prompt import begins, region_after
from stopscan.regions._protect import (
    PROTECTED,
    Protect,
    RegionOptions,
    known,
    protected,
    read_protect,
    segments_of,
)
from stopscan.regions._restricted import restricted

__all__ = [
    "NAMES",
    "PROTECTED",
    "Graph",
    "Protect",
    "RegionOptions",
    "begins",
    "described",
    "graph_of",
    "known",
    "protected",
    "read_protect",
    "region_after",
    "region_name",
    "restricted",
    "segments_of",
    "with_reasoning",
]
