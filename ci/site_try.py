"""Adds to the site the page on which readers try stopscan: docs/try.md with rust/wasm/try.html in place of the picture.

The page contains the WebAssembly module, so it needs no other file. `bash ci/wasm` builds the module. If the module was
not built, the page is left out, and links to it become text.
"""

from __future__ import annotations

import base64
import gzip
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

WASM = Path(__file__).parents[1] / "rust" / "wasm"
MODULE = WASM.parents[1] / "target/wasm/wasm32-unknown-unknown/release/stopscan_wasm.wasm"
PAGE = "try.md"
PICTURE = re.compile(r'<p><img [^>]*src="try\.png"[^>]*></p>')
LINK = re.compile(r"\[((?:!\[[^\]]*\]\([^)]*\)|[^\]])*)\]\(try\.md\)")


def without(nav: list[Any]) -> list[Any]:
    """Returns the navigation without the page."""
    sections = ({k: without(v) if isinstance(v, list) else v for k, v in entry.items()} for entry in nav)
    return [section for section in sections if PAGE not in section.values()]


def tool() -> str:
    """Returns the HTML of rust/wasm/try.html with the WebAssembly module and its JavaScript inserted."""
    packed = base64.b64encode(gzip.compress(MODULE.read_bytes(), mtime=0)).decode()
    html = (WASM / "try.html").read_text(encoding="utf-8")
    return html.replace("MODULE", packed, 1).replace("STOPSCAN", (WASM / "stopscan.mjs").read_text(encoding="utf-8"), 1)


def on_config(config: Any) -> Any:
    if not MODULE.is_file():
        config.nav = without(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    if not MODULE.is_file():
        files.remove(files.src_uris[PAGE])
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown if MODULE.is_file() else LINK.sub(r"\1", markdown)


def on_post_page(output: str, page: Page, config: Any) -> str:
    return PICTURE.sub(lambda _: tool(), output) if page.file.src_uri == PAGE else output
