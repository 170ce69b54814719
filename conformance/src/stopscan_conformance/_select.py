"""Which cases are sent, which promises count, and which failures are known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stopscan_conformance._cases import Case, Result
from stopscan_conformance._promises import COLUMNS, Column

Known = frozenset[tuple[str, bool, str, str]]  # an API, whether it is a stream, a case and a promise


def chosen(every: Iterable[Case], only: Sequence[str]) -> list[Case]:
    """The cases that a glob of `only` names by their topic or as `api/case`; all if none names cases."""
    globs = [glob for glob in only if not promises([glob])]
    if not globs:
        return list(every)
    return [
        case
        for case in every
        if any(fnmatchcase(name, glob) for glob in globs for name in (case.topic, f"{case.api}/{case.name}"))
    ]


def promises(only: Sequence[str]) -> list[Column]:
    """The promises that a glob names."""
    return [column for column in COLUMNS if any(fnmatchcase(column, glob) for glob in only if "/" not in glob)]


def limited(result: Result, columns: Sequence[Column]) -> Result:
    """The result with nothing but these promises; all of it if there are none."""
    if not columns or result.outcome == "not supported":
        return result
    kept: dict[Column, str | None] = {column: result.columns[column] for column in columns if column in result.columns}
    wrong = [fault for fault in kept.values() if fault]
    return Result("fail" if wrong else "pass", "; ".join(wrong), kept)


def baseline(path: Path) -> Known:
    """The failures that a file of `--json` has. Raises `ValueError` if it is no such file."""
    try:
        content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return frozenset(
            (one["api"], one["stream"], one["case"], column)
            for one in content["results"]
            for column, fault in one["columns"].items()
            if fault is not None
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what --json wrote: {type(error).__name__}: {error}") from None


def new(case: Case, result: Result, known: Known) -> list[Column]:
    """The promises that the case breaks, and that are not known to be broken."""
    return [column for column in result.wrong if (case.api, case.stream, case.name, column) not in known]
