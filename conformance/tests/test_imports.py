"""The kit's modules do not import each other in a cycle. Imports in functions and under `TYPE_CHECKING` count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import stopscan_conformance

ROOT = Path(stopscan_conformance.__file__).parent


def files(root: Path) -> dict[str, Path]:
    """Returns the files, by the names of their modules."""
    return {
        ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in root.rglob("*.py")
    }


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yields the modules among `known` that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            inner = [f"{node.module}.{name.name}" for name in node.names]
            yield from (name if name in known else node.module for name in inner)


def in_order(root: Path) -> list[str]:
    """Returns the modules in an order in which each comes after the modules that it imports. Raises `CycleError` if
    there is no such order."""
    known = files(root)
    return [*TopologicalSorter({name: {*imported(path, known)} for name, path in known.items()}).static_order()]


def test_no_imports_go_round() -> None:
    assert len(in_order(ROOT)) > 20


def test_cyclic_imports_are_detected(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from package.one import a\n")
    (package / "one.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import package.two\n")
    (package / "two.py").write_text("def a():\n    from package import one\n")
    with pytest.raises(CycleError):
        in_order(package)
