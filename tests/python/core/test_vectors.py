"""Runs the named cases of `vectors/` with the scanner and with the reference.

Cases with patterns run with the scanner only: the reference for patterns is in `test_patterns.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from reference import Reference

from stopscan import StopScanner, StopSet

Case = dict[str, Any]

WHOLE = 1_000_000  # longer than the text of any step

FOLDER = Path(__file__).parents[2] / "vectors"


def read(folder: Path) -> list[Case]:
    return [case for file in sorted(folder.glob("*.json")) for case in json.loads(file.read_text(encoding="utf-8"))]


LITERAL, CASES = read(FOLDER), read(FOLDER) + read(FOLDER / "patterns")
literal_case = pytest.mark.parametrize("case", LITERAL, ids=[case["name"] for case in LITERAL])
every_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def scanner(case: Case) -> StopScanner:
    protect = [(opening, closing) for opening, closing in case["protect"]]
    options = {key: case[key] for key in ("visible", "patterns", "visible_patterns") if key in case}
    stops = StopSet(case["stop"], protect=protect, **options)
    return StopScanner(stops, include_stop=case["include_stop"], start_protected=case["start_protected"])


def reference(case: Case) -> Reference:
    options = {key: case[key] for key in ("visible", "protect", "include_stop", "start_protected")}
    return Reference(case["stop"], **options)


def call(subject: StopScanner | Reference, op: str, text: str) -> str:
    match op:
        case "feed":
            return subject.feed(text)
        case "feed_unarmed":
            return subject.feed(text, armed=False)
        case "bypass":
            return subject.bypass(text)
        case "flush":
            return subject.flush()
    assert op == "reset"
    subject.reset()
    return ""


def pieces(step: dict[str, str], size: int) -> list[str]:
    if step["op"] not in ("feed", "feed_unarmed") or not step["text"]:
        return [step["text"]]
    return [step["text"][i : i + size] for i in range(0, len(step["text"]), size)]


def check(subject: StopScanner | Reference, case: Case, size: int) -> None:
    for step in case["steps"]:
        out = "".join(call(subject, step["op"], piece) for piece in pieces(step, size))
        assert (out, subject.held) == (step["out"], step["held"]), step
    fields = case["match"] or ()
    assert (subject.match and {name: getattr(subject.match, name) for name in fields}) == case["match"]
    if size == WHOLE:
        assert subject.unused == case["unused"]
    else:
        # `unused` is the text after the stop in the delta that completed the stop. Here each delta of the case is cut
        # into pieces, so `unused` may be only the beginning of the expected text.
        assert case["unused"].startswith(subject.unused)


@every_case
def test_scanner(case: Case) -> None:
    check(scanner(case), case, WHOLE)


@every_case
@pytest.mark.parametrize("size", [1, 2, 3, 130])
def test_scanner_in_pieces(case: Case, size: int) -> None:
    check(scanner(case), case, size)


@literal_case
@pytest.mark.parametrize("size", [1, WHOLE])
def test_reference(case: Case, size: int) -> None:
    check(reference(case), case, size)


@every_case
def test_schema(case: Case) -> None:
    keys = ["name", "why", "stop", "visible", "protect", "include_stop", "start_protected", "steps", "match", "unused"]
    if "patterns" in case:
        keys[4:4] = ["patterns", "visible_patterns"]
    assert list(case) == keys
    assert list(case["match"] or ()) in ([], ["sequence", "offset", "end", *(["pattern"] * ("patterns" in case))])
    assert case["why"]
    assert case["steps"]
    assert all(list(step) == ["op", "text", "out", "held"] for step in case["steps"])


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(case["name"] for case in CASES).items() if count > 1] == []
