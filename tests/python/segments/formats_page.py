"""Makes the table of docs/formats.md from `FORMATS`. Run as a program, it writes the table into the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stopscan.segments import FORMATS, keep, stay

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
HEAD = "| form | markers | models, and where the form is documented |\n| --- | --- | --- |\n"


def table() -> str:
    """Returns the table of docs/formats.md. All forms with the same markers share a row."""
    rows: dict[str, list[str]] = {}
    for form, markers in FORMATS.items():
        regions = [state for state in markers if "/" not in state]
        lines = [f"{region}: {leads(markers[region]) or 'to the end'}" for region in regions]
        if "reasoning" in regions and "header" not in regions and "answer/after reasoning" not in markers:
            lines.append("the reasoning is opened again")
        cell = "<br>".join(lines)
        rows.setdefault(cell, []).append(form)
    return HEAD + "".join(row(forms, cell) for cell, forms in rows.items())


def row(forms: list[str], markers: str) -> str:
    names = "<br>".join(f"`{form}`" for form in forms)
    sources = "<br>".join(FORMATS[form].source.replace("<think>", "`<think>`") for form in forms)
    return f"| {names} | {markers} | {sources} |\n"


def leads(markers: Mapping[str, str]) -> str:
    """Lists the markers that lead to each region, such as "`a` `b` → one; `c` → other"."""
    by_region: dict[str, list[str]] = {}
    for marker, state in markers.items():
        left = ", kept" if isinstance(state, keep) else ", stays" if isinstance(state, stay) else ""
        region = state.partition("/")[0] + left
        by_region.setdefault(region, []).append(code(marker))
    return "; ".join(f"{' '.join(codes)} → {region}" for region, codes in by_region.items())


def code(marker: str) -> str:
    return "`" + marker.replace("\n", "\\n").replace("|", "\\|") + "`"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.partition("| form |")[0] + table(), encoding="utf-8")
