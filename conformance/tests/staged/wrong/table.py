from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from staged.app import Staged

Parts = AsyncIterator[tuple[str, str]]


@dataclass(frozen=True)
class Wrong:
    """A server with one defect, the name of the kit's case that finds the defect, and the promises (groups of rules)
    that the server breaks."""

    name: str
    case: str
    columns: tuple[str, ...]
    changes: Mapping[str, Any]

    @property
    def staged(self) -> Staged:
        return Staged(self.name, **self.changes)


def wrong(name: str, case: str, columns: str, /, **changes: Any) -> Wrong:
    return Wrong(name, case, tuple(columns.split()), changes)
