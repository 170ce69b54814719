"""Runs the named cases of `vectors/segments/` with the segmenter and with the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reference import SegmentReference
from segment_setups import by_region

from stopscan.segments import Segment, Segmenter, SegmentSet

Case = dict[str, Any]

WHOLE = 1_000_000  # longer than any step's text

VECTORS = Path(__file__).parents[2] / "vectors"
FILES = sorted((VECTORS / "segments").glob("*.json"))
CASES: list[Case] = [case for file in FILES for case in json.loads(file.read_text(encoding="utf-8"))]
every_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def segmenter(case: Case) -> Segmenter:
    segments = SegmentSet(case["markers"], stop=case["stop"], visible=case["visible"], stop_in=case["stop_in"])
    return Segmenter(segments, region=case["region"], include_stop=case["include_stop"])


def reference(case: Case) -> SegmentReference:
    options = {key: case[key] for key in ("stop", "visible", "stop_in", "region", "include_stop")}
    return SegmentReference(case["markers"], **options)


def call(subject: Segmenter | SegmentReference, op: str, text: str) -> list[Segment]:
    match op:
        case "feed":
            return subject.feed(text)
        case "feed_unarmed":
            return subject.feed(text, armed=False)
        case "flush":
            return subject.flush()
    assert op == "reset"
    subject.reset()
    return []


def check(subject: Segmenter | SegmentReference, case: Case, size: int) -> None:
    for step in case["steps"]:
        pieces = [step["text"][i : i + size] for i in range(0, max(len(step["text"]), 1), size)]
        out = by_region([segment for piece in pieces for segment in call(subject, step["op"], piece)])
        assert [[*segment] for segment in out] == step["out"], step
        assert (subject.held, subject.region) == (step["held"], step["region"]), step
    fields = ("sequence", "offset", "end")
    assert (subject.match and {name: getattr(subject.match, name) for name in fields}) == case["match"]
    if size == WHOLE:
        assert subject.unused == case["unused"]


def test_names_are_unique() -> None:
    names = [case["name"] for case in CASES]
    assert len(names) == len({*names}) > 40


@every_case
@pytest.mark.parametrize("size", [WHOLE, 1, 2, 3])
def test_segmenter(case: Case, size: int) -> None:
    check(segmenter(case), case, size)


@every_case
def test_reference(case: Case) -> None:
    check(reference(case), case, WHOLE)
