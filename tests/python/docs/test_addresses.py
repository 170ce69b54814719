"""The links in a published README must work on a package index, where the repository's other files are missing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ADDRESS = "https://example.org/owner/stopscan"
each_distribution = pytest.mark.parametrize("folder", ["", "clients/", "conformance/"])


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the published files, with the repository's address written into them."""
    root = tmp_path_factory.mktemp("release")
    files = ["Cargo.toml", "ci/addresses.py"]
    files += [folder + name for folder in ("", "clients/", "conformance/") for name in ("README.md", "pyproject.toml")]
    for name in files:
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    subprocess.run([sys.executable, "ci/addresses.py", f"{ADDRESS}/", "v9"], cwd=root, check=True)
    return root


@each_distribution
def test_links_of_a_released_readme_are_absolute(release: Path, folder: str) -> None:
    readme = (release / folder / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", readme)
    assert links or folder == "clients/"
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    for kind, path in re.findall(rf"{ADDRESS}/(\w+)/v9/([^)#]+)", readme):
        assert (ROOT / path).exists()
        assert (kind == "raw") == path.endswith((".png", ".svg"))


@each_distribution
def test_a_released_project_has_urls(release: Path, folder: str) -> None:
    project = (release / folder / "pyproject.toml").read_text(encoding="utf-8")
    assert f'Issues = "{ADDRESS}/issues"\n' in project
    assert f'Changelog = "{ADDRESS}/blob/v9/{folder}CHANGELOG.md"\n' in project


def test_the_released_crate_has_its_repository(release: Path) -> None:
    assert f'repository = "{ADDRESS}"' in (release / "Cargo.toml").read_text(encoding="utf-8")
