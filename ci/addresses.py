"""Writes the repository's address into the files of a release: into `project.urls`, the fields of the crate, and the
links in the READMEs of stopscan, stopscan-clients and stopscan-conformance.

python ci/addresses.py https://host/owner/name v0.1.0

The checkout has no address, so that a fork does not link to another repository. The release workflow knows the address.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from posixpath import normpath

ROOT = Path(__file__).parents[1]
RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)")


def absolute(markdown: str, address: str, tag: str, folder: str) -> str:
    """Returns the README ``markdown`` with absolute links instead of relative ones. The links lead to the files of
    ``tag``. A package index shows only the README, so relative links would lead nowhere."""

    def link(found: re.Match[str]) -> str:
        image, text, path = found.groups()
        return f"{image}{text}({address}/{'raw' if image else 'blob'}/{tag}/{normpath(folder + path)})"

    return RELATIVE.sub(link, markdown)


def with_urls(project: str, address: str, tag: str, folder: str) -> str:
    """Returns the text of a pyproject.toml with the table `project.urls`."""
    pages = {
        "Documentation": f"blob/{tag}/{folder}README.md",
        "Source": f"tree/{tag}/{folder}",
        "Changelog": f"blob/{tag}/{folder}CHANGELOG.md",
        "Issues": "issues",
    }
    lines = [f'{name} = "{address}/{page}"' for name, page in pages.items()]
    return project.replace("[project.scripts]", "\n".join(["[project.urls]", *lines, "", "[project.scripts]"]), 1)


def change(path: Path, changed: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = changed(before)
    if after == before:
        raise SystemExit(f"{path} has no address of the repository to replace")
    path.write_text(after, encoding="utf-8", newline="\n")


def write(root: Path, address: str, tag: str) -> None:
    for folder in ("", "clients/", "conformance/"):
        readme = root / folder / "README.md"
        if RELATIVE.search(readme.read_text(encoding="utf-8")):
            change(readme, lambda text, at=folder: absolute(text, address, tag, at))
        change(root / folder / "pyproject.toml", lambda text, at=folder: with_urls(text, address, tag, at))
    change(root / "Cargo.toml", lambda text: re.sub(r"# No `repository`.*", f'repository = "{address}"', text, count=1))


if __name__ == "__main__":
    write(ROOT, sys.argv[1].rstrip("/"), sys.argv[2])
