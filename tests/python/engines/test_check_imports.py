"""``ci/check_imports.py`` finds imports of another package's private names, and imports in the wrong direction."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "ci" / "check_imports.py"


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = spec_from_file_location("check_imports", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    for package in (
        "stopscan/regions",
        "stopscan/engines",
        "stopscan/vllm",
        "stopscan/finish",
        "stopscan/mlx_lm/generate",
    ):
        (tmp_path / "python" / package).mkdir(parents=True)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "SOURCES", [tmp_path / "python", tmp_path / "clients", tmp_path / "conformance"])

    def faults(file: str, line: str) -> list[str]:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(line + "\n")
        return list(script.faults(path, tmp_path / file.split("/")[0]))

    return faults


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("python/stopscan/vllm/_a.py", "from stopscan.engines._options import READERS"),
        ("python/stopscan/vllm/_a.py", "import stopscan.regions._prompt"),
        ("python/stopscan/vllm/_a.py", "from stopscan.engines import _options"),
        ("python/stopscan/vllm/_a.py", "from ..engines._options import READERS"),
        ("python/stopscan/vllm/_a.py", "def late():\n    from stopscan.mlx_lm import RowScanner"),
        ("python/stopscan/engines/_a.py", "from stopscan.vllm import install"),
        ("python/stopscan/new_engine/_a.py", "from stopscan.engines import Row"),  # not in the list of packages
        ("python/stopscan/finish/_a.py", "from stopscan.engines import CHAT"),
        ("python/stopscan/finish/_a.py", "import stopscan_clients"),
        ("clients/stopscan_clients/a.py", "from stopscan.regions._prompt import start_region"),
        ("clients/stopscan_clients/a.py", "import stopscan._stopscan"),
        ("conformance/stopscan_conformance/a.py", "from stopscan import StopSet"),
    ],
)
def test_a_wrong_import_is_told(check: Any, file: str, line: str) -> None:
    found = check(file, line)
    assert found
    assert all(fault.startswith(f"{file}:") for fault in found)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("python/stopscan/vllm/_a.py", "from stopscan.engines import CHAT"),
        ("python/stopscan/vllm/_a.py", "from stopscan.vllm._b import x"),
        ("python/stopscan/vllm/_a.py", "from stopscan import StopSet, repeats"),
        ("python/stopscan/vllm/_a.py", "from vllm.v1._private import x"),
        ("python/stopscan/mlx_lm/generate/_a.py", "from stopscan.mlx_lm._row import x"),
        ("python/stopscan/regions/_a.py", "from stopscan._stopscan import StopSet"),
        ("python/stopscan/regions/_a.py", "from __future__ import annotations"),
        (
            "clients/stopscan_clients/a.py",
            "from stopscan.regions import region_after\nfrom stopscan_clients._b import x",
        ),
        ("conformance/stopscan_conformance/a.py", "from stopscan_conformance._b import x\nimport httpx"),
    ],
)
def test_a_right_import_is_not(check: Any, file: str, line: str) -> None:
    assert check(file, line) == []
