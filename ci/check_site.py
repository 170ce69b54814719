"""Checks the built site in Chromium.

Code must look as in the source, and links must lead somewhere. The light and the dark palette must have enough
contrast. No page, code or table may be cut off on a desktop or on a phone. The search must find what people look for.

mkdocs build --strict && python ci/check_site.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from pathlib import Path
from shutil import which
from threading import Thread
from urllib.parse import urldefrag, urljoin

from check_try import check_try
from markdown_it import MarkdownIt
from playwright.sync_api import Page, sync_playwright
from playwright.sync_api import TimeoutError as NothingShown

ROOT = Path(__file__).parents[1]
SITE = ROOT / "target" / "site"
WIDTHS = {"a desktop": 1280, "a phone": 390}
SEARCHES = ["include_stop", "is_disconnected", "reasoning_tokens", "FastAPI"]
CONTRAST = 4.5  # the least contrast ratio that WCAG 2.2, 1.4.3, allows for ordinary text
CODE = """() => [...document.querySelectorAll("article code")]
    .filter(code => !code.closest(".doc")).map(code => code.textContent.trim())"""
LINKS = "() => [...document.querySelectorAll('a[href]')].map(link => link.href)"
IDS = "() => [...document.querySelectorAll('[id]')].map(element => element.id)"
WIDE = "() => document.scrollingElement.scrollWidth - window.innerWidth"
CUT = """() => [...document.querySelectorAll("article pre, article pre > code, article table, .md-typeset__scrollwrap")]
    .filter(element => element.scrollWidth > element.clientWidth + 1 ||
        element.getBoundingClientRect().right > window.innerWidth + 1)
    .map(element => element.innerText.trim().slice(0, 60))"""
SCHEME = "() => document.body.getAttribute('data-md-color-scheme')"
COLOURS = """() => [document.querySelector("article p"), document.body].map((element, back) => {
    const style = getComputedStyle(element);
    return (back ? style.backgroundColor : style.color).match(/[\\d.]+/g).map(Number);
})"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


def pages() -> dict[str, Path]:
    """Returns a dict from the path of each page on the site to the page's source file."""
    found = {f"{page.stem}.html": page for page in sorted((ROOT / "docs").glob("*.md"))}
    found |= {f"repository/{name}.html": ROOT / f"{name}.md" for name in ("DESIGN", "CONTRIBUTING", "CHANGELOG")}
    found["index.html"] = ROOT / "README.md"
    if not (SITE / "try.html").is_file():
        del found["try.html"]  # the WebAssembly module was not built
    return found


def code(source: str) -> list[str]:
    """Returns the code spans and code blocks of a Markdown page, in order."""
    found: list[str] = []
    for token in MarkdownIt("commonmark").enable("table").parse(source):
        for part in token.children or [token]:
            if part.type in {"code_inline", "fence", "code_block"}:
                found.append(part.content.strip())
    return found


def contrast(front: list[float], back: list[float]) -> float:
    """Returns the contrast ratio of two colours as WCAG 2.2 defines it."""

    def luminance(colour: list[float]) -> float:
        parts = [part / 255 for part in colour[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    alpha = front[3] if len(front) == 4 else 1.0
    mixed = [alpha * part + (1 - alpha) * under for part, under in zip(front[:3], back[:3], strict=True)]
    dark, light = sorted([luminance(mixed), luminance(back)])
    return (light + 0.05) / (dark + 0.05)


def check_code(page: Page, source: Path) -> Iterator[str]:
    shown, written = page.evaluate(CODE), code(source.read_text(encoding="utf-8"))
    if shown != written:
        pairs = zip_longest(shown, written)
        yield f"shows {next((a, b) for a, b in pairs if a != b)!r}, page and source"


def check_looks(page: Page) -> Iterator[str]:
    for _ in range(2):
        front, back = page.evaluate(COLOURS)
        ratio = contrast(front, back)
        if ratio < CONTRAST:
            yield f"has a contrast of {ratio:.1f} in the palette {page.evaluate(SCHEME)}"
        scheme = page.evaluate(SCHEME)
        page.locator("label[for^=__palette]:visible").click()
        if page.evaluate(SCHEME) == scheme:
            yield f"stays in the palette {scheme}"
    for screen, width in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": 812})
        if (beyond := page.evaluate(WIDE)) > 0:
            yield f"is {beyond} pixels wider than {screen}"
        for cut in page.evaluate(CUT):
            yield f"cuts code or a table on {screen}: {cut!r}"
    page.set_viewport_size({"width": WIDTHS["a desktop"], "height": 812})


def check_links(links: dict[str, list[str]], ids: dict[str, set[str]], base: str) -> Iterator[str]:
    for origin, targets in links.items():
        for target in targets:
            path, fragment = urldefrag(urljoin(base + origin, target))
            if not path.startswith(base):
                continue
            name = path.removeprefix(base) or "index.html"
            if not (SITE / name).is_file():
                yield f"{origin} links to {name}, which is not there"
            elif fragment and name in ids and fragment not in ids[name]:
                yield f"{origin} links to {name}#{fragment}, which is not there"


def check_search(page: Page, base: str) -> Iterator[str]:
    for word in SEARCHES:
        page.goto(base + "index.html")
        page.locator("input.md-search__input").fill(word)
        try:
            page.locator(".md-search-result__list").filter(has_text=word).wait_for(timeout=30_000)
        except NothingShown:
            yield f"search does not find {word}"


def faults(page: Page, base: str) -> Iterator[str]:
    links: dict[str, list[str]] = {}
    ids: dict[str, set[str]] = {}
    for name, source in pages().items():
        page.goto(base + name)
        links[name], ids[name] = page.evaluate(LINKS), {*page.evaluate(IDS)}
        for fault in [*check_code(page, source), *check_looks(page)]:
            yield f"{name} {fault}"
    yield from check_links(links, ids, base)
    yield from check_search(page, base)
    if "try.html" in links:
        yield from check_try(page, base)


def main() -> int:
    with served() as base, sync_playwright() as playwright:
        # In containers, this program often runs as root. As root, Chromium starts only without its sandbox.
        browser = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
        count = 0
        for fault in faults(browser.new_page(), base):
            print(fault, flush=True)
            count += 1
        browser.close()
    print(f"{len(pages())} pages, {count} faults")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
