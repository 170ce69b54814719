"""What a release publishes leads somewhere on a package index, which has none of the repository's other files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
ADDRESS = "https://example.org/owner/stopscan"


def test_a_release_has_absolute_links_and_urls(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    for name in ("README.md", "pyproject.toml", "Cargo.toml", "ci/addresses.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run([sys.executable, "ci/addresses.py", f"{ADDRESS}/", "v9"], cwd=tmp_path, check=True)

    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", readme)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    for kind, path in re.findall(rf"{ADDRESS}/(\w+)/v9/([^)#]+)", readme):
        assert (ROOT / path).exists()
        assert (kind == "raw") == path.endswith(".svg")

    assert f'Issues = "{ADDRESS}/issues"' in (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    assert f'repository = "{ADDRESS}"' in (tmp_path / "Cargo.toml").read_text(encoding="utf-8")
