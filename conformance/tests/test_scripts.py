"""The default checkpoint recites the scripts of `named/` and `vectors/`, in the same order on every file system."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stopscan_conformance.reciter import SCRIPTS, Reciter
from stopscan_conformance.scripts import FOLDER, default_scripts, made_scripts, named, plain_vectors


def read(folder: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns the entries of all JSON files in `folder`: pairs of the name of the file and the entry."""
    files = sorted((FOLDER / folder).glob("*.json"))
    return [(file.stem, entry) for file in files for entry in json.loads(file.read_text(encoding="utf-8"))]


def test_a_named_script_is_that_of_its_file_with_its_pieces_as_bytes() -> None:
    pieces: dict[str, list[str]] = {one["script"]: one["pieces"] for _, one in read("named") if "pieces" in one}
    times = {one["script"]: one.get("times", 1) for _, one in read("named") if "pieces" in one}
    for (topic, entry), script_of_cases in zip(read("named"), named(), strict=True):
        name = entry["script"]
        script = pieces[name] * times[name] if name in pieces else SCRIPTS[name]
        expected = [piece if isinstance(piece, bytes) else piece.encode(errors="surrogateescape") for piece in script]
        assert script_of_cases == {**entry, "topic": topic, "pieces": tuple(expected)}


def test_half_a_character_in_a_named_script() -> None:
    (cut,) = [one for one in named() if one["script"] == "bytes-1-3"]
    assert cut["pieces"] == (b"Do ", b"\xf0", b"\x9f\x9b\x91", b" it")


def test_a_vector_that_is_only_fed_has_the_fed_pieces() -> None:
    known = {entry["name"]: entry for _, entry in read("vectors")}
    names = [vector["name"] for vector in plain_vectors()]
    assert {"stop_spelled_by_three_deltas", "no_stops", "markers_over_deltas"} <= {*names}
    assert names == [name for name in known if name in names]
    for vector in plain_vectors():
        entry = known[vector["name"]]
        fed = [step["text"] for step in entry["steps"] if step["text"]]
        assert vector == {**entry, "pieces": tuple(text.encode() for text in fed)}


OTHERS = {
    "visible_stop_holds_nothing": "visible",
    "include_stop_tie": "include_stop",
    "start_protected": "start_protected",
    "pruned_by_an_opening_marker": "other markers",
    "bypass_forgets_the_partial_match": "an operation in the middle",
    "bypass_after_a_match": "an operation at the end",
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_vector_that_a_request_cannot_state_is_left_out(name: str) -> None:
    assert name in {entry["name"] for _, entry in read("vectors")}
    assert name not in {vector["name"] for vector in plain_vectors()}


def test_the_default_scripts_come_in_one_order() -> None:
    staged, fed = [one["script"] for one in named()], [one["name"] for one in plain_vectors()]
    assert [*default_scripts()] == [*dict.fromkeys([*SCRIPTS, *staged, *fed, *made_scripts()])]
    assert {name: default_scripts()[name] for name in SCRIPTS} == SCRIPTS
    for one in (*named(), *plain_vectors()):
        name = one.get("script", one.get("name"))
        assert name in SCRIPTS or default_scripts()[name] == one["pieces"]


def test_each_script_without_reasoning_is_there_in_channels() -> None:
    plain = {name for name in SCRIPTS if not name.startswith("harmony")}
    assert {name for name in SCRIPTS if name.startswith("harmony-")} == {
        f"harmony-{name}" for name in plain - {"think", "unclosed"}
    }
    text = Reciter().text("harmony-inside")
    assert text == (
        "<|channel|>analysis<|message|>The path WENDS on<|end|>"
        "<|start|>assistant<|channel|>final<|message|>The path WENDS on"
    )
