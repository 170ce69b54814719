"""The parts of an answer, told apart at the markers of the model's form: text, reasoning and tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from stopscan._protect import Region, Regions
from stopscan.segments import FORMATS, Segment, Segmenter, SegmentSet

Kind = Literal["answer", "reasoning", "tool_call"]

# In Harmony a header says which channel follows; no stop fires in one. With the reasoning protected, too, no stop
# fires before the header of the answer.
HEADERS: Regions = (("<|channel|>", "<|message|>"), ("<|end|>", "<|message|>"), ("<|start|>", "<|message|>"))
UNTIL_ANSWER: Regions = (("<|channel|>", "final<|message|>"),)


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
        self.markers = FORMATS[name]
        self.segments = SegmentSet(self.markers)
        self.always: Regions = HEADERS if name == "harmony" else ()
        self.named: Mapping[str, Regions] = {"reasoning": UNTIL_ANSWER, "tool_calls": ()}
        if name != "harmony":
            self.named = {"reasoning": self._around("reasoning"), "tool_calls": self._around("tool_call")}

    def protected(self, chosen: Regions) -> Regions:
        """The regions in which no stop fires, if a request has `chosen` these."""
        return tuple({**dict(self.always), **dict(chosen)}.items())

    def opening(self, region: str) -> list[str]:
        return [marker for markers in self.markers.values() for marker, to in markers.items() if to == region]

    def _around(self, region: str) -> Regions:
        closing = [marker for marker, to in self.markers.get(region, {}).items() if to == "answer"]
        pairs: list[Region] = [(marker, closing[0]) for marker in self.opening(region) if closing]
        return tuple(dict(pairs).items())


class Parts:
    """Splits the text of one answer. A call comes when it is whole; what is no call in JSON is text of the answer."""

    def __init__(self, form: Form, region: str | None) -> None:
        self._form = form
        self._segmenter = Segmenter(form.segments, region=region)
        self._call = ""

    @property
    def region(self) -> str:
        return self._segmenter.region

    def feed(self, text: str) -> Iterator[Part]:
        yield from self._told(self._segmenter.feed(text))
        if self.region != "tool_call":
            yield from self._called()

    def flush(self) -> Iterator[Part]:
        yield from self._told(self._segmenter.flush())
        yield from self._called()

    def _told(self, segments: Iterable[Segment]) -> Iterator[Part]:
        for region, text in segments:
            if region == "tool_call":
                self._call += text
                continue
            yield from self._called()
            if region == "answer":
                yield Part("answer", text)
            elif region == "reasoning":
                yield Part("reasoning", text)

    def _called(self) -> Iterator[Part]:
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
