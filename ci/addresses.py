"""Writes the repository's address into what a release publishes: `project.urls`, the crate's fields, README's links.

python ci/addresses.py https://host/owner/name v0.1.0

The checkout has no address, so that a fork is no copy of somebody's links. The release workflow knows where it runs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)")


def absolute(markdown: str, address: str, tag: str) -> str:
    """A package index shows README.md alone: its links lead to the files of the tag, and its images to their bytes."""

    def link(found: re.Match[str]) -> str:
        image, text, path = found.groups()
        return f"{image}{text}({address}/{'raw' if image else 'blob'}/{tag}/{path})"

    return RELATIVE.sub(link, markdown)


def urls(address: str, tag: str) -> str:
    pages = {
        "Documentation": f"blob/{tag}/README.md#for-what-you-run",
        "Source": f"tree/{tag}",
        "Changelog": f"blob/{tag}/CHANGELOG.md",
        "Issues": "issues",
    }
    lines = [f'{name} = "{address}/{page}"' for name, page in pages.items()]
    return "\n".join(["[project.urls]", *lines, "", ""])


def write(root: Path, address: str, tag: str) -> None:
    for name, change in {
        "README.md": lambda text: absolute(text, address, tag),
        "pyproject.toml": lambda text: text.replace("[project.scripts]", urls(address, tag) + "[project.scripts]", 1),
        "Cargo.toml": lambda text: re.sub(r"# No `repository`.*", f'repository = "{address}"', text, count=1),
    }.items():
        before = (root / name).read_text(encoding="utf-8")
        after = change(before)
        if after == before:
            raise SystemExit(f"{name} has no place for the address")
        (root / name).write_text(after, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(ROOT, sys.argv[1].rstrip("/"), sys.argv[2])
