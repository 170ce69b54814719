"""Which cases are sent, and which promises count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from stopscan_conformance._cases import Case, Result
from stopscan_conformance._promises import COLUMNS, Column


def chosen(every: Sequence[Case], only: Sequence[str]) -> list[Case]:
    """The cases that a glob of `only` names by their topic or as `api/case`; all if no glob names cases. Raises
    `ValueError` for a glob that names nothing.
    """
    globs = [glob for glob in only if not promises([glob])]
    for glob in globs:
        if not any(_named(case, glob) for case in every):
            raise ValueError(f"--only {glob} names no promise, no topic and no case{_hint(every, glob)}")
    return [case for case in every if any(_named(case, glob) for glob in globs)] if globs else list(every)


def _named(case: Case, glob: str) -> bool:
    return any(fnmatchcase(name, glob) for name in (case.topic, f"{case.api}/{case.name}"))


def _hint(every: Iterable[Case], glob: str) -> str:
    """How a case is named that is meant by its name alone, or as reports call it."""
    named = [
        f"{case.api}/{case.name}" for case in every if fnmatchcase(case.name, glob) or fnmatchcase(str(case), glob)
    ]
    return f"; a case is named API/NAME, such as {named[0]}" if named else ""


def promises(only: Sequence[str]) -> list[Column]:
    """The promises that a glob names."""
    return [column for column in COLUMNS if any(fnmatchcase(column, glob) for glob in only if "/" not in glob)]


def limited(result: Result, columns: Collection[Column]) -> Result:
    """The result with nothing but these promises."""
    kept = {column: fault for column, fault in result.columns.items() if column in columns}
    wrong = [fault for fault in kept.values() if fault]
    return Result("fail" if wrong else "pass", "; ".join(wrong), kept)
