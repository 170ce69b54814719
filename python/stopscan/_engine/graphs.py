"""Graphs of regions as plain values, and where in them an answer begins; ``stopscan.regions`` makes the graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopscan import StopSet
from stopscan.regions import Graph
from stopscan.regions._prompt import begins

# A graph that can be hashed: (state, ((marker, where it leads), ...)), ...
Frozen = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def frozen(graph: Mapping[str, Mapping[str, str]] | None) -> Frozen:
    """A graph of regions as plain values; empty if there is none."""
    return tuple((state, tuple(markers.items())) for state, markers in (graph or {}).items())


def thawed(graph: Frozen) -> dict[str, dict[str, str]]:
    """The graph of its plain values."""
    return {state: dict(markers) for state, markers in graph}


def with_reasoning(checkpoint: Graph | None, own: Graph | None) -> Graph | None:
    """The graph of a checkpoint, whose reasoning is the one that the engine's own parser says, ``own``.

    If the checkpoint has the same markers of reasoning, its whole graph counts, or else its calls alone.
    """
    if not own or not checkpoint:
        return own or checkpoint
    first = checkpoint[next(iter(checkpoint))]
    inside = checkpoint.get("reasoning", {})
    openings = next(iter(own.values()))
    closings = [mark for state, markers in own.items() if state.startswith("reasoning") for mark in markers]
    if all(mark in first for mark in openings) and all(mark in inside for mark in closings):
        return checkpoint
    if "tool_call" in own:
        return own
    calls = {mark: "tool_call" for mark, to in first.items() if to.startswith("tool_call")}
    ends = dict.fromkeys(checkpoint.get("tool_call", {}), "answer")
    answer = {**openings, **calls}
    return {**own, next(iter(own)): answer, **({"tool_call": ends} if calls else {})}


def beginning(stops: StopSet, prompt_end: str, start_protected: bool | None, *, forced: bool) -> dict[str, Any]:
    """The options of a scanner that begins behind a prompt; ``forced``: the engine says that the answer begins in the
    reasoning, although no marker at the end of the prompt does."""
    closed = [state for state in stops.regions or () if state.split("/", 1)[0] not in stops.stop_in]
    if start_protected and not closed and not stops.protect:
        return {}  # a stop of the request is a marker, which counts more
    where = begins(stops, prompt_end, start_protected)
    inside = [state for state in stops.regions or () if state.split("/", 1)[0] == "reasoning"]
    if forced and start_protected is None and inside and where == begins(stops, "", None):
        return {"region": inside[0]}
    return where
