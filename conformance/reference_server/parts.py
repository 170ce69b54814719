"""Splits an answer at the model's markers into its parts: text, reasoning and tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from stopscan.regions import PROTECTED, Graph
from stopscan.segments import Segment

Kind = Literal["answer", "reasoning", "tool_call"]
DECODER, SPACE = json.JSONDecoder(), re.compile(r"\s*")


class Call(NamedTuple):
    name: str
    arguments: dict[str, Any]
    id: str


class Part(NamedTuple):
    """A piece of the answer or of the reasoning, or a whole tool call. A call has its arguments in `text`, as JSON."""

    kind: Kind
    text: str
    call: Call | None = None


def said(parts: Iterable[Part], kind: Kind = "answer") -> str:
    return "".join(part.text for part in parts if part.kind == kind)


class Parts:
    """Makes the parts of one answer from its segments. A tool call becomes a part when it is complete. If the text of a
    tool call is not a call in JSON, that text becomes a part of the answer.
    """

    def __init__(self, graph: Graph) -> None:
        leads = [marker for markers in graph.values() for marker, to in markers.items() if to.startswith("tool_call")]
        self._opening = leads[0] if leads else ""
        self._call = ""

    def feed(self, segments: Iterable[Segment]) -> Iterator[Part]:
        for region, text, _ in segments:
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
    """Returns calls in Hermes' form: JSON objects with a name and arguments. Raises `ValueError` for anything else."""
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        try:
            data, at = DECODER.raw_decode(text, at)
        except RecursionError:
            raise ValueError("the call is nested too deeply") from None
        if not isinstance(data, dict) or not isinstance(data.get("name"), str):
            raise ValueError("the call is not an object with a name")
        arguments = data.get("arguments", {})
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are not an object")
        found.append(Call(data["name"], arguments, f"call_{uuid4().hex[:24]}"))
        at = SPACE.match(text, at).end()  # type: ignore[union-attr] # also matches an empty text
    return found
