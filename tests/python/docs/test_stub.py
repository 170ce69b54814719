"""The type stub has the docstrings of the compiled module, so that editors show them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
STUB = ROOT / "python" / "stopscan" / "_stopscan.pyi"


def test_stub_and_module_docstrings_are_equal() -> None:
    script = ROOT / "ci" / "stub_docstrings.py"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_every_public_name_of_the_stub_has_a_docstring() -> None:
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    named = [node for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    public = [node for node in named if not node.name.startswith("_")]
    assert {node.name for node in public if not ast.get_docstring(node)} == set()
