"""What a request, a command line or the environment asks about stops."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from stopscan import Repeat, StopSet
from stopscan.regions import NAMES
from stopscan.regions._protect import read as read_protect
from stopscan.repeats import add_repeat, in_environment, requested


@dataclass(frozen=True)
class Limits:
    """The most that one request may ask for. Stops and patterns share ``bytes``."""

    stops: int = 1024
    patterns: int = 64
    bytes: int = 65536
    regions: int = 64


@dataclass(frozen=True)
class Defaults:
    """What holds for requests that say nothing. ``protect`` is ``None`` where each route has its own default."""

    protect: tuple[Any, ...] | None = None
    repeat: Repeat | None = None
    limits: Limits = Limits()

    @classmethod
    def from_environment(cls, name: str) -> Defaults:
        """Reads the variables ``{name}_PROTECT``, ``{name}_REPEAT`` and ``{name}_LIMITS``."""

        def value(field: str, read: Callable[[str], Any]) -> Any:
            text = os.environ.get(f"{name}_{field}")
            try:
                return read(text) if text else None
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name}_{field}: {error}") from None

        def limits(text: str) -> Limits:
            parts = dict(part.split("=") for part in text.split(",") if part)
            return Limits(**{key: int(number) for key, number in parts.items()})

        protect = value("PROTECT", lambda text: _protect(text if text in NAMES else json.loads(text), Limits()))
        return cls(protect, value("REPEAT", in_environment), value("LIMITS", limits) or Limits())

    @classmethod
    def from_arguments(cls, given: Namespace) -> Defaults:
        """What a parser with ``add_defaults`` has read."""
        return cls(None if given.protect is None else _protect(given.protect, Limits()), given.repeat)


def add_defaults(parser: ArgumentParser) -> None:
    """Adds ``--protect`` and ``--repeat`` to a server's command line."""
    words = "in these regions no stop fires: reasoning, tool_call, or an opening and a closing marker"
    parser.add_argument("--protect", nargs="*", metavar="REGION", help=words)
    add_repeat(parser)


def switch(name: str) -> str:
    """``0``, ``1`` or ``optional``: what the variable ``name`` says."""
    value = os.environ.get(name) or "0"
    if value not in ("0", "1", "optional"):
        raise ValueError(f"{name} must be 0, 1 or optional, not {value!r}")
    return value


@dataclass(frozen=True)
class StopOptions:
    """What one request asks. It is hashable, and a pickle of it has plain values alone."""

    stops: StopSet = StopSet()  # noqa: RUF009 - it is immutable
    protect: tuple[Any, ...] | None = None
    start_protected: bool | None = None
    stop_token_ids: tuple[int, ...] = ()
    min_tokens: int = 0
    include_stop: bool = False
    asks: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """The options of ``Checkpoint.scanner``."""
        names = ("protect", "start_protected", "stop_token_ids", "min_tokens", "include_stop")
        return {name: getattr(self, name) for name in names}


def read_options(
    given: object,
    defaults: Defaults = Defaults(),
    *,
    prefix: str = "",
    fields: Collection[str] = (),
    own: Mapping[str, Any] | None = None,
) -> StopOptions:
    """Returns what a request asks.

    - ``given`` is the request's body, or a flat mapping that it shares with others. With a ``prefix`` each name that
      begins with it must be an option; without one, other names are the server's.
    - ``fields`` are the options that count, by default all.
    - ``own`` has the options for which the engine has fields of its own.

    Raises ``ValueError`` that begins with the name of the field.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ValueError(f"the options of stops must be an object, not {given!r}")
    fields = fields or FIELDS
    asked: dict[str, Any] = {}
    for name, value in given.items():
        field = name.removeprefix(prefix) if isinstance(name, str) and name.startswith(prefix) else None
        if field in fields:
            asked[field] = value
        elif prefix and field is not None:
            raise ValueError(f"{name} is no option of stops; those are {', '.join(prefix + each for each in fields)}")
    names = {**{field: prefix + field for field in asked}, **{field: field for field in own or ()}}
    values = {field: value for field, value in {**asked, **(own or {})}.items() if value is not None}
    limits, read = defaults.limits, {}
    for field, value in values.items():
        try:
            read[field] = FIELDS[field](value, limits)
        except ValueError as error:
            raise ValueError(f"{names[field]} {_without_name(error, field)}") from None
    stop, patterns = read.pop("stop", ()), read.pop("patterns", ())
    size = sum(len(text.encode(errors="surrogatepass")) for text in [*stop, *patterns])
    if size > limits.bytes:
        raise ValueError(f"{names.get('patterns', 'stop')} has {size} bytes of text; the limit is {limits.bytes}")
    repeat = read.pop("repeat", defaults.repeat)
    held = read.pop("max_held", None)
    culprit = "stop"
    try:
        stops = StopSet(stop)
        if patterns or repeat or held is not None:
            culprit = names.get("patterns", "patterns")
            stops = StopSet(stop, patterns=patterns, max_held=held, repeat=repeat)
    except ValueError as error:  # a lone surrogate, too
        raise ValueError(f"{culprit} is malformed: {error}") from None
    asks = bool(stop or patterns or read.get("stop_token_ids") or values.get("repeat"))
    return StopOptions(stops, asks=asks, **read)


def _without_name(error: ValueError, field: str) -> str:
    return str(error).removeprefix(field).lstrip(": ")


def _strings(value: object, limit: int) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"must be a string or a list of strings, not {value!r}")
    if len(texts) > limit:
        raise ValueError(f"has {len(texts)} entries; the limit is {limit}")
    return tuple(texts)


def _count(value: object, _: Limits) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        raise ValueError(f"must be a number from 0 to {2**31 - 1}, not {value!r}")
    return value


def _ids(value: object, _: Limits) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not all(type(each) is int and 0 <= each < 2**32 for each in value):
        raise ValueError(f"must be a list of token ids, not {value!r}")
    return tuple(value)


def _flag(value: object, _: Limits) -> bool:
    if value not in (0, 1):  # flat maps have no booleans
        raise ValueError(f"must be true or false, not {value!r}")
    return bool(value)


def _protect(value: object, limits: Limits) -> tuple[Any, ...]:
    names, pairs = read_protect(value)
    if len(names) + len(pairs) > limits.regions:
        raise ValueError(f"has {len(names) + len(pairs)} regions; the limit is {limits.regions}")
    return (*names, *pairs)


def _repeat(value: object, _: Limits) -> Repeat | None:
    return requested(bool(value) if value in (0, 1) else value)


FIELDS: dict[str, Callable[[Any, Limits], Any]] = {
    "stop": lambda value, limits: _strings(value, limits.stops),
    "patterns": lambda value, limits: _strings(value, limits.patterns),
    "max_held": _count,
    "stop_token_ids": _ids,
    "min_tokens": _count,
    "include_stop": _flag,
    "protect": _protect,
    "start_protected": _flag,
    "repeat": _repeat,
}
