"""The results as a table, as JSON and as JUnit XML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from rich import box
from rich.console import Console
from rich.table import Table

from stopscan.conformance._cases import Case, Result
from stopscan.conformance._server import Server

Results = Mapping[Case, Result]
WORDS = {"pass": "pass", "fail": "FAIL", "not supported": "-"}
TEXT = {"text", "reasoning", "error"}
CLIENTS = ("anthropic", "httpx", "ollama", "openai", "stopscan")


def print_table(results: Results) -> None:
    """Prints a row a case, a column an API, the whole answer before the stream; then what came instead."""
    apis = list(dict.fromkeys(case.api for case in results))
    cells: dict[str, dict[str, list[str]]] = {}
    for case, result in results.items():
        cells.setdefault(case.name, {}).setdefault(case.api, []).append(WORDS[result.outcome])
    table = Table("whole, stream", *apis, box=box.SIMPLE, pad_edge=False)
    for name, row in cells.items():
        table.add_row(name, *(" ".join(row.get(api, ())) for api in apis))
    # A pipe has no width to fit in.
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, Console(width=10_000).measure(table).maximum)
    console.print(table)
    for line in _notes(results):
        console.print(line)


def _notes(results: Results) -> Iterator[str]:
    for case, result in results.items():
        if result.outcome == "fail":
            yield f"FAIL {case}: {result.detail}"
    for api, group in groupby(results.items(), lambda item: item[0].api):
        refused = Counter(result.detail for _, result in group if result.outcome == "not supported")
        for detail, count in refused.items():
            yield f"not supported: {api}, {count} cases: {detail}"
    yield _summary(results)


def _summary(results: Results) -> str:
    number = counts(results)
    right = sum(result.outcome == "fail" and TEXT.isdisjoint(result.wrong) for result in results.values())
    fail = f"{number['fail']} fail" + (f" ({right} of them with the right text)" if right else "")
    return f"{number['pass']} pass, {fail}, {number['not supported']} not supported"


def counts(results: Results) -> dict[str, int]:
    """How many cases had each outcome."""
    found = Counter(result.outcome for result in results.values())
    return {outcome: found[outcome] for outcome in ("pass", "fail", "not supported")}


def write_json(path: Path, server: Server, results: Results) -> None:
    """Writes the summary and each result; `versions` are those of the clients."""
    content = {
        "url": server.url,
        "model": server.model,
        "versions": {name: version(name) for name in CLIENTS},
        "summary": counts(results),
        "results": [
            {"api": case.api, "stream": case.stream, "case": case.name, **result._asdict()}
            for case, result in results.items()
        ],
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def write_junit(path: Path, results: Results) -> None:
    """Writes a suite an API; a case that is not supported counts as skipped."""
    root = ElementTree.Element("testsuites")
    for api, group in groupby(results.items(), lambda item: item[0].api):
        found = dict(group)
        numbers = counts(found)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=api,
            tests=str(len(found)),
            failures=str(numbers["fail"]),
            skipped=str(numbers["not supported"]),
        )
        for case, result in found.items():
            element = ElementTree.SubElement(suite, "testcase", classname=f"stopscan.conformance.{api}", name=str(case))
            if result.outcome != "pass":
                kind = "failure" if result.outcome == "fail" else "skipped"
                # XML has no way to write control characters.
                message = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in result.detail)
                ElementTree.SubElement(element, kind, message=message)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
