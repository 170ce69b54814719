"""What the environment asks of an adapter: ``STOPSCAN_VLLM=1`` and its relatives."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from stopscan import Repeat
from stopscan._engine.graphs import frozen
from stopscan._engine.options import Limits
from stopscan._engine.sets import stop_set
from stopscan.regions import NAMES, read_protect
from stopscan.repeats import in_environment

# Has the names whose markers are not known yet.
ANY = frozen({"answer": {f"<{name}>": name for name in NAMES}, **{name: {f"</{name}>": "answer"} for name in NAMES}})


class Settings(NamedTuple):
    """The server's defaults; ``protect`` as a request names regions, ``None`` if nobody said anything."""

    protect: Any = None
    limits: Limits = Limits()
    repeat: Repeat | None = None

    def checked(self) -> Settings:
        """These, to be read again for each request, or ``ValueError`` for regions that no request could use."""
        if self.protect is None:
            return self
        names, pairs = read_protect(self.protect)
        stop_set((), (), (*names, *pairs), None, None, ANY)
        return self._replace(protect=(*names, *pairs))


def switch(name: str) -> str:
    """``0``, ``1`` or ``optional``: what the variable ``name`` says. Raises ``ValueError`` for anything else."""
    value = os.environ.get(name) or "0"
    if value not in ("0", "1", "optional"):
        raise ValueError(f"{name} must be 0, 1 or optional, not {value!r}")
    return value


def settings(name: str) -> Settings:
    """The defaults in the variables that begin with ``name``. Raises ``ValueError`` that names the variable."""
    return Settings(_protect(f"{name}_PROTECT"), _limits(f"{name}_LIMITS"), _repeat(f"{name}_REPEAT"))


def _protect(name: str) -> Any:
    value = os.environ.get(name)
    if not value:
        return None
    try:
        return Settings(value if value in NAMES else json.loads(value)).checked().protect
    except ValueError as error:
        raise ValueError(f"{name} must be {' or '.join(NAMES)}, or a JSON list of regions: {error}") from None


def _repeat(name: str) -> Repeat | None:
    try:
        return in_environment(os.environ.get(name))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _limits(name: str) -> Limits:
    value = os.environ.get(name, "")
    try:
        parts = dict(part.split("=") for part in value.split(",") if part)
        return Limits(**{key: int(number) for key, number in parts.items()})
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be like patterns=64,bytes=16384,regions=64, not {value!r}") from None
