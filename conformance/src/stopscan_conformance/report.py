"""Reports the results of a run as lines for people, as JSON, JUnit XML and HTML, and compares them with a baseline."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from stopscan_conformance import html_report
from stopscan_conformance._version import __version__
from stopscan_conformance.apis import APIS
from stopscan_conformance.cases import Case, Result, counted, result_of
from stopscan_conformance.client import Server
from stopscan_conformance.judge import COLUMNS, RULES, Column, Level, Rule
from stopscan_conformance.probe import Can
from stopscan_conformance.sentences import REFUSES
from stopscan_conformance.sentences import promises as promises_form

Results = Mapping[Case, Result]
Failure = tuple[str, bool, str, str]  # the API, whether the answer is a stream, the case and the rule
MOST_SHOWN = 6


@dataclass(frozen=True)
class Baseline:
    """An earlier run, read from a file that `--json` wrote. It has the failures and the seed of that run, and the
    version of the kit. `run` is the whole content of the file."""

    failures: frozenset[Failure]
    seed: int | None = None
    version: str | None = None
    run: html_report.Run | None = None

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Reads a report that `--json` wrote. Raises `ValueError` if the file is not a report."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"--baseline {path} is not JSON: {error}") from None
        try:
            failures = frozenset(
                (one["api"], one["stream"], one["case"], finding["rule"])
                for one in content["results"]
                for finding in one["findings"]
                if finding["fault"] is not None
            )
            return cls(failures, content.get("seed"), content["versions"]["stopscan-conformance"], content)
        except (KeyError, TypeError, AttributeError):
            raise ValueError(f"--baseline {path} is not a report that --json has written") from None

    def has(self, case: Case, rule: str) -> bool:
        return (case.api, case.stream, case.name, rule) in self.failures

    def other_than(self, seed: int) -> Iterator[str]:
        """Yields the reasons why a run with `seed` has other cases than the baseline (an earlier run)."""
        if self.seed not in (None, seed):
            yield f"the baseline has the cases of --seed {self.seed}, this run has those of --seed {seed}"
        if self.version not in (None, __version__):
            yield f"the baseline has the cases of stopscan-conformance {self.version}, this is {__version__}"


NOTHING_KNOWN = Baseline(frozenset())


@dataclass
class Report:
    """The results of a run so far. `known` is the baseline: the failures of an earlier run. `can` says for each API
    what the server can do."""

    server: Server
    seed: int = 0
    level: Level = "usual"
    known: Baseline = NOTHING_KNOWN
    every: Sequence[Case] = ()
    results: dict[Case, Result] = field(default_factory=dict)
    can: dict[str, Can] = field(default_factory=dict)
    complete: bool = False

    def new(self, case: Case, result: Result) -> Result:
        """Returns the result without the failures that the baseline also has."""
        if result.outcome == "not supported":
            return result
        known = {rule for rule, fault in result.findings.items() if fault and self.known.has(case, rule)}
        findings = {rule: fault for rule, fault in result.findings.items() if rule not in known}
        return result if not known else result_of(findings, counted(APIS[case.api], self.level))

    @property
    def fresh(self) -> Results:
        return {case: self.new(case, result) for case, result in self.results.items()}

    @property
    def status(self) -> int:
        """The exit status: 2 if no case is supported, 1 if a failure is not in the baseline, otherwise 0."""
        if all(result.outcome == "not supported" for result in self.results.values()):
            return 2
        return int(any(result.outcome == "fail" for result in self.fresh.values()))

    def lines(self, case: Case, result: Result) -> Iterator[str]:
        """Yields the lines for a case that has ended: its outcome, and each rule that it breaks."""
        fresh = self.new(case, result)
        words = {"not supported": "skip", "fail": "FAIL"}
        yield f"{words.get(fresh.outcome, 'pass')}  {case}" + (
            f": {result.detail}" if result.outcome == "not supported" else ""
        )
        for rule, fault in fresh.broken.items():
            yield f"      {_cited(rule, case)}: {fault}"


def _cited(rule: str, case: Case) -> str:
    return f"{rule} ({RULES[rule].level_of(APIS[case.api])})"


def by_api(results: Results) -> Iterator[tuple[str, Results]]:
    for api, group in groupby(results.items(), lambda item: item[0].api):
        yield api, dict(group)


def counts(results: Results) -> dict[str, int]:
    """Returns the number of cases by outcome."""
    numbers = Counter(result.outcome for result in results.values())
    return {outcome: numbers[outcome] for outcome in ("pass", "fail", "not supported")}


def summary(report: Report, *, shrink: bool = False) -> Iterator[str]:
    """Yields the lines at the end of a run:

    - how many cases of each API keep each promise (a group of rules)
    - each broken rule with its source
    - for each kind of failure, a command that repeats the first failure

    A failure that was already in the baseline (an earlier run) is counted, but not shown. If `shrink` is true, sends
    smaller requests to find the smallest one that fails in the same way.
    """
    yield ""
    yield from _kept(report.results)
    fresh = report.fresh
    yield from _rules(fresh)
    for api, group in by_api(fresh):
        refused = Counter(result.detail for result in group.values() if result.outcome == "not supported")
        for detail, count in refused.items():
            yield f"not supported: {api}, {count} {'case' if count == 1 else 'cases'}: {detail}"
    if not report.complete:
        yield f"the run ended early: {len(report.results)} results of {len(report.every)} cases"
    number = counts(report.results)
    advice = sum(result.outcome == "pass" and bool(result.broken) for result in report.results.values())
    more = f" ({advice} of them break advice)" if advice else ""
    yield from _promised(report.results)
    yield f"{number['pass']} pass{more}, {number['fail']} fail, {number['not supported']} not supported"
    if report.known is not NOTHING_KNOWN:
        new = counts(fresh)["fail"]
        yield f"{new} of the {number['fail']} failures {'is' if new == 1 else 'are'} not in the baseline"
    yield from _shown(report, fresh, shrink=shrink)


def _promised(results: Results) -> Iterator[str]:
    """For each API: yields how many requests the server refused although the API's reference documents the form of
    these requests. Yields nothing for an API if none were refused."""
    for api, group in by_api(results):
        refused = [REFUSES in result.broken for case, result in group.items() if promises_form(api, case.name)]
        if any(refused):
            yield f"{api}: {refused.count(True)} of {len(refused)} documented forms of request were refused"


def _kept(results: Results) -> Iterator[str]:
    width = max((len(case.api) for case in results), default=0)
    yield f"{'kept / tested':{max(width, 16)}}" + "".join(f"{column:>10}" for column in COLUMNS)
    for api, group in by_api(results):
        yield f"{api:{max(width, 16)}}" + "".join(f"{_fraction(group, column):>10}" for column in COLUMNS)
    yield ""


def _fraction(results: Results, column: Column) -> str:
    faults = [result.columns[column] for result in results.values() if column in result.columns]
    return f"{faults.count(None)}/{len(faults)}" if faults else "-"


def _rules(results: Results) -> Iterator[str]:
    """Yields lines about each broken rule: how often and in which cases it is broken, its level and its source."""
    for api, group in by_api(results):
        for rule in RULES.values():
            names = list(dict.fromkeys(case.name for case, result in group.items() if rule.name in result.broken))
            number = sum(rule.name in result.broken for result in group.values())
            if number:
                first = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
                yield f"{api}: {rule.name} is broken in {number} {'case' if number == 1 else 'cases'}: {first}"
                yield f"  {rule.level_of(APIS[api])}: {rule.says}"
                for source in _sources(rule, api, group):
                    yield f"  {source}"


def _sources(rule: Rule, api: str, results: Results) -> list[str]:
    """Returns the sources of a broken rule, one for each complaint. The source is the sentence that documents the rule.
    If there is no sentence, it is what the rule is based on."""
    broken = [(case, fault) for case, result in results.items() if (fault := result.broken.get(rule.name))]
    return list(dict.fromkeys(rule.source(APIS[api], fault, case.name) for case, fault in broken))[:MOST_SHOWN]


def _shown(report: Report, fresh: Results, *, shrink: bool) -> Iterator[str]:
    """Yields commands that repeat failures. Failures of the same API that break the same rules are of one kind, and
    only the first failure of each kind gets a command."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for case, result in fresh.items():
        kind = (case.api, tuple(result.broken))
        if result.outcome != "fail" or kind in seen or len(seen) == MOST_SHOWN:
            continue
        seen.add(kind)
        least = case.least(report.server, result) if shrink else case
        if line := least.curl(report.server):
            yield f"\n{' '.join(result.broken)} of {least}: {case.why}\n  {line}"


# Functions that choose the cases, and the findings that count.


def chosen(every: Sequence[Case], only: Sequence[str]) -> list[Case]:
    """Returns the cases whose topic or `api/case` matches a glob of `only`. Other globs of `only` match promises
    (groups of rules): these choose rules, and not cases. If all globs match promises, returns all cases.

    Raises `ValueError` for a glob that matches nothing.
    """
    globs = [glob for glob in only if not promises([glob])]
    for glob in globs:
        if not any(_named(case, glob) for case in every):
            raise ValueError(f"--only {glob} does not name a promise, a topic or a case{_hint(every, glob)}")
    return [case for case in every if any(_named(case, glob) for glob in globs)] if globs else list(every)


def _named(case: Case, glob: str) -> bool:
    return any(fnmatchcase(name, glob) for name in (case.topic, f"{case.api}/{case.name}"))


def _hint(every: Iterable[Case], glob: str) -> str:
    """Returns a hint if the user named a case in a wrong form: without its API, or as reports print it. Otherwise
    returns an empty string."""
    named = [
        f"{case.api}/{case.name}" for case in every if fnmatchcase(case.name, glob) or fnmatchcase(str(case), glob)
    ]
    return f"; a case is named API/NAME, such as {named[0]}" if named else ""


def promises(only: Sequence[str]) -> list[Column]:
    """Returns the promises (groups of rules, such as "late") that match a glob of `only`."""
    return [column for column in COLUMNS if any(fnmatchcase(column, glob) for glob in only if "/" not in glob)]


def limited(result: Result, columns: Collection[Column], level: Level, api: str) -> Result | None:
    """Returns `result` with fewer rules, or None if no rule is left. Each rule belongs to a promise, and only the rules
    of the promises in `columns` are kept."""
    if result.outcome == "not supported":
        return result
    findings = {rule: fault for rule, fault in result.findings.items() if RULES[rule].column in columns}
    return result_of(findings, counted(APIS[api], level)) if findings else None


# The files of the results: JSON, JUnit XML and HTML.


def write(report: Report, *, json_path: Path | None, junit_path: Path | None, html_path: Path | None) -> None:
    """Writes the files that were asked for."""
    if json_path:
        write_json(json_path, report)
    if junit_path:
        write_junit(junit_path, report)
    if html_path:
        runs = [content(report)] + ([] if report.known.run is None else [report.known.run])
        _replace(html_path, html_report.page(runs).encode())


def write_json(path: Path, report: Report) -> None:
    """Writes the summary and each result as JSON."""
    _replace(path, (json.dumps(content(report), indent=2) + "\n").encode())


def content(report: Report) -> dict[str, Any]:
    """Returns the summary and each result."""
    return {
        "url": report.server.url,
        "model": report.server.model if report.results else None,
        "versions": {"stopscan-conformance": __version__},
        "seed": report.seed,
        "level": report.level,
        "complete": report.complete,
        "cannot": {api: can.lines() for api, can in report.can.items()},
        "summary": counts(report.results),
        "results": [_as_json(case, result, report) for case, result in report.results.items()],
    }


def _as_json(case: Case, result: Result, report: Report) -> dict[str, Any]:
    named = {"api": case.api, "stream": case.stream, "case": case.name, "topic": case.topic, "why": case.why}
    findings = [_finding(rule, fault, case, report) for rule, fault in result.findings.items()]
    entry = {**named, "outcome": result.outcome, "detail": result.detail, "findings": findings}
    return entry if not result.broken else {**entry, "curl": case.curl(report.server)}


def _finding(rule: str, fault: str | None, case: Case, report: Report) -> dict[str, Any]:
    api, row = APIS[case.api], RULES[rule]
    quoted = row.sentence(api, fault or "", case.name)
    entry: dict[str, Any] = {"rule": rule, "promise": row.column, "level": row.level_of(api)}
    entry |= {"quote": quoted and quoted.quote, "source": quoted.source if quoted else row.basis or api.source}
    entry |= {"fault": fault}
    return entry if fault is None else {**entry, "new": not report.known.has(case, rule)}


def write_junit(path: Path, report: Report) -> None:
    """Writes JUnit XML with a test suite for each API. Known failures, and cases that are not supported, count as
    skipped."""
    root = ElementTree.Element("testsuites")
    for api, results in by_api(report.results):
        fresh = {case: report.new(case, result) for case, result in results.items()}
        failures = counts(fresh)["fail"]
        skipped = sum(result.outcome != "pass" for result in results.values()) - failures
        numbers = {"tests": str(len(results)), "failures": str(failures), "skipped": str(skipped)}
        suite = ElementTree.SubElement(root, "testsuite", {"name": api, **numbers})
        for case, result in results.items():
            _add(suite, case, result, fresh[case], report)
    ElementTree.indent(root)
    _replace(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _add(suite: ElementTree.Element, case: Case, result: Result, fresh: Result, report: Report) -> None:
    classname = f"stopscan_conformance.{case.api}"
    element = ElementTree.SubElement(suite, "testcase", classname=classname, name=str(case))
    if result.outcome == "pass":
        return
    known = result.outcome == "fail" != fresh.outcome
    shown = result if known else fresh
    message = _printable(f"known: {shown.detail}" if known else shown.detail)
    kind = "failure" if fresh.outcome == "fail" else "skipped"
    child = ElementTree.SubElement(element, kind, message=message, type=" ".join(shown.broken))
    if kind == "failure":
        child.text = _printable("\n".join(explained(case, shown, report.server)))


def explained(case: Case, result: Result, server: Server) -> Iterator[str]:
    """Yields lines about a case: what it tests, which rules are broken and what their sources are, and which command
    repeats the request."""
    yield f"{case.topic}: {case.why}"
    for rule, fault in result.broken.items():
        yield f"{_cited(rule, case)}: {RULES[rule].says}; {RULES[rule].source(APIS[case.api], fault, case.name)}"
    if curl := case.curl(server):
        yield curl


def _replace(path: Path, content: bytes) -> None:
    """Replaces the file `path`: writes the content into a new file in the same folder, and renames that file to `path`.
    If writing is interrupted, the old file is still complete."""
    if path.exists() and not path.is_file():  # such as /dev/stdout or a pipe
        path.write_bytes(content)
        return
    real = path.resolve()  # if `path` is a link, the file that it points to is replaced, not the link
    beside = real.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        os.replace(beside, real)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename:
            error.filename = str(path)  # the user does not know the name of the temporary file
        raise


def _printable(text: str) -> str:
    """Returns the text with U+FFFD for control characters, which XML cannot contain."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
