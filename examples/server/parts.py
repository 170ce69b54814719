"""The parts of an answer, told apart at the markers of the model's form: text, reasoning and tool calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from stopscan.segments import FORMATS, Segment, SegmentSet

Kind = Literal["answer", "reasoning", "tool_call"]

Pairs = tuple[tuple[str, str], ...]  # opening and closing markers

# Where stops may fire, and what of it a request may protect: all other regions are the form's own.
TEXT = ("answer", "reasoning", "tool_call")
PROTECT = TEXT[1:]

# The same for text that is not told apart, of which Harmony needs more: a header says which channel follows, and no
# stop fires in one, nor, with the reasoning protected, before the header of the answer.
HEADERS: Pairs = (("<|channel|>", "<|message|>"), ("<|end|>", "<|message|>"), ("<|start|>", "<|message|>"))
UNTIL_ANSWER: Pairs = (("<|channel|>", "final<|message|>"),)


@dataclass(frozen=True)
class Call:
    """A tool call of the model."""

    name: str
    arguments: dict[str, Any]
    id: str


class Part(NamedTuple):
    """`text` of the answer or the reasoning, or a `call`."""

    kind: Kind
    text: str
    call: Call | None = None


class Form:
    """What is known of the form in which a model answers, by its name in `stopscan.segments.FORMATS`."""

    def __init__(self, name: str) -> None:
        self._markers = FORMATS[name]
        self._headers: Pairs = HEADERS if name == "harmony" else ()
        self._pairs = {region: self._around(region) for region in PROTECT}
        if name == "harmony":
            self._pairs = {"reasoning": UNTIL_ANSWER, "tool_call": ()}

    def apart(self, stop: Collection[str], protect: Collection[str], **options: Any) -> SegmentSet:
        """The parts, with stops that sleep in those that `protect` names. A marker that is a stop is a marker no more;
        where it led back to the answer, the stops are awake.
        """
        markers = {
            region: {marker: to for marker, to in leads.items() if marker not in stop}
            for region, leads in self._markers.items()
        }
        awake = [
            region
            for region, leads in self._markers.items()
            if region in TEXT
            and (region not in protect or any(region_of(leads.get(marker, "")) == "answer" for marker in stop))
        ]
        return SegmentSet(markers, stop=stop, stop_in=awake, **options)

    def around(self, protect: Collection[str]) -> Pairs:
        """The markers around the parts that `protect` names, for text that is not told apart."""
        chosen = [pair for name in protect for pair in self._pairs[name]]
        return tuple({**dict(self._headers), **dict(chosen)}.items())

    def opening(self, region: str) -> list[str]:
        states = self._markers.values()
        return [marker for markers in states for marker, to in markers.items() if region_of(to) == region]

    def _around(self, region: str) -> Pairs:
        closing = [marker for marker, to in self._markers.get(region, {}).items() if region_of(to) == "answer"]
        return tuple((marker, closing[0]) for marker in dict.fromkeys(self.opening(region)) if closing)


def region_of(state: str) -> str:
    """The region that a state of a form is of."""
    return state.partition("/")[0]


class Parts:
    """The parts of one answer, of its segments. A call comes when it is whole; what is no call in JSON is text of the
    answer.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        self._call = ""

    def feed(self, segments: Iterable[Segment]) -> Iterator[Part]:
        for region, text in segments:
            if region == "tool_call":
                self._call += text
                continue
            yield from self.end()
            if region == "answer":
                yield Part("answer", text)
            elif region == "reasoning":
                yield Part("reasoning", text)

    def end(self) -> Iterator[Part]:
        text, self._call = self._call, ""
        if not text:
            return
        try:
            for call in calls(text):
                yield Part("tool_call", "", call)
        except ValueError:
            yield Part("answer", self._form.opening("tool_call")[0] + text)


def calls(text: str) -> list[Call]:
    """The calls in Hermes' form: JSON objects with a name and arguments. Raises `ValueError` for anything else."""
    decoder = json.JSONDecoder()
    found = []
    rest = text.strip()
    while rest:
        try:
            data, end = decoder.raw_decode(rest)
        except RecursionError:
            raise ValueError("the call is nested too deeply") from None
        if not isinstance(data, dict) or not isinstance(data.get("name"), str):
            raise ValueError("the call has no name")
        arguments = data.get("arguments", {})
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are no object")
        found.append(Call(data["name"], arguments, f"call_{uuid4().hex[:24]}"))
        rest = rest[end:].lstrip()
    return found
