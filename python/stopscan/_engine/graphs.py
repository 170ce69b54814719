"""Graphs of regions as plain values, and where in them an answer begins; ``stopscan.regions`` makes the graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopscan import StopSet
from stopscan.regions import begins

# A graph that can be hashed: (state, ((marker, where it leads), ...)), ...
Frozen = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def frozen(graph: Mapping[str, Mapping[str, str]] | None) -> Frozen:
    """A graph of regions as plain values; empty if there is none."""
    return tuple((state, tuple(markers.items())) for state, markers in (graph or {}).items())


def thawed(graph: Frozen) -> dict[str, dict[str, str]]:
    """The graph of its plain values."""
    return {state: dict(markers) for state, markers in graph}


def beginning(stops: StopSet, prompt_end: str, start_protected: bool | None, *, forced: bool) -> dict[str, Any]:
    """The options of a scanner that begins behind a prompt; ``forced``: the engine says that the answer begins in the
    reasoning, although no marker at the end of the prompt does."""
    closed = [state for state in stops.regions or () if state.split("/", 1)[0] not in stops.stop_in]
    if start_protected and not closed and not stops.protect:
        return {}  # a stop of the request is a marker, which counts more
    return {"region": begins(stops, prompt_end, start_protected, inside=forced)}
