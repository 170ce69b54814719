"""The results as tables, as JSON and as JUnit XML."""

from __future__ import annotations

import json
import os
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

from stopscan_conformance._cases import Case, Result
from stopscan_conformance._promises import COLUMNS, Column
from stopscan_conformance._select import Known, new
from stopscan_conformance._server import Server
from stopscan_conformance._version import __version__

Results = Mapping[Case, Result]
MOST_SHOWN = 6
CLIENTS = ("anthropic", "httpx", "ollama", "openai")


def print_tables(
    results: Results, server: Server | None = None, known: Known = frozenset(), *, shrink: bool = False
) -> None:
    """Prints how many promises each API keeps, then its cases that break one, then what came instead.

    With `shrink`, the first failure of each kind is sent again, smaller, until it is the least request that fails.
    """
    console = Console(highlight=False, markup=False)
    console.print(_kept(results))
    for api, found in _by_api(results):
        table = _broken(api, found)
        if table.row_count:
            console.print(table)
    console.soft_wrap = True
    for line in _notes(results):
        console.print(line)
    if server is not None:
        for line in _known(results, known):
            console.print(line)
        for line in _shown(results, server, known, shrink=shrink):
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


def _known(results: Results, known: Known) -> Iterator[str]:
    if known:
        fresh = [case for case, result in results.items() if new(case, result, known)]
        yield f"{len(fresh)} cases fail that the baseline does not know"


def _shown(results: Results, server: Server, known: Known, *, shrink: bool) -> Iterator[str]:
    """For the first failure of each API and kind, the line that shows it."""
    seen: set[tuple[str, tuple[Column, ...]]] = set()
    for case, result in results.items():
        kind = (case.api, tuple(new(case, result, known)))
        if not kind[1] or kind in seen or len(seen) == MOST_SHOWN:
            continue
        seen.add(kind)
        least = case.least(server, result) if shrink else case
        if line := least.curl(server):
            yield f"\n{' '.join(kind[1])} of {least}: {case.why}\n  {line}"


def counts(results: Results) -> dict[str, int]:
    """How many cases had each outcome."""
    found = Counter(result.outcome for result in results.values())
    return {outcome: found[outcome] for outcome in ("pass", "fail", "not supported")}


def write(server: Server, results: Results, *, json_path: Path | None, junit_path: Path | None) -> None:
    """Writes what is asked for."""
    if json_path:
        write_json(json_path, server, results)
    if junit_path:
        write_junit(junit_path, server, results)


def write_json(path: Path, server: Server, results: Results) -> None:
    """Writes the summary and each result; `versions` are those of the kit and the clients."""
    content = {
        "url": server.url,
        "model": server.model if results else None,
        "versions": {"stopscan-conformance": __version__, **{name: version(name) for name in CLIENTS}},
        "summary": counts(results),
        "results": [_as_json(case, result, server) for case, result in results.items()],
    }
    _replace(path, (json.dumps(content, indent=2) + "\n").encode())


def _as_json(case: Case, result: Result, server: Server) -> dict[str, Any]:
    named = {"api": case.api, "stream": case.stream, "case": case.name, "topic": case.topic, "rule": case.why}
    told = {"outcome": result.outcome, "detail": result.detail, "columns": dict(result.columns)}
    return {**named, **told, **({"curl": case.curl(server)} if result.outcome == "fail" else {})}


def write_junit(path: Path, server: Server, results: Results) -> None:
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
            element = ElementTree.SubElement(suite, "testcase", classname=f"stopscan_conformance.{api}", name=str(case))
            if result.outcome != "pass":
                kind = "failure" if result.outcome == "fail" else "skipped"
                # XML has no way to write control characters.
                message = _printable(result.detail)
                told = ElementTree.SubElement(element, kind, message=message, type=" ".join(result.wrong))
                if kind == "failure":
                    told.text = _printable("\n".join(filter(None, (f"{case.topic}: {case.why}", case.curl(server)))))
    ElementTree.indent(root)
    _replace(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _replace(path: Path, content: bytes) -> None:
    """Writes beside the file, so that a kill while writing leaves what was written before."""
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe
        path.write_bytes(content)
        return
    real = path.resolve()  # what a link leads to is replaced, not the link
    beside = real.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        os.replace(beside, real)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename:
            error.filename = str(path)  # nobody knows the file beside it
        raise


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
