"""benches/README.md names every benchmark, and `--help` of each prints its options and does not run it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[3] / "benches"
PROGRAMS = sorted(path.name for path in BENCHES.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_ran_the_benchmark(program: str) -> None:
    source = (BENCHES / program).read_text(encoding="utf-8")
    assert "ArgumentParser(" in source or "options(__doc__)" in source
    packages = {*re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE)} - {
        path.stem for path in BENCHES.iterdir()
    }
    if all(map(find_spec, packages)):  # the benchmark of an engine cannot run unless the engine is installed
        command = [sys.executable, BENCHES / program, "--help"]
        assert "usage:" in subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_the_page_names_every_benchmark() -> None:
    page = (BENCHES / "README.md").read_text(encoding="utf-8")
    names = {*re.findall(r"`([a-z_]+)(?:\.py|\.rs| -- FOLDER…)?`", page)}
    files = {path.stem for path in BENCHES.iterdir() if path.suffix in (".py", ".rs")}
    assert files - names == {"conformance_servers"}
