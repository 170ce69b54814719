"""Runs the script of the kit's GitHub Action as a runner of GitHub does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ACTION = Path(__file__).parents[1] / "action.yml"
HELD = "--api anthropic --only 'anthropic/held-*'"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the runner's bash is a POSIX shell")


def script() -> str:
    (found,) = re.findall(r"^      run: \|\n((?:        .*\n|\n)+)", ACTION.read_text(encoding="utf-8"), re.MULTILINE)
    return textwrap.dedent(found)


def run(folder: Path, url: str, arguments: str) -> tuple[int, str, str]:
    """Runs the action's script, and returns its exit status, its output and the summary that it wrote."""
    summary = folder / "summary.md"
    summary.touch()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    added = {"URL": url, "ARGUMENTS": arguments, "GITHUB_STEP_SUMMARY": str(summary), "PATH": path}
    (folder / "step.sh").write_text(script(), encoding="utf-8")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "step.sh"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **added}, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr, summary.read_text(encoding="utf-8")


def test_quoted_arguments_are_read_as_a_shell_reads_them(tmp_path: Path, staged_url: str) -> None:
    status, output, summary = run(tmp_path, f"{staged_url}/right", HELD)
    assert status == 0, output
    assert summary.startswith(f"### Stop sequences of {staged_url}/right\n\n~~~~~~text\n")
    assert summary.endswith("~~~~~~\n")
    assert output.splitlines()[-1] in summary
    assert json.loads((tmp_path / "conformance.json").read_text(encoding="utf-8"))
    assert (tmp_path / "conformance.xml").exists()
    assert (tmp_path / "conformance.txt").exists()


def test_a_failure_fails_the_step(tmp_path: Path, staged_url: str) -> None:
    status, output, summary = run(tmp_path, f"{staged_url}/held%20text%20is%20lost%20at%20EOS", HELD)
    assert status == 1, output
    assert re.search(r"held-at-eos", summary)


def test_nothing_in_the_arguments_is_run(tmp_path: Path, staged_url: str) -> None:
    arguments = "--api anthropic --only '$(touch ran)' --only `touch ran` ; touch ran"
    status, _, _ = run(tmp_path, f"{staged_url}/right", arguments)
    assert status == 2
    assert not (tmp_path / "ran").exists()


def test_a_quote_that_is_not_closed_fails(tmp_path: Path, staged_url: str) -> None:
    status, output, _ = run(tmp_path, f"{staged_url}/right", "--only 'held")
    assert status != 0
    assert "No closing quotation" in output


def test_it_needs_nothing_but_the_kit() -> None:
    """The action installs only its own folder, so it needs no compiler, and no file outside the folder."""
    text = ACTION.read_text(encoding="utf-8")
    assert 'install --quiet "$GITHUB_ACTION_PATH"\n' in text
    assert "GITHUB_ACTION_PATH/.." not in text
