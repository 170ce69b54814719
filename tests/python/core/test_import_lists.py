"""Which modules are loaded by importing stopscan or one of its submodules."""

from __future__ import annotations

import subprocess
import sys

import pytest

import stopscan


def test_the_package_imports_nothing_but_its_native_module() -> None:
    """`import stopscan` must be fast. Before a fix, it took 13 ms, nearly all of it to import `inspect` and
    `typing`."""
    code = "import sys; before = set(sys.modules); import stopscan; print(*sorted(set(sys.modules) - before))"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert imported == ["stopscan", "stopscan._stopscan"]


def test_the_async_names_are_there_without_being_imported() -> None:
    code = "from stopscan import *; import stopscan; assert ascan is stopscan.ascan; stopscan.AsyncStopStream"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="'stopscan' has no attribute 'nothing'"):
        stopscan.nothing  # noqa: B018


# For each submodule, which other submodules it imports.
BROUGHT = {
    "finish": [],
    "segments": ["_async_stream"],
    "tokens": [],
    "repeats": [],
    "regions": ["_async_stream", "segments"],
    "sglang": [],
}


@pytest.mark.parametrize("name", BROUGHT)
def test_a_subpackage_imports_only_what_it_needs(name: str) -> None:
    """A submodule imports only the submodules that `BROUGHT` lists, and no other package."""
    code = f"import sys; before = set(sys.modules); import stopscan.{name}; print(*sorted(set(sys.modules) - before))"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {module.split(".")[1] for module in imported if module.startswith("stopscan.")}
    assert ours == {"_stopscan", name, *BROUGHT[name]}
    packages = {module.split(".")[0] for module in imported}
    assert packages - set(sys.stdlib_module_names) == {"stopscan"}
    assert "asyncio" not in packages
