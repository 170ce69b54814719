"""What a request asks of stopscan in a flat mapping that it shares with other plugins, and how much it may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from stopscan import Repeat
from stopscan.regions import read_protect
from stopscan.repeats import requested

PREFIX = "stopscan_"


class Limits(NamedTuple):
    """The most that a request may ask for: patterns, bytes of their text, and regions."""

    patterns: int = 64
    bytes: int = 16384
    regions: int = 64


class Options(NamedTuple):
    """The options of one request; ``None`` where it says nothing."""

    patterns: tuple[str, ...] = ()
    max_held: int | None = None
    protect: tuple[Any, ...] | None = None
    start_protected: bool | None = None
    repeat: Repeat | None = None


def options(given: Mapping[str, Any] | None, limits: Limits, repeat: Repeat | None = None) -> Options:
    """The options in ``given``, of which those that begin with ``stopscan_`` count.

    ``repeat`` is the server's default. Raises ``ValueError`` that begins with the option's name.
    """
    asked = {name.removeprefix(PREFIX): value for name, value in (given or {}).items() if name.startswith(PREFIX)}
    for name in asked:
        if name not in Options._fields:
            known = ", ".join(PREFIX + field for field in Options._fields)
            raise ValueError(f"{PREFIX}{name} is not an option of stopscan; those are {known}")
    return Options(
        _patterns(asked.get("patterns"), limits),
        _max_held(asked.get("max_held")),
        _protect(asked.get("protect"), limits),
        _start(asked.get("start_protected")),
        _repeat(asked.get("repeat"), repeat),
    )


def without_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """``given`` without the options of stopscan."""
    return {name: value for name, value in (given or {}).items() if not name.startswith(PREFIX)}


def _patterns(value: object, limits: Limits) -> tuple[str, ...]:
    if value is None:
        return ()
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list | tuple) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ValueError(f"stopscan_patterns must be a regular expression or a list of them, not {value!r}")
    if len(patterns) > limits.patterns:
        raise ValueError(f"stopscan_patterns has {len(patterns)} patterns; the limit is {limits.patterns}")
    size = sum(len(pattern.encode(errors="surrogatepass")) for pattern in patterns)
    if size > limits.bytes:
        raise ValueError(f"stopscan_patterns has {size} bytes of text; the limit is {limits.bytes}")
    return tuple(patterns)


def _max_held(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63):
        return value
    raise ValueError(f"stopscan_max_held must be a number of characters, not {value!r}")


def _protect(value: object, limits: Limits) -> tuple[Any, ...] | None:
    if value is None:
        return None
    try:
        found: tuple[Any, ...] = tuple(chain(*read_protect(value)))
    except ValueError as error:
        raise ValueError(f"stopscan_protect {str(error).removeprefix('protect').lstrip(': ')}") from None
    if len(found) > limits.regions:
        raise ValueError(f"stopscan_protect has {len(found)} regions; the limit is {limits.regions}")
    return found


def _repeat(value: object, default: Repeat | None) -> Repeat | None:
    # `true` in a flat map of strings and numbers is 1.
    asked = bool(value) if value in (0, 1) else value
    return requested(asked, default, name=f"{PREFIX}repeat")


def _start(value: object) -> bool | None:
    if value is None or value in (0, 1):
        return None if value is None else bool(value)
    raise ValueError(f"stopscan_start_protected must be 0 or 1, not {value!r}")
