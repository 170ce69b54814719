"""Adds files from outside docs/ to the site: README.md as the first page, and the files that pages link to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(\.\./([^)#]+)")
README_LINK = re.compile(r"\]\((?![a-z]+:|#|docs/)([^)#]+)")
FENCE = re.compile(r"^```(\w+) [\w ]+$", re.MULTILINE)
CELL = re.compile(r"<td.*?</td>", re.DOTALL)


def readme() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return README_LINK.sub(r"](repository/\1", text).replace("](docs/", "](")


def from_repository(path: str) -> bytes:
    content = (ROOT / path).read_bytes()
    if path.endswith(".md"):
        content = content.replace(b"](docs/", b"](../").replace(b"](../docs/", b"](../../")
    return content


def on_files(files: Files, config: Any) -> Files:
    files.append(File.generated(config, "index.md", content=readme()))
    linked = {*README_LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))}
    for page in (ROOT / "docs").glob("*.md"):
        linked.update(LINK.findall(page.read_text(encoding="utf-8")))
    for path in sorted(linked):
        files.append(File.generated(config, f"repository/{path}", content=from_repository(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Makes links to files of the repository work on the site. Also shortens the first line of code blocks, such as
    "```python httpx openai", to the language: the other words are packages."""
    if not page.file.src_uri.startswith("repository/"):
        markdown = LINK.sub(r"](repository/\1", markdown)
    return FENCE.sub(r"```\1", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Removes the backslash before each pipe in the code of tables. Markdown's renderer leaves these backslashes in."""
    return CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)
