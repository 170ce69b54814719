"""Tests the scripts: the texts that a checkpoint recites. The default checkpoint has all scripts of the files in
`named/`, in the same order on every file system."""

from __future__ import annotations

import json
from typing import Any

from stopscan_conformance.reciter import SCRIPTS
from stopscan_conformance.scripts import FOLDER, default_scripts, made_scripts, named


def read(folder: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns the entries of all JSON files in `folder`: pairs of the name of the file and the entry."""
    files = sorted((FOLDER / folder).glob("*.json"))
    return [(file.stem, entry) for file in files for entry in json.loads(file.read_text(encoding="utf-8"))]


def test_a_named_script_has_the_pieces_of_its_file() -> None:
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


def test_the_default_scripts_come_in_one_order() -> None:
    staged = [one["script"] for one in named()]
    assert [*default_scripts()] == [*dict.fromkeys([*SCRIPTS, *staged, *made_scripts()])]
    assert {name: default_scripts()[name] for name in SCRIPTS} == SCRIPTS
    for one in named():
        name = one["script"]
        assert name in SCRIPTS or default_scripts()[name] == one["pieces"]
