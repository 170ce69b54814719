"""Writes the docstrings of the compiled module into its type stub, so that editors show them:

    python ci/stub_docstrings.py [--check]

`--check` changes nothing, and fails if the stub differs. A test runs it.

The stub has base classes that the module lacks. If all subclasses of a base class have the same docstring for a member,
the base class gets this docstring.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import stopscan._stopscan as module

STUB = Path(__file__).parents[1] / "python" / "stopscan" / "_stopscan.pyi"
Documented = ast.ClassDef | ast.FunctionDef


def docstring(name: str, owners: list[object]) -> str | None:
    """Returns the docstring of the member `name` if all classes in `owners` have the same one, otherwise `None`. Also
    returns `None` for special methods."""
    found = {inspect.getdoc(inspect.getattr_static(owner, name, None)) for owner in owners}
    (text,) = found if len(found) == 1 else (None,)
    return text if text and not (name.startswith("__") and name.endswith("__")) else None


def documented(tree: ast.Module) -> Iterator[tuple[Documented, str]]:
    """Yields each class, function and method of the stub with its docstring in the compiled module."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    heirs: dict[str, list[object]] = {name: [] for name in classes}

    def add(name: str, owner: object) -> None:
        heirs[name].append(owner)
        for base in classes[name].bases:
            base = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(base, ast.Name) and base.id in classes:
                add(base.id, owner)

    for name in classes:
        if hasattr(module, name):
            add(name, getattr(module, name))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, inspect.getdoc(getattr(module, node.name)) or ""
        if not isinstance(node, ast.ClassDef):
            continue
        if hasattr(module, node.name):
            yield node, inspect.getdoc(getattr(module, node.name)) or ""
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and (text := docstring(member.name, heirs[node.name])):
                yield member, text


def written(text: str, indent: str) -> list[str]:
    """Returns a docstring as lines of the stub."""
    mark = 'r"""' if "\\" in text else '"""'
    first, *rest = text.splitlines()
    lines = [f"{indent}{mark}{first}", *(f"{indent}{line}".rstrip() for line in rest)]
    return [*lines[:-1], f'{lines[-1]}"""'] if not rest else [*lines, f'{indent}"""']


def with_docstrings(stub: str) -> str:
    tree = ast.parse(stub)
    lines = stub.splitlines()
    for node, text in sorted(documented(tree), key=lambda pair: -pair[0].lineno):
        body = node.body[0]
        indent = " " * (node.col_offset + 4)
        if ast.get_docstring(node) is not None:
            assert body.end_lineno is not None
            del lines[body.lineno - 1 : body.end_lineno]
            lines[body.lineno - 1 : body.lineno - 1] = written(text, indent)
        elif isinstance(body, ast.Expr) and lines[body.lineno - 1].endswith(": ..."):
            lines[body.lineno - 1] = lines[body.lineno - 1].removesuffix(" ...")
            lines[body.lineno : body.lineno] = written(text, indent)
        else:
            lines[body.lineno - 1 - _decorators(body) : body.lineno - 1 - _decorators(body)] = written(text, indent)
    return "\n".join(lines) + "\n"


def _decorators(node: ast.stmt) -> int:
    """Returns the number of lines of decorators above a statement."""
    decorators = getattr(node, "decorator_list", [])
    return node.lineno - decorators[0].lineno if decorators else 0


if __name__ == "__main__":
    before = STUB.read_text(encoding="utf-8")
    after = with_docstrings(before)
    if "--check" not in sys.argv:
        STUB.write_text(after, encoding="utf-8")
    elif before != after:
        sys.exit(f"{STUB.name} has other docstrings than the module: run python ci/stub_docstrings.py")
