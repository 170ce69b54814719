from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from staged.app import Staged


@dataclass(frozen=True)
class Defect:
    """One thing that a server does wrong, and the case and the promises by which the kit finds it."""

    name: str
    case: str
    columns: tuple[str, ...]
    changes: Mapping[str, Any]
    api: str = "openai-chat"
    stream: bool = True

    def staged(self) -> Staged:
        return Staged(self.name, **self.changes)


def wrong(
    name: str, case: str, columns: str, /, api: str = "openai-chat", *, whole: bool = False, **changes: Any
) -> Defect:
    return Defect(name, case, tuple(columns.split()), changes, api, not whole)
