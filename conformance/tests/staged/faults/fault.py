from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from staged.app import Staged

# What a rule rests on: the API's own specification, what engines agree on, or what is better for users.
Kind = Literal["documented", "usual", "advice"]


@dataclass(frozen=True)
class Asked:
    """A request, the same for all APIs. `pieces` are the tokens of a script that the checkpoint does not have."""

    script: str = "count"
    stop: Any = ()
    ids: tuple[str, ...] = ()  # the pieces of the script whose ids end it
    limit: int | None = 100
    stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    before: str = ""  # of the script's name, in the last message
    pieces: tuple[str | bytes, ...] = ()
    leaves: int = 0  # after so many parts the client goes away


@dataclass(frozen=True)
class Fault:
    """A wrong server, the API that shows it, and what the rule that it breaks rests on.

    After the requests of `shown` its last answer is another one than the right server's; if `together`, they are sent
    at once, and one of the answers is. A fault that is only seen in time has none.
    """

    name: str
    kind: Kind
    api: str
    changes: Mapping[str, Any]
    shown: tuple[Asked, ...] = ()
    together: bool = False

    def staged(self) -> Staged:
        return Staged(self.name, **self.changes)


def fault(name: str, kind: Kind, api: str, *shown: Asked, together: bool = False, **changes: Any) -> Fault:
    return Fault(name, kind, api, changes, shown, together)
