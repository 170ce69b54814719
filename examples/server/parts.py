"""The parts of an answer, told apart at the markers of the model's form: text, reasoning and tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from stopscan import StopSet
from stopscan.regions import NAMES, Graph, Protect, read
from stopscan.segments import Segment, SegmentSet, keep

Kind = Literal["answer", "reasoning", "tool_call"]
TEXT = ("answer", "reasoning", "tool_call")  # where stops may fire; all other regions are the form's own
DECODER, SPACE = json.JSONDecoder(), re.compile(r"\s*")
PROTECTED = " protected"  # the end of a region's name that is between the markers of a request


class Call(NamedTuple):
    """A tool call of the model."""

    name: str
    arguments: dict[str, Any]
    id: str


class Part(NamedTuple):
    """`text` of the answer or the reasoning, or a `call`, with its arguments as text."""

    kind: Kind
    text: str
    call: Call | None = None


def said(parts: Iterable[Part], kind: Kind = "answer") -> str:
    return "".join(part.text for part in parts if part.kind == kind)


def apart(graph: Graph, stops: StopSet, protect: Protect) -> SegmentSet:
    """The parts, with stops that sleep in the regions that `protect` names, and between its pairs of markers, which
    stay in the text. A marker that is a stop is a marker no more; where it led back to the answer, the stops are awake.
    """
    names, pairs = read(protect)
    edges = [edge for leads in graph.values() for edge in leads.items()]
    own = {marker: _region(to) for marker, to in edges if _region(to) in NAMES}  # pairs that are another name of it
    names += [own[opening] for opening, _ in pairs if opening in own]
    pairs = [pair for pair in pairs if pair[0] not in own]
    markers: dict[str, dict[str, str]] = {}
    for state, leads in graph.items():
        markers[state] = {marker: to for marker, to in leads.items() if marker not in stops.stop}
        for number, (opening, closing) in enumerate(pairs if _region(state) in TEXT else ()):
            if opening not in leads:
                inside = f"{_region(state)}{PROTECTED}/{number}/{state}"
                markers[state][opening] = keep(inside)
                markers[inside] = {closing: keep(state)}
    awake = {
        _region(state)
        for state, leads in graph.items()
        if _region(state) not in names or any(_region(leads.get(marker, "")) == "answer" for marker in stops.stop)
    }
    return SegmentSet(
        markers,
        stop=stops.stop,
        stop_in=[region for region in TEXT if region in awake],
        patterns=stops.patterns,
        max_held=stops.max_held,
        repeat=stops.repeat,
    )


def _region(state: str) -> str:
    return state.partition("/")[0]


class Parts:
    """The parts of one answer, of its segments. A call comes when it is whole; what is no call in JSON is text of the
    answer.
    """

    def __init__(self, graph: Graph) -> None:
        leads = [marker for markers in graph.values() for marker, to in markers.items() if _region(to) == "tool_call"]
        self._opening = leads[0] if leads else ""
        self._call = ""

    def feed(self, segments: Iterable[Segment]) -> Iterator[Part]:
        for region, text in segments:
            kind = region.removesuffix(PROTECTED)
            if kind == "tool_call":
                self._call += text
                continue
            yield from self.end()
            if kind == "answer":
                yield Part("answer", text)
            elif kind == "reasoning":
                yield Part("reasoning", text)

    def end(self) -> Iterator[Part]:
        text, self._call = self._call, ""
        if not text:
            return
        try:
            for call in calls(text):
                yield Part("tool_call", json.dumps(call.arguments, ensure_ascii=False), call)
        except ValueError:
            yield Part("answer", self._opening + text)


def calls(text: str) -> list[Call]:
    """The calls in Hermes' form: JSON objects with a name and arguments. Raises `ValueError` for anything else."""
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        try:
            data, at = DECODER.raw_decode(text, at)
        except RecursionError:
            raise ValueError("the call is nested too deeply") from None
        if not isinstance(data, dict) or not isinstance(data.get("name"), str):
            raise ValueError("the call has no name")
        arguments = data.get("arguments", {})
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are no object")
        found.append(Call(data["name"], arguments, f"call_{uuid4().hex[:24]}"))
        at = SPACE.match(text, at).end()  # type: ignore[union-attr] # it matches nothing, too
    return found
