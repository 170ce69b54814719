"""What a run has found, as JSON and as JUnit XML."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from stopscan_conformance._cases import Case, Result
from stopscan_conformance._report import Report, by_api, counts
from stopscan_conformance._version import __version__

CLIENTS = ("anthropic", "httpx", "ollama", "openai")


def write(report: Report, *, json_path: Path | None, junit_path: Path | None) -> None:
    """Writes what is asked for."""
    if json_path:
        write_json(json_path, report)
    if junit_path:
        write_junit(junit_path, report)


def write_json(path: Path, report: Report) -> None:
    """Writes the summary and each result; `versions` are those of the kit and the clients."""
    content = {
        "url": report.server.url,
        "model": report.server.model if report.results else None,
        "versions": {"stopscan-conformance": __version__, **{name: version(name) for name in CLIENTS}},
        "seed": report.seed,
        "complete": report.complete,
        "summary": counts(report.results),
        "results": [_as_json(case, result, report) for case, result in report.results.items()],
    }
    _replace(path, (json.dumps(content, indent=2) + "\n").encode())


def _as_json(case: Case, result: Result, report: Report) -> dict[str, Any]:
    named = {"api": case.api, "stream": case.stream, "case": case.name, "topic": case.topic, "rule": case.why}
    told = {"outcome": result.outcome, "detail": result.detail, "columns": dict(result.columns)}
    if result.outcome != "fail":
        return {**named, **told}
    return {**named, **told, "new": report.known.new(case, result), "curl": case.curl(report.server)}


def write_junit(path: Path, report: Report) -> None:
    """Writes a suite an API. What is not supported counts as skipped, and so does a failure that is known."""
    root = ElementTree.Element("testsuites")
    for api, found in by_api(report.results):
        fresh = {case: report.known.without_known(case, result) for case, result in found.items()}
        failures = counts(fresh)["fail"]
        skipped = sum(result.outcome != "pass" for result in found.values()) - failures
        numbers = {"tests": str(len(found)), "failures": str(failures), "skipped": str(skipped)}
        suite = ElementTree.SubElement(root, "testsuite", {"name": api, **numbers})
        for case, result in found.items():
            _add(suite, case, result, fresh[case], report)
    ElementTree.indent(root)
    _replace(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _add(suite: ElementTree.Element, case: Case, result: Result, fresh: Result, report: Report) -> None:
    classname = f"stopscan_conformance.{case.api}"
    element = ElementTree.SubElement(suite, "testcase", classname=classname, name=str(case))
    if result.outcome == "pass":
        return
    known = result.outcome == "fail" != fresh.outcome
    told = result if known else fresh
    message = _printable(f"known: {told.detail}" if known else told.detail)
    kind = "failure" if fresh.outcome == "fail" else "skipped"
    child = ElementTree.SubElement(element, kind, message=message, type=" ".join(told.wrong))
    if kind == "failure":
        child.text = _printable("\n".join(filter(None, (f"{case.topic}: {case.why}", case.curl(report.server)))))


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
    """The text without control characters, which XML has no way to write."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
