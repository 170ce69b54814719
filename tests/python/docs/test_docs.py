"""Runs every code block of the documents. Commands of console sessions must print the output that is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [
    *("README.md", "DESIGN.md", "CONTRIBUTING.md"),
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```(\w+) ?([\w ]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[Any]:
    """Returns the code blocks of a language. The first line of a block may name optional packages that the block needs,
    and may end with the word "continued". A block with this word uses the code of the block before it, and is returned
    together with this code."""
    found = []
    for document in PAGES:
        code = ""
        text = (ROOT / document).read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match[1] == language:
                line = text.count("\n", 0, match.start()) + 1
                code = (code if "continued" in match[2] else "") + match[3]
                needs = match[2].removesuffix("continued").split()
                found.append(pytest.param(needs, code, id=f"{document}:{line}"))
    return found


@pytest.mark.parametrize(("needs", "code"), blocks("python"))
def test_python_block_runs(needs: list[str], code: str) -> None:
    for package in needs:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    exec(compile(code, "<document>", "exec"), {"__name__": "__main__"})


@pytest.mark.skipif(os.name != "posix", reason="the console blocks are for a POSIX shell")
@pytest.mark.parametrize(("needs", "session"), blocks("console"))
def test_console_block_prints_what_it_shows(needs: list[str], session: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        run = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path}
        )
        # The document may show standard output and standard error in either order, so only the sorted words are
        # compared.
        assert sorted((run.stdout + "\n" + run.stderr).split()) == sorted(expected.split())


def test_ci_runs_the_shell_blocks() -> None:
    """The shell blocks install everything, so only CI runs them. CI finds each block by a word, which must occur in
    exactly one block."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    words = re.findall(r"readme_command (\S+)\)", script)
    commands = [block.values[1].strip() for block in blocks("sh")]
    assert len(commands) == len(words)
    assert all([word in command for command in commands].count(True) == 1 for word in words)


def test_every_extra_that_is_named_exists() -> None:
    """All extras in the documents' commands must exist: for an unknown extra, pip only prints a warning, and installs
    nothing."""
    manifest = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = manifest.split("[project.optional-dependencies]")[1].split("[project.scripts]")[0]
    extras = {*re.findall(r"^([\w-]+) = \[", table, re.MULTILINE)}
    texts = [manifest, *((ROOT / page).read_text(encoding="utf-8") for page in PAGES)]
    named = re.findall(r"(?:stopscan|'\.|\"\.)\[([\w,-]+)\]", "\n".join(texts))
    assert {name for names in named for name in names.split(",")} <= extras


def test_there_are_blocks_to_run() -> None:
    assert len(blocks("python")) >= 3
    assert len(blocks("console")) >= 1


@pytest.mark.parametrize(
    ("badge", "file", "field"),
    [
        ("python", "pyproject.toml", r'requires-python = ">=(.*)"'),
        ("rust", "Cargo.toml", r'rust-version = "(.*)"'),
        ("license", "pyproject.toml", r'license = "(.*)"'),
    ],
)
def test_badges_say_what_the_packages_say(badge: str, file: str, field: str) -> None:
    said = re.findall(r">([^<]+)</text>", (ROOT / "docs" / "badges" / f"{badge}.svg").read_text(encoding="utf-8"))
    value = re.search(field, (ROOT / file).read_text(encoding="utf-8"))
    assert value is not None
    assert set(said) == {badge, value[1] + ("" if badge == "license" else "+")}
