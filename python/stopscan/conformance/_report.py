"""The results as tables, as JSON and as JUnit XML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich import box
from rich.console import Console
from rich.table import Table

from stopscan.conformance._cases import Case, Result
from stopscan.conformance._judge import COLUMNS, Column
from stopscan.conformance._server import Server

Results = Mapping[Case, Result]
CLIENTS = ("anthropic", "httpx", "ollama", "openai", "stopscan")


def print_tables(results: Results) -> None:
    """Prints how many promises each API keeps, then its cases that break one, then what came instead."""
    console = Console(highlight=False, markup=False)
    console.print(_kept(results))
    for api, found in _by_api(results):
        table = _broken(api, found)
        if table.row_count:
            console.print(table)
    console.soft_wrap = True
    for line in _notes(results):
        console.print(line)


def _by_api(results: Results) -> Iterator[tuple[str, Results]]:
    for api, group in groupby(results.items(), lambda item: item[0].api):
        yield api, dict(group)


def _kept(results: Results) -> Table:
    table = Table("kept, of so many", box=box.SIMPLE, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for api, found in _by_api(results):
        table.add_row(api, *(_fraction(found, column) for column in COLUMNS))
    return table


def _fraction(results: Results, column: Column) -> str:
    faults = [result.columns[column] for result in results.values() if column in result.columns]
    return f"{faults.count(None)}/{len(faults)}" if faults else "-"


def _broken(api: str, results: Results) -> Table:
    """A row a case; what is wrong with nearly all cases has a row of its own instead."""
    table = Table(f"broken: {api}", *COLUMNS, box=box.SIMPLE, pad_edge=False)
    usual = {fault for fault, _ in _usual(results)}
    rows: dict[str, dict[Column, set[str]]] = {}
    for case, result in results.items():
        for column in result.wrong:
            fault = result.columns[column]
            name = "nearly all" if (column, fault) in usual else case.name
            rows.setdefault(name, {}).setdefault(column, set()).add("stream" if case.stream else "whole")
    for name, row in sorted(rows.items(), key=lambda item: (item[0] != "nearly all", item[0])):
        modes = [row.get(column, ()) for column in COLUMNS]
        table.add_row(name, *("both" if len(mode) > 1 else "".join(mode) for mode in modes))
    return table


def _usual(results: Results) -> list[tuple[tuple[Column, str | None], int]]:
    """What is wrong with more than a third of the cases, in the same words."""
    faults = Counter((column, result.columns[column]) for result in results.values() for column in result.wrong)
    return [(fault, count) for fault, count in faults.items() if count > max(len(results) / 3, 5)]


def _notes(results: Results) -> Iterator[str]:
    for api, found in _by_api(results):
        usual = _usual(found)
        for (column, fault), count in usual:
            yield f"FAIL {api}, {column} of {count} cases: {fault}"
        known = {one for one, _ in usual}
        for case, result in found.items():
            faults = [str(fault) for column, fault in result.columns.items() if fault and (column, fault) not in known]
            if result.outcome == "fail" and (faults or not result.columns):
                yield f"FAIL {case}: {'; '.join(faults) or result.detail}"
        refused = Counter(result.detail for result in found.values() if result.outcome == "not supported")
        for detail, count in refused.items():
            yield f"not supported: {api}, {count} cases: {detail}"
    number = counts(results)
    yield f"{number['pass']} pass, {number['fail']} fail, {number['not supported']} not supported"


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
        "results": [_as_json(case, result) for case, result in results.items()],
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _as_json(case: Case, result: Result) -> dict[str, Any]:
    told = {"outcome": result.outcome, "detail": result.detail, "columns": dict(result.columns)}
    return {"api": case.api, "stream": case.stream, "case": case.name, **told}


def write_junit(path: Path, results: Results) -> None:
    """Writes a suite an API; a case that is not supported counts as skipped."""
    root = ElementTree.Element("testsuites")
    for api, found in _by_api(results):
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
                ElementTree.SubElement(element, kind, message=message, type=" ".join(result.wrong))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
