"""Fails if a package imports a private name of another package, or a package that it may not import.

A name that begins with `_` is private to its package, a directory below `stopscan`, `stopscan_clients` or
`stopscan_conformance`. Imports go in one direction: adapters -> engines -> regions -> segments and tokens -> the
compiled module. The clients import only public names of the library, the library does not import the clients, and the
conformance kit imports neither.

`rust/python/unlocked.rs` has the state that is used without a lock. It must not name PyO3: during a call into CPython,
Python code could call the same stream, and change the state between a read and a write.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = [ROOT / "python", ROOT / "clients" / "src", ROOT / "conformance" / "src"]
UNLOCKED = ROOT / "rust" / "python" / "unlocked.rs"
OURS = {"stopscan", "stopscan_clients", "stopscan_conformance"}

# For each package of the library: the other packages that it may import. A package that is not listed may import none.
# Every package may also import the modules directly below `stopscan`.
ADAPTERS = ("engines", "finish", "regions", "segments", "tokens")
MAY_IMPORT = {
    "finish": (),
    "segments": (),
    "tokens": ("finish", "segments"),
    "regions": ("segments",),
    "engines": ("finish", "regions", "segments", "tokens"),
    "mlx_lm": ADAPTERS,
    "sglang": ADAPTERS,
    "transformers": ADAPTERS,
    "vllm": ADAPTERS,
}
# Private modules that all of the library may import: the compiled module, and the common code of the async streams.
SHARED = {"stopscan._stopscan", "stopscan._async_stream"}


def imported(tree: ast.Module, module: str) -> Iterator[tuple[int, str]]:
    """Yields the line and the full name of each import of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def home(name: str) -> str:
    """Returns the package of a module or name: `stopscan.regions` for `stopscan.regions._names.NAMES`."""
    top, *rest = name.split(".")
    package = next(iter(rest), "")
    has_package = any((source / top / package).is_dir() for source in SOURCES) if package else False
    return f"{top}.{package}" if top == "stopscan" and has_package else top


def faults(path: Path, source: Path) -> Iterator[str]:
    module = ".".join(path.relative_to(source).with_suffix("").parts)
    inside = home(module)
    for line, name in imported(ast.parse(path.read_text()), module):
        top, *parts = name.split(".")
        place = f"{path.relative_to(ROOT)}:{line}"
        shared = any(name == each or name.startswith(f"{each}.") for each in SHARED) and module.startswith("stopscan.")
        other = home(name)
        if top not in OURS or other == inside:
            continue
        if any(part.startswith("_") and not part.startswith("__") for part in parts) and not shared:
            yield f"{place}: {name} is private to {other}"
        if module.split(".")[0] == "stopscan_conformance" or (module.split(".")[0] == "stopscan" and top != "stopscan"):
            yield f"{place}: {inside} may not import {top}"
        package, wanted = inside.partition(".")[2], other.partition(".")[2]
        if package and wanted and wanted not in MAY_IMPORT.get(package, ()):
            yield f"{place}: {inside} may not import {other}"


def main() -> int:
    found = [fault for source in SOURCES for path in sorted(source.rglob("*.py")) for fault in faults(path, source)]
    code = [line.partition("//")[0] for line in UNLOCKED.read_text().splitlines()]
    found += [
        f"{UNLOCKED.relative_to(ROOT)}:{n} names PyO3" for n, line in enumerate(code, 1) if "pyo3" in line.lower()
    ]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
