"""Finds the region in which an answer begins, from the end of the prompt."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from stopscan import StopSet
from stopscan.regions._names import Graph, readable_in, region_name
from stopscan.regions._protect import PROTECTED
from stopscan.segments import Segmenter, SegmentSet

# Only this many code points at the end of a prompt are read. No chat template writes more after the user's message.
PROMPT_END = 256

# The words of a header, such as "assistant to=self". In some forms, such as Harmony, each message has a header.
HEADER = re.compile(r"[\w .=-]*\s*")


def region_after(graph: Graph, prompt_end: str, /) -> str:
    """Returns the region in which the answer to a prompt begins.

    A marker counts only at the end of the prompt, where chat templates put it. Only white space, further markers, and
    the words of a message header (such as ``assistant`` in Harmony) may follow it. A marker that a user writes in a
    message does not count: it could open a protected region, in which the operator's stops do not fire.

    Raises ``ValueError`` for an empty graph.

    >>> region_after(FORMATS["qwen3"], "<|im_start|>assistant\\n<think>\\n")
    'reasoning'
    >>> region_after(FORMATS["harmony"], "<|start|>assistant<|channel|>analysis<|message|>")
    'reasoning'
    """
    if not graph:
        raise ValueError("the graph has no regions")
    first = next(iter(graph))
    markers, end = tuple(graph[first]), prompt_end[-PROMPT_END:]
    if not any(marker in end for marker in markers):
        return first
    segments, readable = _segments(tuple((state, tuple(graph[state].items())) for state in graph)), readable_in(graph)
    for start in [start for start in range(len(end)) if end.startswith(markers, start)]:
        segmenter = Segmenter(segments)
        parts = [*segmenter.feed(end[start:]), *segmenter.flush()]
        if not any(text.strip() if region in readable else HEADER.fullmatch(text) is None for region, text, _ in parts):
            return segments.region_after(end[start:])
    return first


def start_region(
    stops: StopSet | SegmentSet, prompt_end: str, /, start_protected: bool | None = None, *, inside: bool = False
) -> str | None:
    """Returns the region in which the answer begins. Pass it to a scanner as ``region``. ``None`` means the default of
    the scanner.

    - With ``start_protected=True``, the answer begins in the first protected region of the graph. Raises ``ValueError``
      if no region is protected.
    - With ``start_protected=False``, the answer begins in the first region of the graph.
    - With ``start_protected=None``, the answer begins in the region that a marker at the end of the prompt opens. If
      there is no such marker, the answer begins in the first region of the graph, or with ``inside=True`` in the
      reasoning.

    >>> stops = protected(StopSet("END"), FORMATS["qwen3"])
    >>> start_region(stops, "<|im_start|>assistant\\n<think>\\n")
    'reasoning'
    """
    regions: Graph | None = stops.markers if isinstance(stops, SegmentSet) else stops.regions
    openings = [opening for opening, _ in stops.protect] if isinstance(stops, StopSet) else []
    if start_protected:
        states = openings if regions is None else _protected_states(regions, stops.stop_in)
        if not states:
            raise ValueError("start_protected: the stops have no protected region")
        return states[0]
    if regions is None:
        end = "" if start_protected is False else prompt_end.rstrip()
        return next((opening for opening in openings if end.endswith(opening)), None)
    first = next(iter(regions))
    after_prompt = first if start_protected is False else region_after(regions, prompt_end)
    if not inside or start_protected is False or after_prompt != first:
        return after_prompt
    return next((state for state in regions if region_name(state) == "reasoning"), first)


def _protected_states(graph: Graph, stop_in: Collection[str]) -> list[str]:
    states = [state for state in graph if region_name(state) not in stop_in]
    # An answer with `start_protected` begins in the first state of the returned list. It never begins in markup, such
    # as Harmony's headers, so the states of markup come last.
    readable = readable_in(graph)
    return sorted(states, key=lambda state: region_name(state).removesuffix(PROTECTED) not in readable)


@lru_cache(maxsize=16)
def _segments(graph: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]) -> SegmentSet:
    """Returns the compiled graph, without ``keep`` and ``stay``: ``str`` turns ``keep(region)`` into a plain name. With
    ``keep`` or ``stay``, a marker would stay in the text of the segments, and ``region_after`` would mistake it for
    other text of the prompt."""
    return SegmentSet({state: {marker: str(to) for marker, to in markers} for state, markers in graph})
