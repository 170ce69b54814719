"""What a run has found, as the tables that people read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby

from rich import box
from rich.console import Console
from rich.table import Table

from stopscan_conformance._baseline import NOTHING_KNOWN, Baseline
from stopscan_conformance._cases import Case, Result
from stopscan_conformance._promises import COLUMNS, Column
from stopscan_conformance._server import Server

Results = Mapping[Case, Result]
MOST_SHOWN = 6


@dataclass
class Report:
    """What a run has found so far of its cases. `known` are the failures of an earlier run."""

    server: Server
    seed: int = 0
    known: Baseline = NOTHING_KNOWN
    every: Sequence[Case] = ()
    results: dict[Case, Result] = field(default_factory=dict)
    complete: bool = False

    @property
    def fresh(self) -> Results:
        """The results with nothing but new failures."""
        return {case: self.known.without_known(case, result) for case, result in self.results.items()}

    @property
    def status(self) -> int:
        """The exit status."""
        if all(result.outcome == "not supported" for result in self.results.values()):
            return 2
        return int(any(result.outcome == "fail" for result in self.fresh.values()))


def print_tables(report: Report, *, shrink: bool = False) -> None:
    """Prints how many promises each API keeps, then its cases that break one, then what came instead. Failures that are
    known are counted alone.

    With `shrink`, the first failure of each kind is sent again, smaller, until it is the least request that fails.
    """
    console = Console(highlight=False, markup=False)
    console.print(_kept(report.results))
    fresh = report.fresh
    for api, found in by_api(fresh):
        table = _broken(api, found)
        if table.row_count:
            console.print(table)
    console.soft_wrap = True
    for line in chain(_notes(fresh), _sums(report), _shown(report, fresh, shrink=shrink)):
        console.print(line)


def by_api(results: Results) -> Iterator[tuple[str, Results]]:
    for api, group in groupby(results.items(), lambda item: item[0].api):
        yield api, dict(group)


def _kept(results: Results) -> Table:
    table = Table("kept, of so many", box=box.SIMPLE, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for api, found in by_api(results):
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
    for api, found in by_api(results):
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
            yield f"not supported: {api}, {count} {'case' if count == 1 else 'cases'}: {detail}"


def _sums(report: Report) -> Iterator[str]:
    if not report.complete:
        yield f"the run ended early: {len(report.results)} results of {len(report.every)} cases"
    number = counts(report.results)
    yield f"{number['pass']} pass, {number['fail']} fail, {number['not supported']} not supported"
    if report.known is not NOTHING_KNOWN:
        new = counts(report.fresh)["fail"]
        yield f"{new} of the {number['fail']} failures {'is' if new == 1 else 'are'} not in the baseline"


def _shown(report: Report, fresh: Results, *, shrink: bool) -> Iterator[str]:
    """For the first failure of each API and kind, the line that shows it: the promises that are broken are its kind."""
    seen: set[tuple[str, tuple[Column, ...]]] = set()
    for case, result in fresh.items():
        kind = (case.api, result.wrong)
        if not result.wrong or kind in seen or len(seen) == MOST_SHOWN:
            continue
        seen.add(kind)
        least = case.least(report.server, result) if shrink else case
        if line := least.curl(report.server):
            yield f"\n{' '.join(result.wrong)} of {least}: {case.why}\n  {line}"


def counts(results: Results) -> dict[str, int]:
    """How many cases had each outcome."""
    found = Counter(result.outcome for result in results.values())
    return {outcome: found[outcome] for outcome in ("pass", "fail", "not supported")}
